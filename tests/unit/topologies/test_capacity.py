"""Capacity: the known answers of small fabrics, with links cut and planes unequal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.topologies.topology_text import fabric, fat_tree, leaf_spine, multi_plane
from topologies.capacity import (
    capacity_bps,
    equal_share_capacity_bps,
    fair_rates_bps,
    mrc_payload_bytes,
    payload_share,
    tcp_payload_share,
)

M = 1_000_000
PERMUTATION = (("h1", "h3"), ("h2", "h4"), ("h3", "h1"), ("h4", "h2"))
EXACT = {"rel": 1e-6}


def mbits(*rates: float) -> object:
    return pytest.approx([rate * M for rate in rates], **EXACT)


@pytest.mark.parametrize(
    ("cut", "best", "equal"),
    [
        ((), 160, 160),
        (("p1.leaf1-p1.spine2",), 160, 160),
        (("p1.leaf1-p1.spine2", "p1.leaf1-p1.spine1"), 140, 80),
        (("h1-p1.leaf1",), 140, 140),
        (("h1-p1.leaf1", "h1-p2.leaf1", "h1-p3.leaf1", "h1-p4.leaf1"), 80, 80),
        (("p1.leaf1-p1.spine1", "p1.leaf1-p1.spine2", "p1.leaf1-p1.spine3"), 120, 120),
        (("p1.leaf1-p1.spine1", "p1.leaf2-p1.spine2"), 140, 80),
    ],
    ids=["whole", "one uplink", "two uplinks", "host port", "host gone", "plane gone", "one spine left"],
)
def test_four_planes_with_links_cut(cut: tuple[str, ...], best: int, equal: int) -> None:
    """A plane with one uplink left carries 10 of its 20 Mbit/s; under equal shares the other planes follow it down."""
    tree, failed = multi_plane(4), frozenset(cut)
    assert capacity_bps(tree, PERMUTATION, failed) == pytest.approx(best * M, **EXACT)
    assert equal_share_capacity_bps(tree, PERMUTATION, failed) == pytest.approx(equal * M, **EXACT)


def test_unequal_rates_of_planes_hurt_only_under_equal_shares() -> None:
    tree = fabric(
        "kind: multi_plane\nplanes: 2\nleaves: 2\nspines: 2\nhosts_per_leaf: 1\n"
        "links: {overrides: {h1-p2.leaf1: {rate: 4 Mbit/s}}}"
    )
    assert capacity_bps(tree, [("h1", "h2")]) == pytest.approx(14 * M, **EXACT)
    assert equal_share_capacity_bps(tree, [("h1", "h2")]) == pytest.approx(8 * M, **EXACT)


@pytest.mark.parametrize("k", [2, 4, 6])
def test_a_fat_tree_has_full_bisection(k: int) -> None:
    tree = fat_tree(k)
    hosts = [host.name for host in tree.hosts]
    demands = [(host, hosts[(index + len(hosts) // 2) % len(hosts)]) for index, host in enumerate(hosts)]
    assert capacity_bps(tree, demands) == pytest.approx(len(hosts) * 10 * M, **EXACT)


def test_oversubscription_divides_the_capacity() -> None:
    tree = leaf_spine(2, 1, 4)
    assert capacity_bps(tree, [("h1", "h5"), ("h2", "h6"), ("h3", "h7"), ("h4", "h8")]) == pytest.approx(
        10 * M, **EXACT
    )


def test_the_common_rate_comes_before_the_sum() -> None:
    """h1 could send 10 Mbit/s to each neighbour if h1 -> h2 stood back; max-min gives all three the same 5 Mbit/s."""
    tree = leaf_spine(2, 2, 2)
    demands = [("h1", "h2"), ("h1", "h3"), ("h4", "h2")]
    assert capacity_bps(tree, demands) == pytest.approx(15 * M, **EXACT)
    assert fair_rates_bps(tree, demands) == mbits(5, 5, 5)


def test_incast_shares_the_receiver_and_a_bystander_gets_the_rest() -> None:
    tree = leaf_spine(4, 2, 2)
    demands = [("h1", "h8"), ("h3", "h8"), ("h5", "h8"), ("h6", "h8"), ("h1", "h4")]
    assert fair_rates_bps(tree, demands) == mbits(2.5, 2.5, 2.5, 2.5, 7.5)
    assert capacity_bps(tree, demands) == pytest.approx(17.5 * M, **EXACT)


def test_fair_rates_are_those_of_the_bottlenecks_one_after_the_other() -> None:
    tree = fabric(
        "kind: custom\nhosts: [a, b, c, d]\nswitches: [s, t]\n"
        "links: {list: [{ends: [a, s], rate: 2 Mbit/s}, [b, s], [c, s], [d, t], [s, t]]}"
    )
    assert fair_rates_bps(tree, [("a", "d"), ("b", "d"), ("c", "d")]) == mbits(2, 4, 4)


def test_a_demand_without_a_path_has_rate_0_and_does_not_hold_the_others_down() -> None:
    tree = leaf_spine(2, 2, 2)
    failed = frozenset({"h1-leaf1"})
    assert fair_rates_bps(tree, [("h1", "h3"), ("h2", "h4")], failed) == mbits(0, 10)
    assert capacity_bps(tree, [("h1", "h3"), ("h2", "h4")], failed) == pytest.approx(10 * M, **EXACT)
    assert capacity_bps(tree, [("h1", "h3")], failed) == 0 == capacity_bps(tree, [])


def test_both_directions_of_a_link_carry_its_rate_and_repeated_demands_share() -> None:
    tree = leaf_spine(2, 2, 1)
    assert capacity_bps(tree, [("h1", "h2"), ("h2", "h1")]) == pytest.approx(20 * M, **EXACT)
    assert fair_rates_bps(tree, [("h1", "h2"), ("h1", "h2")]) == mbits(5, 5)


def test_longer_ways_round_do_not_count() -> None:
    tree = fabric(
        "kind: custom\nhosts: [a, b]\nswitches: [s, t, u]\n"
        "links: {default: {rate: 10 Mbit/s}, host: {rate: 100 Mbit/s}, list: [[a, s], [b, t], [s, t], [s, u], [u, t]]}"
    )
    assert capacity_bps(tree, [("a", "b")]) == pytest.approx(10 * M, **EXACT)
    assert capacity_bps(tree, [("a", "b")], frozenset({"s-t"})) == 0


@settings(max_examples=15)
@given(
    st.lists(st.permutations(["h1", "h2", "h3", "h4"]).map(lambda order: (order[0], order[1])), min_size=1, max_size=6),
    st.sets(st.sampled_from([link.name for link in multi_plane(2).links]), max_size=4),
)
def test_equal_shares_never_beat_the_best_and_cuts_never_help(demands: list[tuple[str, str]], cut: set[str]) -> None:
    tree, failed = multi_plane(2), frozenset(cut)
    rates = fair_rates_bps(tree, demands, failed)
    best = capacity_bps(tree, demands, failed)
    assert sum(rates) <= best * (1 + 1e-6)
    served = [rate for rate in rates if rate]
    assert not served or min(served) * len(served) <= best * (1 + 1e-6)
    single = [capacity_bps(tree, [demand]) for demand in demands]
    assert all(rate <= alone * (1 + 1e-6) for rate, alone in zip(rates, single, strict=True))
    for source, target in demands:
        pair = [(source, target)]
        assert equal_share_capacity_bps(tree, pair, failed) <= capacity_bps(tree, pair, failed) * (1 + 1e-6)


def test_the_payload_share_is_4096_of_4198_bytes_and_scales_the_capacity() -> None:
    assert payload_share(4200) == 4096 / (14 + 40 + 8 + 40 + 4096)
    tree = multi_plane(4)
    whole = capacity_bps(tree, PERMUTATION)
    assert capacity_bps(tree, PERMUTATION, payload_share=0.5) == pytest.approx(whole / 2)


@pytest.mark.parametrize(("mtu", "payload"), [(9216, 4096), (4200, 4096), (4183, 2048), (1500, 1024), (1280, 1024)])
def test_the_payload_is_the_largest_rocev2_size_that_fits(mtu: int, payload: int) -> None:
    assert mrc_payload_bytes(mtu) == payload
    assert mrc_payload_bytes(4200, outer_bytes=40) == 2048, "the outer header of SRv6 needs a larger mtu"


def test_a_payload_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        payload_share(1500, 4096)
    with pytest.raises(ValueError, match="holds no MRC packet"):
        payload_share(300)


def test_tcp_spends_86_bytes_a_segment() -> None:
    assert tcp_payload_share(4200) == (4200 - 72) / 4214
