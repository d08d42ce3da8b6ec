"""The transport in virtual time: every byte once, over paths that lose, reorder, duplicate and die."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_agent.core.errors import MrcError
from mrc_agent.core.queue_pair import QpState
from mrc_agent.lab.fabric import Fabric, Plan, Transfer
from mrc_agent.lab.links import Packet
from mrc_agent.profile import Profile, ReliabilityProfile
from mrc_agent.wire.data import DATA
from mrc_agent.wire.headers import BTH, SETH
from mrc_agent.wire.opcodes import Opcode

PLAN = Plan(planes=2, leaves=2, spines=2, hosts_per_leaf=1, rate_bps=20e6, evs_per_plane=8, queue_bytes=200_000)


def start(count: int | None = 20, size: int = 100_001, seed: int = 1, plan: Plan = PLAN, **options: int) -> Transfer:
    """A fabric and a transfer from h1 to h2 in it; virtual time has not begun."""
    return Fabric(plan, seed).send("h1", "h2", size=size, count=count, **options)


def run(transfer: Transfer, seconds: float = 5.0) -> None:
    transfer.fabric.lab.run(transfer.fabric.lab.now + seconds)


def sender(transfer: Transfer) -> dict[str, int]:
    return transfer.fabric.hosts["h1"].endpoint.counters


def receiver(transfer: Transfer) -> dict[str, int]:
    return transfer.fabric.hosts["h2"].endpoint.counters


def fabric_links(transfer: Transfer) -> list[str]:
    return [name for name in transfer.fabric.links if "spine" in name]


def retransmitted_on(transfer: Transfer, plane: int) -> int:
    """Retransmissions so far on a plane (from 0)."""
    evs = transfer.qp.evs
    return sum(n for n, p in zip(evs.retransmitted, evs.plane_of, strict=True) if p == plane)


def is_data(packet: Packet) -> bool:
    return packet.data[0] <= Opcode.WRITE_ONLY_IMMEDIATE


def test_without_faults_everything_arrives_and_nothing_is_sent_twice() -> None:
    transfer = start()
    run(transfer)
    assert transfer.done
    assert sender(transfer)["retransmitted_packets"] == 0
    assert receiver(transfer)["duplicate_packets"] == 0
    assert sender(transfer)["acked_packets"] == sender(transfer)["sent_packets"] == 20 * 25
    assert transfer.qp.destination.nscc.inflight == 0


@pytest.mark.parametrize("size", [0, 1, 3, 4095, 4096, 4097, 8192, 65_537])
def test_messages_of_any_size_arrive(size: int) -> None:
    transfer = start(5, size)
    run(transfer, 2.0)
    assert transfer.done


def test_the_same_seed_gives_the_same_run() -> None:
    runs = []
    for _ in range(2):
        transfer = start(10)
        for name in fabric_links(transfer):
            transfer.fabric.links[name].loss = 0.05
        run(transfer)
        runs.append((sender(transfer), receiver(transfer), dict(transfer.bins)))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_one_percent_loss_on_every_link_loses_no_message(seed: int) -> None:
    transfer = start(40, seed=seed)
    for link in transfer.fabric.links.values():
        link.loss = 0.01
    run(transfer, 12.0)
    assert transfer.done
    assert sender(transfer)["retransmitted_packets"] > 0


def test_reordering_within_the_window_causes_no_retransmission() -> None:
    transfer = start(40)
    for name in fabric_links(transfer):
        transfer.fabric.links[name].reorder = 0.2
        transfer.fabric.links[name].reorder_s = 0.006
    run(transfer)
    assert transfer.done
    assert sender(transfer)["retransmitted_packets"] == 0


def test_duplicates_are_counted_and_written_once() -> None:
    transfer = start(20)
    for name in fabric_links(transfer):
        transfer.fabric.links[name].duplicate = 0.3
    run(transfer)
    assert transfer.done
    assert receiver(transfer)["duplicate_packets"] > 100
    assert sum(transfer.peer_qp.receiver.delivered) == 20 * 100_001


def test_planes_carry_equal_shares_of_packets() -> None:
    transfer = start(30, plan=replace(PLAN, planes=4))
    run(transfer)
    evs = transfer.qp.evs
    shares = [sum(n for n, p in zip(evs.sent, evs.plane_of, strict=True) if p == plane) for plane in range(4)]
    assert transfer.done
    assert max(shares) - min(shares) <= 1


def test_equal_shares_hold_when_one_plane_is_slower() -> None:
    transfer = start(30)
    for name, link in transfer.fabric.links.items():
        if "p2." in name:
            link.rate_bps /= 3
    run(transfer)
    evs = transfer.qp.evs
    shares = [sum(n for n, p in zip(evs.sent, evs.plane_of, strict=True) if p == plane) for plane in range(2)]
    assert transfer.done
    assert max(shares) - min(shares) <= 1 + 2 * sender(transfer)["retransmitted_packets"]


def test_a_retransmission_takes_another_ev_and_says_that_it_is_one() -> None:
    transfer = start(20)
    seen: dict[int, list[tuple[int, bool]]] = {}
    lost = 0

    def drop_some(packet: Packet) -> bool:
        nonlocal lost
        if not is_data(packet):
            return True
        bth = BTH.unpack(packet.data)
        seen.setdefault(bth.psn, []).append((packet.ev, bth.retransmission))
        lost += bth.psn % 50 == 0 and not bth.retransmission
        return bth.psn % 50 != 0 or bth.retransmission

    transfer.fabric.lab.taps.append(drop_some)
    run(transfer)
    assert transfer.done
    again = {psn: trips for psn, trips in seen.items() if len(trips) > 1}
    assert len(again) == lost > 0
    for trips in again.values():
        assert [retransmission for _, retransmission in trips] == [False, True]
        assert trips[0][0] != trips[1][0]


def test_a_dead_path_is_evicted_the_others_go_on_and_probes_bring_it_back() -> None:
    transfer = start(None)
    fabric = transfer.fabric
    fabric.lab.at(1.0, lambda _: fabric.set_link("p1.leaf1", "p1.spine1", False))
    fabric.lab.at(2.0, lambda _: fabric.set_link("p1.leaf1", "p1.spine1", True))
    fabric.lab.run(4.0)
    evicted = {event.ev for event in fabric.ev_events("loss", "timeout")}
    assert evicted
    assert {(ev >> 28, fabric.spine(ev)) for ev in evicted} == {(1, 1)}
    revived = fabric.ev_events("probes")
    assert {event.ev for event in revived} == evicted
    assert all(2.0 < event.time_s < 3.0 for event in revived)
    used_again = [transfer.qp.evs.index_of[ev] for ev in evicted]
    assert any(index in transfer.qp.evs.good(0) for index in used_again)
    assert transfer.goodput_bps(1.5, 2.0) > 0.9 * transfer.goodput_bps(0.5, 1.0)
    assert not transfer.corrupt
    assert set(transfer.completed.values()) == {"success"}


def test_a_black_holed_plane_leaves_within_three_rtt_and_a_reorder_window_and_gets_no_retransmission_after() -> None:
    plan = replace(PLAN, planes=4, evs_per_plane=4)
    transfer = start(None, plan=plan)
    fabric = transfer.fabric
    for other in ("p2.spine1", "p2.spine2"):
        fabric.lab.at(1.0, lambda _, other=other: fabric.set_link("p2.leaf1", other, False))
    times = transfer.qp.destination.times
    fabric.lab.run(1.0)
    limit_s = 1.0 + 3 * times.smoothed + times.floor_s
    fabric.lab.run(limit_s)
    before = retransmitted_on(transfer, 1)
    fabric.lab.run(3.0)
    evictions = fabric.ev_events("loss", "timeout", "silent_plane")
    evicted = [event for event in evictions if event.plane == 2]
    assert len(evicted) == 4
    assert max(event.time_s for event in evicted) <= limit_s
    assert transfer.goodput_bps(1.5, 3.0) > 0.9 * 3 / 4 * transfer.goodput_bps(0.5, 1.0)
    assert evictions == evicted
    assert retransmitted_on(transfer, 1) == before


def test_lost_sacks_cost_nothing_but_later_news() -> None:
    transfer = start(30)
    transfer.fabric.lab.taps.append(
        lambda packet: packet.data[0] != Opcode.SACK or transfer.fabric.lab.rng.random() < 0.7
    )
    run(transfer)
    assert transfer.done
    assert receiver(transfer)["duplicate_packets"] == 0


def test_a_lost_transport_acknowledgement_is_asked_for_again() -> None:
    transfer = start(1, 5000)
    lost: list[float] = []

    def drop_first(packet: Packet) -> bool:
        if packet.data[0] == Opcode.ACKNOWLEDGE and not lost:
            lost.append(transfer.fabric.lab.now)
            return False
        return True

    transfer.fabric.lab.taps.append(drop_first)
    run(transfer, 1.0)
    assert lost
    assert transfer.done
    assert sender(transfer)["reliability_probes"] > 0
    assert sender(transfer)["retransmitted_packets"] == 0


def test_a_lost_last_packet_is_found_by_a_probe_long_before_the_timeout() -> None:
    transfer = start(1, 50_000)
    state = {"dropped": False}

    def drop_last(packet: Packet) -> bool:
        if packet.data[0] == Opcode.WRITE_LAST and not state["dropped"]:
            state["dropped"] = True
            return False
        return True

    transfer.fabric.lab.taps.append(drop_last)
    run(transfer, 0.15)
    assert state["dropped"]
    assert transfer.done
    assert sender(transfer)["timeouts"] == 0


def test_when_everything_is_lost_for_a_while_timeouts_bring_it_back() -> None:
    transfer = start(20)
    silent = (0.2, 0.9)
    transfer.fabric.lab.taps.append(lambda packet: not silent[0] < transfer.fabric.lab.now < silent[1])
    run(transfer, 8.0)
    assert transfer.done
    assert sender(transfer)["timeouts"] > 0


def test_a_dead_peer_ends_in_error_and_every_operation_completes() -> None:
    profile = Profile(reliability=ReliabilityProfile(linear_retries=2, exponential_retries=1))
    transfer = Fabric(PLAN, 1, profile).send("h1", "h2", size=100_000, count=50, outstanding=5)
    transfer.fabric.lab.taps.append(lambda packet: transfer.fabric.lab.now < 0.3)
    run(transfer, 20.0)
    assert transfer.qp.state is QpState.ERROR
    assert len(transfer.completed) == transfer.posted
    statuses = [status for status in transfer.completed.values() if status != "success"]
    assert statuses == ["retry_exceeded"] + ["flushed"] * 4
    assert transfer.qp.destination.nscc.inflight == 0
    with pytest.raises(MrcError, match="ERROR"):
        transfer.qp.post_write(b"x", 0, 0, 1)


def test_a_wrong_rkey_ends_in_an_access_error_and_writes_nothing() -> None:
    fabric = Fabric(PLAN, 1)
    memory = bytearray(10_000)
    region = fabric.hosts["h2"].endpoint.register(memory)
    qp, _ = fabric.connect("h1", "h2")
    events: list[object] = []
    fabric.hosts["h1"].on_event = events.append
    qp.post_write(b"\xff" * 10_000, region.address, region.rkey ^ 1, 7)
    fabric.hosts["h1"].wake()
    fabric.lab.run(1.0)
    assert [getattr(event, "status", None) for event in events] == ["remote_access_error"]
    assert not any(memory)


def test_psns_wrap_without_a_trace() -> None:
    fabric = Fabric(PLAN, 1)
    transfer = Transfer.__new__(Transfer)
    original = fabric.connect

    def connect_near_the_end(one: str, other: str) -> object:
        first, second = original(one, other)
        psn = (1 << 24) - 40
        first.sender.outstanding.una = first.sender.outstanding.next = psn
        second.receiver.cack = psn - 1
        return first, second

    fabric.connect = connect_near_the_end  # type: ignore[method-assign, assignment]
    transfer.__init__(fabric, "h1", "h2", 100_000, 20, 2)  # type: ignore[misc]
    for name in fabric_links(transfer):
        fabric.links[name].loss = 0.02
    fabric.lab.run(5.0)
    assert transfer.done
    assert transfer.qp.sender.outstanding.una > 1 << 24


def test_never_more_is_outstanding_than_the_peers_window_and_memory_stays_bounded() -> None:
    profile = Profile(reliability=ReliabilityProfile(mpr=1))
    plan = replace(PLAN, rate_bps=1e9, delay_s=0.002, queue_bytes=10_000_000)
    transfer = Fabric(plan, 1, profile).send("h1", "h2", size=2_000_000, count=4)
    out = transfer.qp.sender.outstanding
    widest = 0

    def look(_: object) -> None:
        nonlocal widest
        widest = max(widest, out.next - out.una)
        transfer.fabric.lab.after(0.0005, look)

    look(None)
    run(transfer, 2.0)
    assert transfer.done
    assert 100 < widest <= 127
    assert len(out.packets) == 128
    assert receiver(transfer)["dropped_psn_out_of_window"] == 0


def test_the_sack_bitmap_covers_the_packet_that_triggered_it() -> None:
    transfer = start(8, 1_000_000, plan=replace(PLAN, delay_s=0.005, rate_bps=100e6))
    checked = 0

    def check(packet: Packet) -> bool:
        nonlocal checked
        if packet.data[0] == Opcode.SACK:
            sack = SETH.unpack(packet.data, 16)
            if sack.ack_psn_offset > 0 and not sack.probe:
                bit = sack.ack_psn_offset - sack.sack_offset
                assert 0 <= bit < 64
                assert sack.bitmap >> bit & 1
                checked += sack.ack_psn_offset > 64
        return not is_data(packet) or transfer.fabric.lab.rng.random() > 0.02

    transfer.fabric.lab.taps.append(check)
    run(transfer, 10.0)
    assert transfer.done
    assert checked > 0


def test_data_waits_in_the_sender_and_not_in_the_port_so_acknowledgements_pass() -> None:
    plan = replace(PLAN, rate_bps=10e6)
    fabric = Fabric(plan, 1)
    fabric.send("h1", "h2", size=500_000, count=None)
    fabric.lab.run(2.0)
    allowance_bytes = fabric.profile.wire.port_allowance_s * plan.rate_bps / 8
    for plane in (1, 2):
        assert fabric.links[f"h1-p{plane}.leaf1"].largest_backlog <= allowance_bytes + 3 * 4198


def test_a_port_that_was_busy_is_used_again_without_waiting_for_an_acknowledgement() -> None:
    plan = replace(PLAN, rate_bps=10e6, delay_s=0.05)
    fabric = Fabric(plan, 1)
    fabric.send("h1", "h2", size=500_000, count=None)
    fabric.lab.run(0.1)  # nothing can have come back yet
    for plane in (1, 2):
        assert fabric.links[f"h1-p{plane}.leaf1"].packets > 0.9 * 0.1 * plan.rate_bps / 8 / 4198


def test_traffic_in_both_directions_does_not_starve_one_of_them_although_nothing_overtakes() -> None:
    fabric = Fabric(replace(PLAN, rate_bps=10e6), 1)
    there, back = fabric.send("h1", "h2", size=500_000, count=None), fabric.send("h2", "h1", size=500_000, count=None)
    fabric.lab.run(4.0)
    capacity_bps = 2 * 10e6 * 4096 / 4198
    for transfer in (there, back):
        assert transfer.goodput_bps(1.0, 4.0) > 0.9 * capacity_bps


def test_senders_to_one_receiver_share_it_and_delay_alone_keeps_the_queue_from_overflowing() -> None:
    fabric = Fabric(Plan(planes=2, leaves=2, spines=3, hosts_per_leaf=3, rate_bps=10e6, queue_bytes=200_000), 1)
    transfers = [fabric.send(f"h{number}", "h4", size=200_000, count=None) for number in (1, 2, 3)]

    def lost() -> int:
        return sum(fabric.hosts[f"h{number}"].endpoint.counters["lost_packets"] for number in (1, 2, 3))

    fabric.lab.run(1.0)
    at_the_start = lost()  # three full windows at once do not fit
    fabric.lab.run(5.0)
    rates = [transfer.goodput_bps(2.0, 5.0) for transfer in transfers]
    assert sum(rates) > 0.9 * 2 * 10e6 * 4096 / 4198
    assert min(rates) > 0.5 * max(rates)
    assert lost() == at_the_start


def test_every_data_packet_says_where_it_goes_and_how_long_the_message_is() -> None:
    transfer = start(2, 10_000)
    region = transfer.fabric.hosts["h2"].endpoint.memory.by_rkey
    ends: set[int] = set()

    def check(packet: Packet) -> bool:
        if is_data(packet):
            *_, address, rkey, length = DATA.unpack_from(packet.data)
            assert length == 10_000
            ends.add(address - region[rkey].address)
        return True

    transfer.fabric.lab.taps.append(check)
    run(transfer, 1.0)
    assert ends == {0, 4096, 8192, 10_000, 14_096, 18_192}


def test_two_queue_pairs_to_one_peer_share_its_window() -> None:
    fabric = Fabric(PLAN, 1)
    transfers = [fabric.send("h1", "h2", size=200_000, count=8) for _ in range(2)]
    assert transfers[0].qp.destination is transfers[1].qp.destination
    fabric.lab.run(4.0)
    assert all(transfer.done for transfer in transfers)
    assert transfers[0].qp.destination.nscc.inflight == 0


def test_connecting_twice_or_to_another_host_is_refused() -> None:
    fabric = Fabric(Plan(planes=1), 1)
    first, second = fabric.connect("h1", "h3")
    with pytest.raises(MrcError, match="not in INIT"):
        first.connect(second.local_info())
    third = fabric.hosts["h1"].endpoint.create_qp(fabric.peer("h3"))
    with pytest.raises(MrcError, match="for h3"):
        third.connect(first.local_info())
    with pytest.raises(MrcError, match="lack"):
        third.connect({"host": "h3"})
