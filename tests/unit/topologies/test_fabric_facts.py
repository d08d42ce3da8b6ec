"""What must hold for every fabric: sizes, names, addresses, link parameters."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.topologies.topology_text import fabric, fat_tree, leaf_spine, multi_plane
from topologies.addresses import interface_name, leaf_prefix4, leaf_prefix6, plane_prefix4, plane_prefix6, zone_prefix6
from topologies.document import Document
from topologies.graph import Fabric
from topologies.load import build, dump_topology, json_schema, load_fabric, load_topology, shipped
from topologies.rtt import base_rtt_s, bdp_bytes, longest_base_rtt_s

CUSTOM = """\
kind: custom
hosts: [alpha, beta, gamma]
switches: [core-a, core-b, {name: x.1, plane: 2}, {name: very-long-name1, plane: 2}]
links:
  default: {rate: 20 Mbit/s, delay: 1 ms}
  list:
    - [alpha, core-a]
    - [core-a, beta]
    - [gamma, core-b]
    - [alpha, very-long-name1]
    - {ends: [beta, x.1], rate: 5 Mbit/s}
    - [gamma, x.1]
    - [core-b, core-a]
    - [core-a, core-b]
    - [x.1, very-long-name1]
"""

MANY = [
    *(fat_tree(k) for k in (2, 4, 6, 8)),
    fat_tree(4, 5),
    fat_tree(22, 1),
    *(
        leaf_spine(*shape)
        for shape in ((1, 1, 2), (2, 1, 1), (4, 2, 2), (7, 5, 3), (250, 1, 1), (2, 256, 1), (2, 2, 254))
    ),
    *(multi_plane(planes) for planes in (1, 2, 4, 8, 15)),
    multi_plane(3, "k: 4, oversubscription: 1.5"),
    multi_plane(15, "k: 6"),
    fabric(CUSTOM),
    *(load_fabric(path) for path in shipped().values()),
]


@pytest.mark.parametrize("k", [2, 4, 6, 8, 10])
def test_a_fat_tree_has_the_textbook_numbers(k: int) -> None:
    tree = fat_tree(k)
    tiers = [switch.tier for switch in tree.switches]
    assert len(tree.hosts) == k**3 // 4
    assert {tier: tiers.count(tier) for tier in set(tiers)} == {"edge": k**2 // 2, "agg": k**2 // 2, "core": k**2 // 4}
    assert len(tree.links) == 3 * k**3 // 4
    assert all(len(tree.links_of[switch.name]) == k for switch in tree.switches), "every switch has k ports"


@pytest.mark.parametrize(("leaves", "spines", "hosts"), [(2, 1, 1), (4, 2, 2), (3, 5, 4), (16, 8, 2)])
def test_a_leaf_spine_has_the_textbook_numbers(leaves: int, spines: int, hosts: int) -> None:
    tree = leaf_spine(leaves, spines, hosts)
    assert (len(tree.hosts), len(tree.switches)) == (leaves * hosts, leaves + spines)
    assert len(tree.links) == leaves * (hosts + spines)


@pytest.mark.parametrize("planes", [1, 2, 4, 8, 15])
@pytest.mark.parametrize("shape", ["leaves: 3, spines: 2, hosts_per_leaf: 2", "k: 4"])
def test_planes_repeat_one_fabric_and_share_only_hosts(planes: int, shape: str) -> None:
    many, one = multi_plane(planes, shape), multi_plane(1, shape)
    assert len(many.hosts) == len(one.hosts)
    assert len(many.switches) == planes * len(one.switches) and len(many.links) == planes * len(one.links)
    graph = networkx.Graph((link.a.node, link.b.node) for link in many.links if link.tier == "fabric")
    assert networkx.number_connected_components(graph) == planes


def test_oversubscription_is_another_way_to_say_hosts_per_edge() -> None:
    assert fabric("kind: fat_tree\nk: 4\noversubscription: 1.5") == fat_tree(4, 3)
    assert fabric("kind: fat_tree\nk: 4\noversubscription: 1") == fat_tree(4)


@pytest.mark.parametrize("tree", MANY, ids=lambda tree: f"{tree.kind}-{tree.planes}-{len(tree.nodes)}")
class TestEveryFabric:
    def test_interface_names_fit_linux_and_are_unique(self, tree: Fabric) -> None:
        names = [port.interface for link in tree.links for port in (link.a, link.b)]
        assert len(set(names)) == len(names)
        assert all(len(name) <= 15 and re.fullmatch(r"[\w.~-]+", name) for name in names)
        assert not set(names) & {node.name for node in tree.nodes}, "a bridge may be called like its switch"

    def test_nodes_links_dpids_and_addresses_are_unique(self, tree: Fabric) -> None:
        ports = [link.a for link in tree.links if link.tier == "host"]
        for values in (
            [node.name for node in tree.nodes],
            [link.name for link in tree.links],
            [switch.dpid for switch in tree.switches],
            [port.mac for port in ports],
            [port.ipv4 for port in ports],
            [port.ipv6 for port in ports],
        ):
            assert None not in values and len(set(values)) == len(values)
        assert all(0 < (switch.dpid or 0) < 1 << 48 for switch in tree.switches)
        assert all(node.dpid is None and node.leaf is None for node in tree.hosts)

    def test_every_host_has_one_interface_in_each_plane_and_it_is_port_number_plane(self, tree: Fabric) -> None:
        for host in tree.hosts:
            links = tree.links_of[host.name]
            assert [link.plane for link in links] == list(range(1, tree.planes + 1))
            assert [link.port_of(host.name).number for link in links] == list(range(1, tree.planes + 1))
        for switch in tree.switches:
            ports = [link.port_of(switch.name) for link in tree.links_of[switch.name]]
            assert [port.number for port in ports] == list(range(1, len(ports) + 1))
            assert {port.plane for port in ports} == {switch.plane}

    def test_addresses_say_where_the_host_is(self, tree: Fabric) -> None:
        numbers: dict[int, int] = {}
        leaf_number = {}
        for switch in tree.switches:
            if switch.leaf is not None:
                numbers[switch.plane or 0] = numbers.get(switch.plane or 0, 0) + 1
                leaf_number[switch.name] = numbers[switch.plane or 0]
        assert set(leaf_number) == set(tree.hosts_of)
        for link in tree.links:
            if link.tier != "host":
                continue
            leaf, port = tree.node[link.b.node], link.a
            assert leaf.leaf is not None and port.mac and port.ipv6 and port.ipv4
            host = tree.hosts_of[leaf.name].index(port.node) + 1
            assert [int(byte, 16) for byte in port.mac.split(":")] == [2, link.plane, leaf.zone, leaf.leaf, 0, host]
            six, four = IPv6Address(port.ipv6), IPv4Address(port.ipv4)
            assert str(six) == port.ipv6
            assert six in IPv6Network(leaf_prefix6(link.plane, leaf.zone, leaf.leaf))
            assert six in IPv6Network(zone_prefix6(link.plane, leaf.zone))
            assert six in IPv6Network(plane_prefix6(link.plane))
            assert four in IPv4Network(leaf_prefix4(link.plane, leaf_number[leaf.name]))
            assert four in IPv4Network(plane_prefix4(link.plane))

    def test_every_plane_connects_all_hosts(self, tree: Fabric) -> None:
        for plane in range(1, tree.planes + 1):
            graph = networkx.Graph((link.a.node, link.b.node) for link in tree.links if link.plane == plane)
            assert networkx.is_connected(graph) and {host.name for host in tree.hosts} <= set(graph)


def test_names_are_those_of_the_documents() -> None:
    tree = multi_plane(2, "k: 4")
    assert {"h1", "p1.edge1.2", "p2.agg4.1", "p1.core3"} <= set(tree.node)
    assert {"h1-p1.edge1.1", "p1.edge1.1-p1.agg1.2", "p2.agg1.2-p2.core3"} <= set(tree.link)
    assert tree.host_port["h1", 2].interface == "h1-eth2"
    assert tree.link["p1.edge1.1-p1.agg1.2"].a.interface == "p1.edge1.1-eth4"
    assert leaf_spine(2, 2, 1).link["leaf1-spine2"].a.interface == "leaf1-eth3"


def test_addresses_of_a_pod_share_a_prefix() -> None:
    port = multi_plane(2, "k: 4").host_port["h7", 2]
    assert (port.mac, port.ipv6, port.ipv4) == ("02:02:02:02:00:01", "fd00:2:202::1", "10.2.4.1")
    assert leaf_prefix6(2, 2, 3) == "fd00:2:203::/48"


def test_dpids_do_not_come_from_digits_in_names() -> None:
    tree = fabric(CUSTOM)
    renamed = fabric(CUSTOM.replace("core-a", "s77").replace("x.1", "core"))
    assert [switch.dpid for switch in tree.switches] == [switch.dpid for switch in renamed.switches]


def test_changing_a_link_changes_no_name_address_or_dpid() -> None:
    slow = fabric(CUSTOM.replace("20 Mbit/s", "1 Mbit/s"))
    for before, after in zip(fabric(CUSTOM).links, slow.links, strict=True):
        assert (before.name, before.a, before.b) == (after.name, after.a, after.b)
        assert after.params.rate_bps in (1_000_000, 5_000_000)


def test_a_custom_fabric_takes_host_ends_first_and_numbers_parallel_links() -> None:
    tree = fabric(CUSTOM)
    assert [link.name for link in tree.links if link.plane == 1] == [
        "alpha-core-a", "beta-core-a", "gamma-core-b", "core-b-core-a", "core-b-core-a#2",
    ]  # fmt: skip
    assert tree.host_port["beta", 2].interface == "beta-eth2"
    assert {tree.node[name].leaf for name in ("core-a", "core-b")} == {1, 2}


@given(st.lists(st.tuples(st.text("abc-.1", min_size=1, max_size=15), st.integers(1, 600)), unique=True, max_size=30))
def test_shortened_interface_names_stay_unique(ends: list[tuple[str, int]]) -> None:
    taken: set[str] = set()
    names = [interface_name(node, port, taken) for node, port in ends]
    assert len(set(names)) == len(ends) and all(len(name) <= 15 for name in names)


OPTIONS = {
    "rate": ("7 Mbit/s", "rate_bps", 7_000_000),
    "delay": ("3 ms", "delay_s", 0.003),
    "loss": ("2 %", "loss", 0.02),
    "queue": ("100 KB", "queue_bytes", 100_000),
}
PLACES = {
    "default": ("kind: fat_tree\nk: 4\nlinks: {default: {%s}}", {"h1-edge1.1", "edge1.1-agg1.1", "agg1.1-core1"}),
    "host": ("kind: fat_tree\nk: 4\nlinks: {host: {%s}}", {"h1-edge1.1"}),
    "fabric": ("kind: fat_tree\nk: 4\nlinks: {fabric: {%s}}", {"edge1.1-agg1.1", "agg1.1-core1"}),
    "edge_agg": ("kind: fat_tree\nk: 4\nlinks: {edge_agg: {%s}}", {"edge1.1-agg1.1"}),
    "agg_core": ("kind: fat_tree\nk: 4\nlinks: {agg_core: {%s}}", {"agg1.1-core1"}),
    "override": ("kind: fat_tree\nk: 4\nlinks: {overrides: {agg1.1-core1: {%s}}}", {"agg1.1-core1"}),
    "plane tier": ("kind: multi_plane\nplanes: 2\nk: 4\nlinks: {agg_core: {%s}}", {"p2.agg1.1-p2.core1"}),
    "leaf-spine tier": (
        "kind: leaf_spine\nleaves: 2\nspines: 2\nhosts_per_leaf: 1\nlinks: {fabric: {%s}}",
        {"leaf1-spine1", "leaf2-spine2"},
    ),
    "listed link": (
        "kind: custom\nhosts: [a, b]\nswitches: [s, t]\n"
        "links: {list: [[a, s], [b, t], {ends: [s, t], %s}, [s, t]]}",
        {"s-t"},
    ),
    "custom override": (
        "kind: custom\nhosts: [a, b]\nswitches: [s, t]\n"
        "links: {list: [[a, s], [b, t], [s, t], [s, t]], overrides: {'s-t#2': {%s}}}",
        {"s-t#2"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("place", PLACES)
def test_every_link_option_works_at_every_level_and_only_there(place: str, option: str) -> None:
    text, links = PLACES[place]
    written, attribute, value = OPTIONS[option]
    tree = fabric(text % f"{option}: {written}")
    touched = {link.name for link in tree.links if getattr(link.params, attribute) == value}
    assert links <= touched
    if place == "host":
        assert touched == {link.name for link in tree.links if link.tier == "host"}
    if place in ("override", "listed link", "custom override"):
        assert touched == links


def test_the_more_specific_level_wins() -> None:
    links = (
        "links:\n  default: {rate: 1 Mbit/s, delay: 1 ms}\n  fabric: {rate: 2 Mbit/s}\n  agg_core: {rate: 3 Mbit/s}\n"
        "  overrides: {agg1.1-core1: {rate: 4 Mbit/s}}\n"
    )
    tree = fabric(f"kind: fat_tree\nk: 4\n{links}")
    names = ("h1-edge1.1", "edge1.1-agg1.1", "agg1.1-core2", "agg1.1-core1")
    assert [tree.link[name].params.rate_bps for name in names] == [10**6, 2 * 10**6, 3 * 10**6, 4 * 10**6]
    assert {link.params.delay_s for link in tree.links} == {0.001}


def test_defaults_are_10_mbits_without_delay_or_loss_and_a_queue_of_5_bdp() -> None:
    tree = leaf_spine(2, 2, 2)
    link = tree.links[0]
    assert (tree.mtu, link.params.rate_bps, link.params.delay_s, link.params.loss) == (4200, 10**7, 0.0, 0.0)
    assert link.params.queue_bytes == 5 * bdp_bytes(tree, link) == 5 * 4 * (4214 + 120)


def test_the_base_rtt_is_a_full_packet_out_and_a_control_packet_back_over_every_hop() -> None:
    tree = fabric(
        "kind: leaf_spine\nleaves: 2\nspines: 1\nhosts_per_leaf: 2\nlinks: {fabric: {rate: 5 Mbit/s, delay: 1 ms}}"
    )
    host_s, fabric_s = (4214 + 120) * 8 / 10**7, (4214 + 120) * 8 / (5 * 10**6) + 0.002
    assert base_rtt_s(tree, "h1", "h3") == pytest.approx(2 * host_s + 2 * fabric_s)
    assert base_rtt_s(tree, "h1", "h2") == pytest.approx(2 * host_s)
    assert longest_base_rtt_s(tree) == pytest.approx(2 * host_s + 2 * fabric_s)


@pytest.mark.parametrize("tree", [tree for tree in MANY if len(tree.hosts) <= 16], ids=lambda tree: tree.name)
def test_the_longest_base_rtt_is_that_of_the_slowest_pair(tree: Fabric) -> None:
    hosts = [host.name for host in tree.hosts]
    pairs = [(a, b) for a in hosts for b in hosts if a != b]
    assert longest_base_rtt_s(tree) == pytest.approx(max(base_rtt_s(tree, a, b) for a, b in pairs))


def test_a_queue_in_bdp_holds_at_least_eight_packets_and_one_in_bytes_is_taken_as_it_is() -> None:
    tree = fabric("kind: leaf_spine\nleaves: 2\nspines: 1\nhosts_per_leaf: 1\nlinks: {default: {queue: 0.1 bdp}, "
                  "host: {queue: 5 KB}}")  # fmt: skip
    assert tree.link["leaf1-spine1"].params.queue_bytes == 8 * 4214
    assert tree.link["h1-leaf1"].params.queue_bytes == 5000


@pytest.mark.parametrize("path", shipped().values(), ids=lambda path: path.stem)
def test_a_shipped_file_opens_with_a_comment_and_is_written_back_to_the_same_fabric(path: Path) -> None:
    assert path.read_text().startswith("# ")
    model = load_topology(path)
    text = dump_topology(model)
    assert build(load_topology(Document.parse(text))) == build(model)
    assert all(word in text for word in ("rate: 10 Mbit/s", "delay: 0 ms", "queue: 5 bdp", "mtu: 4200 B"))


def test_the_topologies_that_the_project_promises_are_shipped() -> None:
    fabrics = {name: load_fabric(path) for name, path in shipped().items()}
    assert fabrics["multi_plane"].planes == 4 and fabrics["multi_plane_2"].planes == 2
    assert fabrics["multi_plane_8"].planes == 8 and len(fabrics["fat_tree_k6"].hosts) == 54
    assert {tree.kind for tree in fabrics.values()} == {"fat_tree", "leaf_spine", "multi_plane", "custom"}
    assert all(tree.name == name for name, tree in fabrics.items())


def test_k_is_the_only_edit_from_one_fat_tree_to_the_next() -> None:
    document = Document.load(shipped()["fat_tree"])
    document.set("k", 6, "--set k=6")
    assert load_fabric(document).nodes == load_fabric(shipped()["fat_tree_k6"]).nodes


def test_the_json_schema_names_every_kind_and_every_unit() -> None:
    schema = json_schema()
    assert {"FatTree", "LeafSpine", "MultiPlane", "Custom"} <= set(schema["$defs"])
    rate = schema["$defs"]["LinkOptions"]["properties"]["rate"]["anyOf"][0]
    assert re.match(rate["pattern"], "20 Mbit/s") and not re.match(rate["pattern"], "20")
