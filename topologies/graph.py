"""The neutral graph of a fabric: nodes, ports, links and paths, with every name and address already decided.

Everything downstream (route programs, the Mininet network, the agents' EV tables) reads this graph and nothing else.
It holds no Mininet, OpenFlow or YAML object, and is immutable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

NodeKind = Literal["host", "switch"]
LinkTier = Literal["host", "fabric"]


@dataclass(frozen=True)
class LinkParams:
    """What one link does to packets, the same in both directions.

    Attributes:
        rate_bps: rate in bits per second, Ethernet header included (what HTB charges).
        delay_s: one-way propagation delay in seconds.
        loss: probability in [0, 1) that a packet is dropped at random.
        queue_bytes: limit of the queue in front of the link, in bytes.
    """

    rate_bps: int
    delay_s: float
    loss: float
    queue_bytes: int


@dataclass(frozen=True)
class Node:
    """A host or a switch.

    Attributes:
        name: unique, for example ``h1``, ``p1.leaf1``, ``edge2.1``, ``core3``.
        kind: ``host`` or ``switch``.
        tier: ``host``, ``leaf``, ``spine``, ``edge``, ``agg``, ``core`` or ``switch`` (custom fabrics).
        plane: the plane, counted from 1, that a switch belongs to; None for a host (it is in several).
        zone: group of leaves that addresses share a prefix for (the pod of a fat-tree, else 0); 0 for hosts.
        leaf: number of this leaf within its zone, counted from 1; None unless hosts are attached to the switch.
        dpid: OpenFlow datapath id, stable for a given YAML file; None for a host.
    """

    name: str
    kind: NodeKind
    tier: str
    plane: int | None = None
    zone: int = 0
    leaf: int | None = None
    dpid: int | None = None


@dataclass(frozen=True)
class Port:
    """One end of a link. Host ports carry addresses; switch ports do not.

    Attributes:
        node: name of the node that owns the port.
        number: OpenFlow port number, counted from 1.
        interface: Linux interface name, at most 15 characters, unique in the fabric.
        plane: the plane, counted from 1.
        mac, ipv4, ipv6: addresses of a host port, without prefix length; None on a switch port.
    """

    node: str
    number: int
    interface: str
    plane: int
    mac: str | None = None
    ipv4: str | None = None
    ipv6: str | None = None


@dataclass(frozen=True)
class Link:
    """A full-duplex link.

    Attributes:
        name: ``a-b``, lower tier first (``p1.leaf1-p1.spine2``, ``h1-p1.leaf1``); parallel links add ``#2``, ``#3``.
        a, b: its two ends, ``a`` on the lower tier.
        tier: ``host`` when one end is a host, else ``fabric``.
    """

    name: str
    a: Port
    b: Port
    tier: LinkTier
    plane: int
    params: LinkParams

    def port_of(self, node: str) -> Port:
        """The end of this link on ``node``. Raises KeyError when the node is not an end of it."""
        if self.a.node == node:
            return self.a
        if self.b.node == node:
            return self.b
        raise KeyError(f"{node} is not an end of {self.name}")

    def peer_of(self, node: str) -> Port:
        """The end of this link that is not on ``node``. Raises KeyError when the node is not an end of it."""
        return self.b if self.port_of(node) is self.a else self.a


@dataclass(frozen=True)
class Hop:
    """One link crossed in one direction: out of ``out``, into ``into``."""

    link: str
    out: Port
    into: Port


@dataclass(frozen=True)
class Path:
    """A shortest path between two hosts inside one plane.

    Attributes:
        index: the number that the EV's path field carries for this path, counted from 0.
        hops: the links in order, first out of the source host, last into the destination host.
    """

    plane: int
    index: int
    hops: tuple[Hop, ...]

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the links crossed, in order."""
        return tuple(hop.link for hop in self.hops)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes visited, source and destination host included."""
        return (self.hops[0].out.node, *(hop.into.node for hop in self.hops))


@dataclass(frozen=True)
class Fabric:
    """A whole fabric. Planes share hosts and nothing else.

    Attributes:
        name: the topology file's stem, or its ``name`` key.
        kind: ``fat_tree``, ``leaf_spine``, ``multi_plane`` or ``custom``.
        planes: number of planes.
        mtu: IP MTU of every interface, in bytes.
    """

    name: str
    kind: str
    planes: int
    mtu: int
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    @cached_property
    def node(self) -> dict[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def link(self) -> dict[str, Link]:
        """Links by name."""
        return {link.name: link for link in self.links}

    @cached_property
    def hosts(self) -> tuple[Node, ...]:
        """Hosts, in the order of the graph."""
        return tuple(node for node in self.nodes if node.kind == "host")

    @cached_property
    def switches(self) -> tuple[Node, ...]:
        """Switches, in the order of the graph."""
        return tuple(node for node in self.nodes if node.kind == "switch")

    @cached_property
    def links_of(self) -> dict[str, tuple[Link, ...]]:
        """Links of each node, by node name, ordered by port number."""
        found: dict[str, list[Link]] = {node.name: [] for node in self.nodes}
        for link in self.links:
            found[link.a.node].append(link)
            found[link.b.node].append(link)
        return {name: tuple(sorted(links, key=lambda link: link.port_of(name).number)) for name, links in found.items()}

    @cached_property
    def fabric_links_of(self) -> dict[str, tuple[Link, ...]]:
        """Links to other switches of each switch, by switch name, ordered by port number."""
        return {
            node.name: tuple(link for link in self.links_of[node.name] if link.tier == "fabric")
            for node in self.switches
        }

    @cached_property
    def neighbours(self) -> dict[str, tuple[tuple[Link, str], ...]]:
        """Links to other switches of each switch and the switch at their far end, ordered by port number."""
        return {
            name: tuple((link, link.peer_of(name).node) for link in links)
            for name, links in self.fabric_links_of.items()
        }

    @cached_property
    def hosts_of(self) -> dict[str, tuple[str, ...]]:
        """Names of the hosts attached to each leaf, by leaf name, ordered by port number."""
        found = {
            node.name: tuple(link.a.node for link in self.links_of[node.name] if link.tier == "host")
            for node in self.switches
        }
        return {name: hosts for name, hosts in found.items() if hosts}

    @cached_property
    def memo(self) -> dict[object, object]:
        """What this room derived from the graph and would otherwise compute again and again."""
        return {}

    @cached_property
    def host_port(self) -> dict[tuple[str, int], Port]:
        """The port of a host in a plane, by (host name, plane)."""
        return {(link.a.node, link.plane): link.a for link in self.links if link.tier == "host"}
