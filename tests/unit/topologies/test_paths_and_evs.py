"""Paths and entropy values: how many, which, in which order, and that every EV leads where it says."""

from __future__ import annotations

from itertools import pairwise

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.topologies.topology_text import fabric, fat_tree, leaf_spine, multi_plane
from topologies.ev import (
    FLOW_LABEL_PLANE_MASK,
    PORT_PATH_MASK,
    EvLayout,
    ev_of,
    ev_set,
    flow_label,
    path_of,
    udp_source_port,
)
from topologies.graph import Fabric
from topologies.load import load_fabric, shipped
from topologies.paths import count_routes, disjoint_count, leaf_of, next_links, path_count, paths

SMALL = [fat_tree(4), leaf_spine(4, 2, 2), leaf_spine(3, 5, 1), multi_plane(4), multi_plane(2, "k: 4")]
SMALL.append(load_fabric(shipped()["custom"]))


def pairs(tree: Fabric) -> list[tuple[str, str]]:
    hosts = [host.name for host in tree.hosts]
    return [(a, b) for a in hosts for b in hosts if a != b]


def graph_of(tree: Fabric, plane: int) -> networkx.MultiGraph:
    graph = networkx.MultiGraph()
    for link in tree.links:
        if link.plane == plane:
            graph.add_edge(link.a.node, link.b.node, key=link.name)
    return graph


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_a_fat_tree_has_k_half_squared_paths_between_pods_and_k_half_inside(k: int) -> None:
    tree = fat_tree(k, 1)
    half = k // 2
    hosts_per_pod = half
    assert path_count(tree, "h1", f"h{hosts_per_pod + 1}", 1) == half**2
    if half > 1:
        assert path_count(tree, "h1", "h2", 1) == half
    assert {path_count(fat_tree(k, 2), "h1", "h2", 1)} == {1}, "one path under the same edge switch"


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_between_pods_the_path_number_is_the_aggregation_switch_plus_k_half_times_its_uplink(k: int) -> None:
    tree = fat_tree(k)
    half = k // 2
    for path in paths(tree, "h1", tree.hosts[-1].name, 1):
        agg, core = path.index % half, (path.index % half) * half + path.index // half
        assert path.nodes[1:-1] == (
            "edge1.1", f"agg1.{agg + 1}", f"core{core + 1}", f"agg{k}.{agg + 1}", f"edge{k}.{half}",
        )  # fmt: skip


def test_in_a_leaf_spine_the_path_number_is_the_spine() -> None:
    for path in paths(multi_plane(2), "h1", "h4", 2):
        assert path.nodes == ("h1", "p2.leaf1", f"p2.spine{path.index + 1}", "p2.leaf2", "h4")
        assert path.links[1] == f"p2.leaf1-p2.spine{path.index + 1}"


@pytest.mark.parametrize("tree", SMALL, ids=lambda tree: f"{tree.kind}-{len(tree.nodes)}")
class TestEveryPair:
    def test_paths_are_all_shortest_paths_once_each(self, tree: Fabric) -> None:
        for plane in range(1, tree.planes + 1):
            graph = graph_of(tree, plane)
            for a, b in pairs(tree):
                found = paths(tree, a, b, plane)
                ways = 0
                for nodes in networkx.all_shortest_paths(networkx.Graph(graph), a, b):
                    product = 1
                    for here, there in pairwise(nodes):
                        product *= graph.number_of_edges(here, there)
                    ways += product
                assert len(found) == path_count(tree, a, b, plane) == len({path.links for path in found}) == ways
                assert [path.index for path in found] == list(range(len(found)))
                assert count_routes(tree, leaf_of(tree, a, plane), leaf_of(tree, b, plane)) == len(found)

    def test_paths_go_link_by_link_from_host_to_host(self, tree: Fabric) -> None:
        for a, b in pairs(tree):
            for plane in range(1, tree.planes + 1):
                for path in paths(tree, a, b, plane):
                    assert path.nodes[0] == a and path.nodes[-1] == b and len(set(path.nodes)) == len(path.nodes)
                    for hop, after in pairwise(path.hops):
                        assert hop.into.node == after.out.node
                    for hop in path.hops:
                        link = tree.link[hop.link]
                        assert {hop.out, hop.into} == {link.a, link.b} and link.plane == plane

    def test_the_first_paths_are_as_many_edge_disjoint_ones_as_there_are(self, tree: Fabric) -> None:
        for a, b in pairs(tree):
            for plane in range(1, tree.planes + 1):
                assert disjoint_count(paths(tree, a, b, plane)) == most_disjoint(tree, a, b, plane)

    def test_every_ev_leads_over_its_plane_and_together_they_take_every_path(self, tree: Fabric) -> None:
        for a, b in pairs(tree):
            evs = ev_set(tree, a, b, per_path_salts=2)
            for plane, own in evs.items():
                ways = [path_of(tree, a, b, ev) for ev in own]
                assert {path.plane for path in ways} == {plane}
                known = paths(tree, a, b, plane)
                assert set(ways) == set(known) and ways[: len(known)] == list(known)
            everything = [ev for own in evs.values() for ev in own]
            assert len(set(everything)) == len(everything)
            assert len({len(own) for own in evs.values()}) == 1, "the same number in every plane"


