"""NSCC: the four quadrants, quick adapt, and scaling (UET 1.0 section 3.6.13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_agent.core.nscc import Nscc
from mrc_agent.profile import NsccProfile

RTT_S = 0.010
PACKET = 4184
RATE_BPS = 40e6
WITH_ECN = NsccProfile(delay_stands_for_ecn=False, host_delay_s=0.0)


def make(profile: NsccProfile = WITH_ECN, cwnd_share: float = 0.5) -> Nscc:
    nscc = Nscc(profile, base_rtt_s=RTT_S, rate_bps=RATE_BPS, packet_bytes=PACKET)
    nscc.cwnd = nscc.max_cwnd * cwnd_share
    return nscc


def run(nscc: Nscc, delay_s: float, marked: bool, rtts: int = 5) -> float:
    """Window after some round trips of acknowledgements, each of one packet, as a ratio of the one before."""
    before = nscc.cwnd
    now = 1.0
    for _ in range(rtts):
        packets = max(int(nscc.cwnd / PACKET), 1)
        for _ in range(packets):
            now += RTT_S / packets
            nscc.on_ack(now, PACKET, delay_s, marked)
    return nscc.cwnd / before


def test_the_window_starts_at_one_and_a_half_bdp_and_never_exceeds_it() -> None:
    nscc = make(cwnd_share=1.0)
    assert nscc.cwnd == pytest.approx(1.5 * RATE_BPS / 8 * RTT_S)
    run(nscc, 0.0, False, rtts=20)
    assert nscc.cwnd == nscc.max_cwnd


def test_no_mark_and_little_delay_grows_faster_than_no_mark_and_much_delay() -> None:
    little, much = run(make(), 0.3 * RTT_S, False, 3), run(make(), 1.2 * RTT_S, False, 3)
    assert little > 1.0
    assert much > 1.0
    assert run(make(), 0.02 * RTT_S, False, 3) >= little


def test_a_mark_with_little_delay_leaves_the_window_alone_but_for_eta() -> None:
    without_eta = replace(WITH_ECN, eta=0.0)
    assert run(make(without_eta), 0.5 * RTT_S, True) == pytest.approx(1.0)


def test_a_mark_with_much_delay_shrinks_the_window_at_most_once_per_round_trip() -> None:
    nscc = make(replace(WITH_ECN, quick_adapt=False), 1.0)
    for step in range(20):
        nscc.on_ack(1.0 + step * RTT_S / 40, 30 * PACKET, 3 * RTT_S, True)
    assert nscc.max_cwnd * 0.5 <= nscc.cwnd < nscc.max_cwnd


def test_without_marks_in_the_fabric_delay_takes_their_place() -> None:
    assert run(make(NsccProfile(host_delay_s=0.0), 1.0), 2.0 * RTT_S, False) < 0.9
    assert run(make(WITH_ECN, 1.0), 2.0 * RTT_S, False) == 1.0


def test_an_inferred_loss_takes_its_bytes_from_the_window_down_to_one_packet() -> None:
    nscc = make()
    before = nscc.cwnd
    nscc.on_inferred_loss(PACKET)
    assert nscc.cwnd == before - PACKET
    for _ in range(100):
        nscc.on_inferred_loss(PACKET)
    assert nscc.cwnd == PACKET


def test_quick_adapt_sets_the_window_to_what_got_through() -> None:
    nscc = make(cwnd_share=1.0)
    now = 1.0
    for _ in range(8):  # two packets in each period where the window would allow eighteen
        now += 1.1 * RTT_S
        nscc.on_ack(now, PACKET, 6 * RTT_S, True)
    assert nscc.cwnd < nscc.max_cwnd / 4


def test_growth_per_round_trip_is_the_same_share_of_the_window_at_any_rtt() -> None:
    slow = Nscc(WITH_ECN, base_rtt_s=0.010, rate_bps=40e6, packet_bytes=PACKET)
    fast = Nscc(WITH_ECN, base_rtt_s=0.0001, rate_bps=4e9, packet_bytes=PACKET)
    for nscc, rtt_s in ((slow, 0.010), (fast, 0.0001)):
        nscc.cwnd /= 2
        for step in range(36):
            nscc.on_ack(1.0 + step * rtt_s / 12, PACKET, 0.3 * rtt_s, False)
    assert fast.cwnd == pytest.approx(slow.cwnd, rel=0.03)
