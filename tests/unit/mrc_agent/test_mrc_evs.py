"""Rules of the EV set: shares, rotation, states, swap, floor (MRC 1.0 section 9.3.1; Araujo et al., section 2.1)."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from mrc_agent.core.errors import MrcError
from mrc_agent.core.evs import EvSet, EvState
from mrc_agent.profile import EvProfile

Change = tuple[float, int, EvState, EvState, str]


def make(planes: int = 2, per_plane: int = 8, seed: int = 1, profile: EvProfile | None = None) -> EvSet:
    evs = [[plane << 28 | number for number in range(per_plane)] for plane in range(planes)]
    return EvSet(evs, profile or EvProfile(), Random(seed), lambda *change: None)


def test_a_quarter_of_each_planes_evs_is_kept_as_backup() -> None:
    evs = make(per_plane=12)
    assert [len(evs.good(plane)) for plane in (0, 1)] == [9, 9]


def test_one_rotation_visits_each_active_ev_once_in_an_order_that_changes() -> None:
    evs = make(per_plane=12)
    rotations = [[evs.pick(0) for _ in range(9)] for _ in range(4)]
    for rotation in rotations:
        assert sorted(rotation) == sorted(evs.good(0))
    assert len({tuple(rotation) for rotation in rotations}) == 4


def test_two_senders_with_different_seeds_take_different_orders() -> None:
    one, other = make(seed=1), make(seed=2)
    assert [one.pick(0) for _ in range(20)] != [other.pick(0) for _ in range(20)]


def test_a_lost_packets_ev_leaves_at_once_and_a_backup_of_the_same_plane_comes_in() -> None:
    evs = make()
    before = set(evs.good(1))
    victim = evs.pick(1)
    evs.bad(victim, 1.0, "loss", 0.5)
    after = set(evs.good(1))
    assert evs.state[victim] == EvState.ASSUMED_BAD
    assert victim not in after
    assert len(after) == len(before)
    assert {evs.plane_of[index] for index in after} == {1}
    assert victim not in {evs.pick(1) for _ in range(50)}


def test_a_plane_without_usable_ev_is_left_out_until_one_comes_back() -> None:
    evs = make()
    for index in [index for index, plane in enumerate(evs.plane_of) if plane == 0]:
        evs.bad(index, 1.0, "loss", 0.5)
    assert evs.order == [1]
    evs.restore(3, 2.0, "probes")
    assert sorted(evs.order) == [0, 1]
    assert evs.pick(0) == 3


def test_the_floor_keeps_the_last_evs_even_when_they_lose() -> None:
    evs = make(profile=EvProfile(min_active=3))
    kept = [evs.bad(index, 1.0, "loss", 0.5) for index in range(16)]
    assert kept.count(False) == 3
    assert len(evs.good(0)) + len(evs.good(1)) == 3


def test_a_skipped_ev_is_passed_over_once_and_then_good_again() -> None:
    evs = make(planes=1, per_plane=4)  # three active
    victim = evs.good(0)[0]
    evs.skip(victim)
    first = [evs.pick(0) for _ in range(2)]
    assert victim not in first
    second = Counter(evs.pick(0) for _ in range(6))
    assert second[victim] == 2


def test_only_one_skip_is_undone_for_each_packet() -> None:
    evs = make(planes=1, per_plane=4)
    for index in evs.good(0):
        evs.skip(index)
    evs.pick(0)
    assert [evs.state[index] for index in evs.good(0)].count(EvState.SKIP) == 2


def test_a_retransmission_avoids_the_ev_that_lost_the_packet() -> None:
    evs = make()
    avoid = evs.good(0)[2]
    assert avoid not in {evs.pick(0, avoid) for _ in range(100)}


def test_evidence_from_before_a_revival_does_not_evict_again() -> None:
    evs = make()
    evs.bad(0, 1.0, "loss", 0.5)
    evs.restore(0, 2.0, "probes")
    evs.bad(0, 2.1, "loss", 1.9)
    assert evs.state[0] == EvState.GOOD
    evs.bad(0, 2.2, "loss", 2.05)
    assert evs.state[0] == EvState.ASSUMED_BAD


def test_an_ev_revived_while_its_plane_is_full_becomes_a_backup() -> None:
    evs = make()
    victim = evs.good(0)[0]
    evs.bad(victim, 1.0, "loss", 0.5)
    evs.restore(victim, 2.0, "probes")
    assert evs.state[victim] == EvState.GOOD
    assert victim not in evs.good(0)


def test_every_change_is_reported_with_its_cause() -> None:
    changes: list[Change] = []
    evs = EvSet([[1, 2]], EvProfile(min_active=0), Random(1), lambda *change: changes.append(change))
    evs.bad(0, 1.0, "loss", 0.5)
    evs.restore(0, 2.0, "probes")
    assert changes == [
        (1.0, 0, EvState.GOOD, EvState.ASSUMED_BAD, "loss"),
        (2.0, 0, EvState.ASSUMED_BAD, EvState.GOOD, "probes"),
    ]


@pytest.mark.parametrize(("evs", "complaint"), [([[], []], "at least one"), ([[1], [1]], "twice")])
def test_unusable_ev_lists_are_refused(evs: list[list[int]], complaint: str) -> None:
    with pytest.raises(MrcError, match=complaint):
        EvSet(evs, EvProfile(), Random(1), lambda *change: None)