def most_disjoint(tree: Fabric, a: str, b: str, plane: int) -> int:
    """Edge-disjoint shortest routes between the leaves of two hosts, by networkx's maximum flow."""
    source, target = leaf_of(tree, a, plane), leaf_of(tree, b, plane)
    if source == target:
        return 1
    graph = networkx.DiGraph()
    for name, links in next_links(tree, target).items():
        for link in links:
            graph.add_edge(name, link.name, capacity=1)
            graph.add_edge(link.name, link.peer_of(name).node, capacity=1)
    return int(networkx.maximum_flow_value(graph, source, target))


@st.composite
def meshes(draw: st.DrawFn) -> Fabric:
    """A random connected graph of switches, parallel links included, with a host on the first and the last."""
    size = draw(st.integers(2, 8))
    chain = [(number, number + 1) for number in range(size - 1)]
    extra = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=14))
    links = draw(st.permutations(chain + [(a, b) for a, b in extra if a != b]))
    listed = ", ".join(f"[s{a}, s{b}]" for a, b in links)
    switches = ", ".join(f"s{number}" for number in range(size))
    return fabric(
        f"kind: custom\nhosts: [a, b]\nswitches: [{switches}]\nlinks: {{list: [[a, s0], [b, s{size - 1}], {listed}]}}"
    )


@settings(max_examples=150)
@given(meshes())
def test_in_any_mesh_the_first_paths_are_a_largest_disjoint_set_and_none_is_lost(tree: Fabric) -> None:
    found = paths(tree, "a", "b", 1)
    assert disjoint_count(found) == most_disjoint(tree, "a", "b", 1)
    last = len(tree.switches) - 1
    assert len(found) == count_routes(tree, "s0", f"s{last}") == len({path.links for path in found})
    assert len({len(path.hops) for path in found}) == 1


def test_a_greedy_choice_of_the_first_path_does_not_spoil_disjointness() -> None:
    """s-x-z-t comes first by port numbers, and takes both disjoint pairs apart."""
    tree = fabric(
        "kind: custom\nhosts: [a, b]\nswitches: [s, x, y, z, w, t]\n"
        "links: {list: [[a, s], [b, t], [s, x], [s, y], [x, z], [x, w], [y, z], [z, t], [w, t]]}"
    )
    found = paths(tree, "a", "b", 1)
    assert {path.nodes[1:-1] for path in found[:2]} == {("s", "x", "w", "t"), ("s", "y", "z", "t")}
    assert len(found) == 3 and disjoint_count(found) == 2


