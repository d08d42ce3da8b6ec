"""The agent in its usual fabric: four planes of 10 Mbit/s, three spines, a link cut in mid-run, hosts that run late."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mrc_agent.lab.fabric import BIN_S, Fabric, Plan, Transfer

PLAN = Plan(planes=4, leaves=2, spines=3, hosts_per_leaf=2, rate_bps=10e6, evs_per_plane=12, queue_bytes=94_000)
CAPACITY_BPS = 4 * 10e6 * 4096 / 4198
CUT_S, MEND_S, END_S = 1.5, 3.0, 4.5


class Run:
    """A permutation over both leaves with messages of 1 MB; one link is cut and mended."""

    def __init__(self, seed: int, jitter_s: float, control_class: bool) -> None:
        self.fabric = fabric = Fabric(replace(PLAN, control_class=control_class), seed)
        rng = Random(seed)
        if jitter_s:
            for host in fabric.hosts.values():
                host.wake_delay = lambda: rng.expovariate(1 / jitter_s)

            def stall(_: object) -> None:
                fabric.lab.stalled_until = fabric.lab.now + rng.uniform(0, 2 * jitter_s)
                fabric.lab.after(rng.uniform(0.02, 0.06), stall)

            stall(None)
        pairs = [("h1", "h3"), ("h2", "h4"), ("h3", "h2"), ("h4", "h1")]
        self.transfers: list[Transfer] = [fabric.send(one, other, size=1_000_000) for one, other in pairs]
        fabric.lab.at(CUT_S, lambda _: fabric.set_link("p1.leaf1", "p1.spine2", False))
        fabric.lab.at(MEND_S, lambda _: fabric.set_link("p1.leaf1", "p1.spine2", True))
        fabric.lab.run(END_S)

    def share(self, begin_s: float, end_s: float) -> float:
        """Goodput of all hosts as a share of the payload capacity of all planes."""
        return sum(t.goodput_bps(begin_s, end_s) for t in self.transfers) / len(self.transfers) / CAPACITY_BPS

    def recovered_at(self) -> float:
        """Start of the first 500 ms after the cut of which no 50 ms are below 90 %."""
        begin = CUT_S
        for step in range(round(CUT_S / BIN_S), round(MEND_S / BIN_S)):
            at = step * BIN_S
            if self.share(at, at + BIN_S) < 0.9:
                begin = at + BIN_S
            elif at + BIN_S - begin >= 0.5 - 1e-9:
                return begin
        return float("inf")

    def total(self, counter: str) -> int:
        return sum(host.endpoint.counters[counter] for host in self.fabric.hosts.values())


@pytest.fixture(
    scope="module",
    params=[(1, 0.0, False), (2, 0.002, False), (3, 0.002, True)],
    ids=["quiet", "jitter", "jitter-control-class"],
)
def run(request: pytest.FixtureRequest) -> Run:
    return Run(*request.param)


def test_before_the_cut_at_least_95_percent_of_all_planes_carry_payload(run: Run) -> None:
    assert run.share(0.5, CUT_S) >= 0.95


def test_after_the_cut_goodput_is_back_to_90_percent_within_half_a_second(run: Run) -> None:
    assert run.recovered_at() - CUT_S <= 0.5


def test_no_message_is_lost_or_corrupt(run: Run) -> None:
    for transfer in run.transfers:
        assert not transfer.corrupt
        assert set(transfer.completed.values()) == {"success"}
        assert set(transfer.arrived.values()) == {1}
        assert len(transfer.arrived) >= transfer.posted - 2


def test_the_cut_path_is_evicted_hardly_any_other_and_it_is_used_again_after_mending(run: Run) -> None:
    evictions = run.fabric.ev_events("loss", "timeout", "silent_plane")
    of_the_path = [event for event in evictions if (event.plane, run.fabric.spine(event.ev)) == (1, 2)]
    assert {event.peer for event in of_the_path} == {"h1", "h2", "h3", "h4"}
    assert all(event.time_s > CUT_S for event in of_the_path)
    assert len(evictions) - len(of_the_path) <= 2
    revived = {(event.peer, event.ev): event.time_s for event in run.fabric.ev_events("probes")}
    for event in of_the_path:
        assert MEND_S < revived[event.peer, event.ev] < MEND_S + 0.6


def test_loss_inference_is_hardly_ever_wrong_although_hosts_and_switches_stall(run: Run) -> None:
    wrong = run.total("spurious_losses") + run.total("spurious_retransmissions")
    assert wrong <= run.total("sent_packets") / 5000
    assert run.total("timeouts") == 0


def test_planes_have_equal_shares_of_first_transmissions(run: Run) -> None:
    for transfer in run.transfers:
        evs = transfer.qp.evs
        shares = [sum(n for n, p in zip(evs.sent, evs.plane_of, strict=True) if p == plane) for plane in range(4)]
        assert max(shares) - min(shares) <= 1
