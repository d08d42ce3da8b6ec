"""Random small schedules of faults: every byte arrives exactly once, or the queue pair says that it failed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrc_agent.core.queue_pair import QpState
from mrc_agent.lab.fabric import Fabric, Plan
from mrc_agent.profile import Profile, ReliabilityProfile, WireProfile

PLAN = Plan(planes=2, leaves=2, spines=2, hosts_per_leaf=1, rate_bps=50e6, evs_per_plane=4, queue_bytes=60_000)
PROFILE = Profile(
    WireProfile(payload_bytes=1024),
    ReliabilityProfile(rto_min_s=0.05, linear_retries=3, exponential_retries=2),
)
FAULTS = st.fixed_dictionaries(
    {
        "loss": st.sampled_from([0.0, 0.01, 0.1]),
        "duplicate": st.sampled_from([0.0, 0.2]),
        "reorder": st.sampled_from([0.0, 0.3]),
        "reorder_s": st.sampled_from([0.001, 0.01]),
    }
)
OUTAGES = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.floats(0, 0.3), st.floats(0.001, 0.5)), max_size=3
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1 << 30),
    size=st.integers(0, 30_000),
    count=st.integers(1, 8),
    outstanding=st.integers(1, 4),
    mpr=st.sampled_from([1, 8]),
    delay_s=st.sampled_from([0.0, 0.003]),
    jitter_s=st.sampled_from([0.0, 0.004]),
    faults=FAULTS,
    outages=OUTAGES,
)
def test_every_byte_arrives_once_or_the_queue_pair_fails_within_its_budget(
    seed: int,
    size: int,
    count: int,
    outstanding: int,
    mpr: int,
    delay_s: float,
    jitter_s: float,
    faults: dict[str, float],
    outages: list[tuple[int, int, float, float]],
) -> None:
    profile = replace(PROFILE, reliability=replace(PROFILE.reliability, mpr=mpr))
    fabric = Fabric(replace(PLAN, delay_s=delay_s), seed, profile)
    for host in fabric.hosts.values():
        host.wake_delay = lambda: fabric.lab.rng.random() * jitter_s
    for name, link in fabric.links.items():
        if "spine" in name:
            for fault, value in faults.items():
                setattr(link, fault, value)
    for plane, spine, begin_s, length_s in outages:
        ends = f"p{plane}.leaf1", f"p{plane}.spine{spine}"
        fabric.lab.at(begin_s, lambda _, ends=ends: fabric.set_link(*ends, up=False))
        fabric.lab.at(begin_s + length_s, lambda _, ends=ends: fabric.set_link(*ends, up=True))
    transfer = fabric.send("h1", "h2", size=size, count=count, outstanding=outstanding)
    fabric.lab.run(20.0)
    assert not transfer.corrupt
    assert set(transfer.arrived.values()) <= {1}
    if transfer.qp.state is QpState.ERROR:
        assert len(transfer.completed) == transfer.posted
    else:
        assert transfer.done
        assert sum(transfer.peer_qp.receiver.delivered) == size * count
    assert transfer.qp.destination.nscc.inflight == 0