def test_failed_links_take_their_paths_away_and_the_others_keep_their_numbers() -> None:
    tree = multi_plane(2)
    left = paths(tree, "h1", "h3", 1, frozenset({"p1.leaf1-p1.spine2", "p2.leaf1-p2.spine1"}))
    assert [path.index for path in left] == [0, 2]
    assert left == (paths(tree, "h1", "h3", 1)[0], paths(tree, "h1", "h3", 1)[2])
    assert paths(tree, "h1", "h3", 1, frozenset({"h3-p1.leaf2"})) == ()


def test_next_links_find_the_way_round_that_static_paths_do_not_take() -> None:
    tree = leaf_spine(3, 2, 1)
    one = next_links(tree, "leaf2", frozenset({"leaf1-spine1"}))
    assert [link.name for link in one["leaf1"]] == ["leaf1-spine2"], "the equal-cost uplink that is left"
    assert [link.name for link in one["leaf3"]] == ["leaf3-spine1", "leaf3-spine2"]
    failed = frozenset({"leaf1-spine1", "leaf2-spine2"})
    assert paths(tree, "h1", "h2", 1, failed) == ()
    ways = next_links(tree, "leaf2", failed)
    assert [link.name for link in ways["leaf1"]] == ["leaf1-spine2"]
    assert [link.name for link in ways["spine2"]] == ["leaf3-spine2"]
    cut = next_links(tree, "leaf2", frozenset({"leaf2-spine1", "leaf2-spine2"}))
    assert cut == {}, "a leaf cut off is reached by nobody"


def test_a_host_has_no_path_to_itself_and_strangers_are_key_errors() -> None:
    tree = multi_plane(2)
    with pytest.raises(ValueError, match="two hosts"):
        paths(tree, "h1", "h1", 1)
    for source, target, plane in (("h1", "h99", 1), ("h1", "h2", 3), ("h1", "p1.leaf1", 1)):
        with pytest.raises(KeyError):
            paths(tree, source, target, plane)


@given(st.integers(1, 15), st.integers(0, 255), st.integers(0, 63))
def test_an_ev_holds_plane_path_and_salt_and_a_dynamic_source_port(plane: int, path: int, salt: int) -> None:
    ev = EvLayout(plane, path, salt).encode()
    assert EvLayout.decode(ev) == EvLayout(plane, path, salt)
    port, label = udp_source_port(ev), flow_label(ev)
    assert 49152 <= port <= 65535 and ev_of(port, label) == ev
    assert (port & PORT_PATH_MASK) >> 6 == path
    assert (label & FLOW_LABEL_PLANE_MASK) >> 12 == plane and label < 1 << 16


@pytest.mark.parametrize("fields", [(0, 0, 0), (16, 0, 0), (1, 256, 0), (1, -1, 0), (1, 0, 64)])
def test_fields_that_do_not_fit_are_refused(fields: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        EvLayout(*fields).encode()


@given(st.integers(-1, 1 << 33))
def test_any_number_is_an_ev_or_a_value_error(number: int) -> None:
    try:
        assert EvLayout.decode(number).encode() == number
    except ValueError as error:
        assert "entropy value" in str(error)


def test_an_ev_that_names_no_path_is_a_value_error() -> None:
    tree = multi_plane(2)
    for layout in (EvLayout(3, 0), EvLayout(1, 3)):
        with pytest.raises(ValueError, match="names"):
            path_of(tree, "h1", "h3", layout.encode())


def test_a_plane_with_fewer_paths_makes_up_by_salts() -> None:
    tree = fabric(
        "kind: custom\nhosts: [a, b]\nswitches: [s, t, {name: u, plane: 2}]\n"
        "links: {list: [[a, s], [b, t], [s, t], [s, t], [s, t], [a, u], [b, u]]}"
    )
    evs = ev_set(tree, "a", "b")
    assert [EvLayout.decode(ev) for ev in evs[1]] == [EvLayout(1, 0), EvLayout(1, 1), EvLayout(1, 2)]
    assert [EvLayout.decode(ev) for ev in evs[2]] == [EvLayout(2, 0, 0), EvLayout(2, 0, 1), EvLayout(2, 0, 2)]
    with pytest.raises(ValueError, match="too few"):
        ev_set(tree, "a", "b", per_path_salts=64)
