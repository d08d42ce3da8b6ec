"""With failed links: a packet arrives when there is any way, and is dropped, not looped, when there is none."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace

import networkx
import pytest

from controller.packet import broadcast_packet, host_packet
from controller.program import FabricProgram
from controller.routes import MODES, compile
from controller.transition import Change, phases
from controller.walk import Walker, any_of
from topologies.graph import Fabric

Build = Callable[[str], Fabric]

REACTING = [name for name, mode in MODES.items() if mode.reacts]
FABRICS = ["leaf-spine", "fat-tree-4", "planes-2", "custom"]


def fabric_links(network: Fabric) -> list[str]:
    return [link.name for link in network.links if link.tier == "fabric"]


def some_failures(network: Fabric, number: int) -> list[frozenset[str]]:
    """Every single failure, and some of several links at once, up to half of the fabric."""
    names = fabric_links(network)
    choose = random.Random(7)
    found = [frozenset({name}) for name in names]
    found += [frozenset(choose.sample(names, choose.randint(2, max(2, len(names) // 2)))) for _ in range(number)]
    return found


def connected(network: Fabric, failed: frozenset[str], plane: int) -> networkx.Graph:
    graph = networkx.Graph()
    graph.add_nodes_from(node.name for node in network.nodes)
    graph.add_edges_from(
        (link.a.node, link.b.node) for link in network.links if link.plane == plane and link.name not in failed
    )
    return graph


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("mode", REACTING)
def test_packets_arrive_exactly_when_a_way_is_left(fabric: Build, name: str, mode: str) -> None:
    network = fabric(name)
    hosts = [host.name for host in network.hosts]
    cut_off = 0
    for failed in some_failures(network, 30):
        walker = Walker(network, compile(network, mode, failed_links=failed), failed)
        graph = connected(network, failed, 1)
        for source, target in itertools.permutations(hosts[:: max(1, len(hosts) // 4)], 2):
            walk = walker.walk(host_packet(network, source, target, 1, "tcp", 40000, 5001), source, 1, any_of)
            assert not walk.loops
            if networkx.has_path(graph, source, target):
                assert {d.host for d in walk.deliveries} == {target}
                assert not walk.drops
            else:
                cut_off += 1
                assert not walk.deliveries
                assert walk.drops
    assert cut_off > 0, "no case without a way: the other half was not tested"


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("mode", REACTING)
def test_a_broadcast_reaches_whoever_can_be_reached_once(fabric: Build, name: str, mode: str) -> None:
    network = fabric(name)
    for failed in some_failures(network, 15):
        walker = Walker(network, compile(network, mode, failed_links=failed), failed)
        walk = walker.walk(broadcast_packet(network, "h1", 1), "h1", 1)
        reachable = networkx.node_connected_component(connected(network, failed, 1), "h1")
        assert sorted(d.host for d in walk.deliveries) == sorted(
            host.name for host in network.hosts if host.name in reachable and host.name != "h1"
        )
        assert not walk.loops


def test_the_last_uplink_of_a_leaf_cut_means_drop_and_not_back_down(fabric: Build) -> None:
    network = fabric("leaf-spine")
    failed = frozenset({"leaf1-spine1", "leaf1-spine2"})
    walker = Walker(network, compile(network, "ecmp", failed_links=failed), failed)
    walk = walker.walk(host_packet(network, "h1", "h8", 1, "tcp", 1, 2), "h1", 1)
    assert [(drop.at, drop.reason) for drop in walk.drops] == [("leaf1", "no flow")]


def test_disjoint_routes_do_not_react(fabric: Build) -> None:
    network = fabric("leaf-spine")
    assert compile(network, "disjoint", failed_links=frozenset({"leaf1-spine1"})) == compile(network, "disjoint")


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("mode", REACTING)
def test_no_state_between_two_programs_loops_or_loses_what_neither_loses(fabric: Build, name: str, mode: str) -> None:
    """Switches change one by one: after every single message group of every step, packets are walked.

    A pair that has a way before and after must have one in between, over links that are up.
    """
    network = fabric(name)
    hosts = [host.name for host in network.hosts]
    pairs = list(itertools.permutations(hosts[:: max(1, len(hosts) // 4)], 2))
    choose = random.Random(3)
    for failed in choose.sample(some_failures(network, 20), 4):
        for old_failed, new_failed in ((frozenset[str](), failed), (failed, frozenset[str]())):
            # On recovery the links are up all the time; on failure, old routes over the dead link are lost, not looped.
            down = new_failed
            old, new = (compile(network, mode, failed_links=links) for links in (old_failed, new_failed))
            state = _State(old)
            for step in phases(old.by_dpid, new.by_dpid):
                choose.shuffle(step)
                for change in step:
                    state.apply(change)
                    walker = Walker(network, state.program, down)
                    for source, target in pairs:
                        packet = host_packet(network, source, target, 1, "tcp", 40000, 5001)
                        walk = walker.walk(packet, source, 1, any_of)
                        assert not walk.loops, (failed, source, target)
                        if not down and networkx.has_path(connected(network, failed, 1), source, target):
                            assert {d.host for d in walk.deliveries} == {target}
                    broadcast = walker.walk(broadcast_packet(network, "h1", 1), "h1", 1)
                    copies = [d.host for d in broadcast.deliveries]
                    assert not broadcast.loops
                    assert len(copies) == len(set(copies))
            assert state.program.by_name.keys() == new.by_name.keys()
            for switch in new.switches:
                assert set(state.program.by_dpid[switch.dpid].flows) == set(switch.flows)
                assert set(state.program.by_dpid[switch.dpid].groups) == set(switch.groups)


@pytest.mark.parametrize("mode", REACTING)
def test_a_ring_of_switches_loops_no_broadcast_in_any_order_of_changes(fabric: Build, mode: str) -> None:
    """Two leaves and two spines are a ring; old and new tree leave out different links, and together none."""
    network = fabric("planes-2")
    for name in (link.name for link in network.links if link.tier == "fabric" and link.plane == 1):
        old = compile(network, mode, failed_links=frozenset({name}))
        new = compile(network, mode)
        done = _State(old)
        for step in phases(old.by_dpid, new.by_dpid):
            for order in itertools.permutations(step):
                state = _State(done.program)
                for change in order:
                    state.apply(change)
                    walk = Walker(network, state.program).walk(broadcast_packet(network, "h1", 1), "h1", 1)
                    assert not walk.loops, (name, [change.dpid for change in order])
            for change in step:
                done.apply(change)


def test_a_change_touches_only_what_differs(fabric: Build) -> None:
    network = fabric("fat-tree-4")
    old, new = (compile(network, "ecmp", failed_links=links) for links in (frozenset(), frozenset({"edge1.1-agg1.1"})))
    steps = phases(old.by_dpid, new.by_dpid)
    assert phases(old.by_dpid, old.by_dpid) == []
    assert sum(change.flow_mods for step in steps for change in step) < old.flow_count / 2


class _State:
    """A fabric's switches while changes are applied to them."""

    def __init__(self, program: FabricProgram) -> None:
        self.program = program

    def apply(self, change: Change) -> None:
        switch = self.program.by_dpid[change.dpid]
        groups = {group.group_id: group for group in (*switch.groups, *change.put_groups)}
        flows = {flow.key: flow for flow in (*switch.flows, *change.put_flows)}
        for dropped in change.drop_flows:
            del flows[dropped.key]
        for group_id in change.drop_groups:
            del groups[group_id]
        changed = replace(switch, flows=tuple(flows.values()), groups=tuple(groups.values()))
        self.program = replace(
            self.program,
            switches=tuple(changed if other.dpid == change.dpid else other for other in self.program.switches),
        )
