"""The fake table: in every mode, every packet arrives once, by the right path, and nothing loops.

Covered completely for k = 4, every multi-plane, leaf-spine and the custom fabric: every pair of hosts, every EV. For k
= 6 and k = 8 by symmetry: switches tell the hosts of a leaf apart on that leaf only, so every pair of leaves is walked
between the leaves' first hosts (k = 8: from every third leaf, which includes every pod), in disjoint mode with every
EV, else with every fifth; and every host to and from the hosts of one leaf, with one EV. A complete sweep of k = 8
takes a minute.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from controller.packet import broadcast_packet, ev_packet, host_packet
from controller.program import ETH_LLDP, FabricProgram, mac_number
from controller.routes import MODES, compile
from controller.walk import Walk, Walker, any_of
from topologies.ev import EvLayout, ev_set, path_of
from topologies.graph import Fabric
from topologies.paths import paths

Build = Callable[[str], Fabric]

SMALL = ("leaf-spine", "fat-tree-4", "planes-2", "planes-4", "planes-8", "planes-2-of-fat-tree", "custom")
LARGE = ("fat-tree-6", "fat-tree-8")


def host_pairs(fabric: Fabric) -> Iterator[tuple[str, str]]:
    if len(fabric.hosts) <= 20:
        yield from itertools.permutations((host.name for host in fabric.hosts), 2)
        return
    leaves = list(fabric.hosts_of.values())
    sources = leaves if len(leaves) < 20 else leaves[::3]
    for source in sources:
        for target in leaves:
            if source != target:
                yield source[0], target[0]


def arrives_once(walk: Walk, target: str) -> bool:
    return [d.host for d in walk.deliveries] == [target] and not walk.drops and not walk.loops


@pytest.mark.parametrize("name", SMALL + LARGE)
@pytest.mark.parametrize("mode", MODES)
def test_every_ev_of_every_pair_arrives_once(fabric: Build, name: str, mode: str) -> None:
    network = fabric(name)
    walker = Walker(network, compile(network, mode))
    walked = 0
    for source, target in host_pairs(network):
        for plane, evs in ev_set(network, source, target).items():
            # Without a pin all EVs of a pair are alike, and ECMP's choices are the subject of another file.
            for ev in evs if mode == "disjoint" or name in SMALL else evs[::5]:
                walk = walker.walk(ev_packet(network, source, target, ev), source, plane)
                assert arrives_once(walk, target), (source, target, hex(ev), walk)
                assert walk.exact
                assert len(walk.paths[0]) == len(paths(network, source, target, plane)[0].links), "a longer way round"
                if mode == "disjoint":
                    assert walk.paths[0] == path_of(network, source, target, ev).links
                walked += 1
    assert walked > 0


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("mode", MODES)
def test_every_host_of_a_large_fabric_reaches_every_other(fabric: Build, name: str, mode: str) -> None:
    network = fabric(name)
    walker = Walker(network, compile(network, mode))
    first_leaf = next(iter(network.hosts_of.values()))
    for near in first_leaf:
        for far in (host.name for host in network.hosts):
            if near != far:
                ev = EvLayout(1, 0, 3).encode()
                assert arrives_once(walker.walk(ev_packet(network, near, far, ev), near, 1), far)
                assert arrives_once(walker.walk(ev_packet(network, far, near, ev), far, 1), near)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("proto", ["tcp", "icmp"])
def test_other_protocols_arrive_in_every_mode(fabric: Build, name: str, mode: str, proto: str) -> None:
    network = fabric(name)
    walker = Walker(network, compile(network, mode))
    for source, target in host_pairs(network):
        for plane in range(1, network.planes + 1):
            packet = host_packet(network, source, target, plane, proto, 49152 + 77, 5001)
            assert arrives_once(walker.walk(packet, source, plane), target)


@pytest.mark.parametrize("name", SMALL)
def test_disjoint_sends_unknown_path_numbers_and_low_ports_by_the_single_route(fabric: Build, name: str) -> None:
    network = fabric(name)
    disjoint, single = (Walker(network, compile(network, mode)) for mode in ("disjoint", "single"))
    for source, target in host_pairs(network):
        for port in (EvLayout(1, 255, 0).encode() & 0xFFFF, 33000, 0):
            packet = host_packet(network, source, target, 1, "udp", port, 4791)
            assert disjoint.walk(packet, source, 1) == single.walk(packet, source, 1)


def test_the_salt_of_an_ev_does_not_change_a_disjoint_path(fabric: Build) -> None:
    network = fabric("fat-tree-4")
    walker = Walker(network, compile(network, "disjoint"))
    for salt in (0, 1, 63):
        ev = EvLayout(1, 2, salt).encode()
        assert (
            walker.walk(ev_packet(network, "h1", "h16", ev), "h1", 1).paths[0]
            == path_of(network, "h1", "h16", ev).links
        )


def test_sources_that_number_their_paths_differently_are_told_apart(fabric: Build) -> None:
    """The custom fabric has a switch where path 1 of one source is not path 1 of the other."""
    network = fabric("custom")
    program = compile(network, "disjoint")
    assert any(flow.match.eth_src is not None for switch in program.switches for flow in switch.flows)


@pytest.mark.parametrize("name", SMALL + LARGE)
def test_ecmp_offers_every_shortest_path_and_no_other(fabric: Build, name: str) -> None:
    network = fabric(name)
    walker = Walker(network, compile(network, "ecmp"))
    for source, target in random.Random(1).sample(list(host_pairs(network)), 4):
        walk = walker.walk(host_packet(network, source, target, 1, "tcp", 40000, 5001), source, 1, any_of)
        assert set(walk.paths) == {path.links for path in paths(network, source, target, 1)}
        assert walk.exact == (len(walk.paths) == 1)


@pytest.mark.parametrize("name", SMALL + LARGE)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["arp", "nd"])
def test_every_other_host_gets_one_copy_of_a_broadcast(fabric: Build, name: str, mode: str, kind: str) -> None:
    network = fabric(name)
    walker = Walker(network, compile(network, mode))
    for source in [host.name for host in network.hosts][:: max(1, len(network.hosts) // 3)]:
        for plane in range(1, network.planes + 1):
            walk = walker.walk(broadcast_packet(network, source, plane, kind), source, plane)
            others = sorted(host.name for host in network.hosts if host.name != source)
            assert sorted(d.host for d in walk.deliveries) == others
            assert not walk.loops


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("mode", MODES)
def test_lldp_never_leaves_a_switch(fabric: Build, name: str, mode: str) -> None:
    network = fabric(name)
    walk = Walker(network, compile(network, mode)).walk(broadcast_packet(network, "h1", 1, "lldp"), "h1", 1)
    assert not walk.deliveries
    assert len(walk.drops) == 1


@pytest.mark.parametrize("name", SMALL + LARGE)
@pytest.mark.parametrize("mode", MODES)
def test_an_address_that_nobody_has_is_dropped_and_never_loops(fabric: Build, name: str, mode: str) -> None:
    network = fabric(name)
    walker = Walker(network, compile(network, mode))
    known = host_packet(network, "h1", network.hosts[-1].name, 1, "udp", EvLayout(1, 1, 0).encode() & 0xFFFF, 4791)
    zones = sorted({switch.zone for switch in network.switches})
    for zone, leaf, host in itertools.product([*zones, 200], [1, 2, 3, 200], [99]):
        packet = replace(known, eth_dst=mac_number(f"02:01:{zone:02x}:{leaf:02x}:00:{host:02x}"))
        walk = walker.walk(packet, "h1", 1, any_of)
        assert not walk.deliveries
        assert not walk.loops
        assert walk.drops


@pytest.mark.parametrize(("name", "most"), [("fat-tree-4", 400), ("fat-tree-6", 2000), ("fat-tree-8", 7000)])
def test_tables_stay_small(fabric: Build, name: str, most: int) -> None:
    network = fabric(name)
    for mode in MODES:
        assert compile(network, mode).flow_count <= most


def test_no_two_flows_of_a_switch_share_priority_and_match(fabric: Build) -> None:
    for name, mode in itertools.product(SMALL, MODES):
        for switch in compile(fabric(name), mode).switches:
            keys = [flow.key for flow in switch.flows]
            assert len(keys) == len(set(keys))


def test_a_missed_packet_is_counted_by_a_flow_of_its_own(fabric: Build) -> None:
    """With no flow at all Open vSwitch drops too, but no counter says so."""
    for switch in compile(fabric("leaf-spine"), "ecmp").switches:
        (miss,) = [flow for flow in switch.flows if flow.priority == 0]
        assert miss.actions == ()


def test_compiling_twice_gives_the_same_program(fabric: Build) -> None:
    network = fabric("fat-tree-4")
    for mode in MODES:
        first: FabricProgram = compile(network, mode, seed=5)
        assert first == compile(network, mode, seed=5)


def test_unknown_modes_and_links_are_refused_by_name(fabric: Build) -> None:
    with pytest.raises(ValueError, match=r"unknown routing mode 'flood' \(known: single, ecmp, disjoint"):
        compile(fabric("leaf-spine"), "flood")
    with pytest.raises(ValueError, match="unknown links: leaf9-spine1"):
        compile(fabric("leaf-spine"), "ecmp", failed_links=frozenset({"leaf9-spine1"}))


def test_lldp_is_stopped_by_type_and_by_address(fabric: Build) -> None:
    for switch in compile(fabric("planes-2"), "single").switches:
        stopped = [flow.match for flow in switch.flows if flow.priority == 500 and not flow.actions]
        assert any(match.eth_type == ETH_LLDP for match in stopped)
        assert any(match.eth_dst and match.eth_dst.covers(mac_number("01:80:c2:00:00:00")) for match in stopped)
