"""A plan of nodes and wires, and the one function that gives it ports, names, addresses and queues."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

from topologies import addresses
from topologies.graph import Fabric, Link, LinkParams, LinkTier, Node, Port
from topologies.model import LinkOptions, Topology
from topologies.quantities import Queue
from topologies.rtt import QUEUE_FLOOR_PACKETS, bdp_bytes, frame_bytes

MAX_LINKS = 50_000
"""More than any machine emulates; a plan beyond it is refused before it is made."""


@dataclass(frozen=True)
class Switch:
    """A switch to be. ``number`` counts from 1 within plane, tier and zone; ``leaf`` within plane and zone, or None."""

    name: str
    tier: str
    plane: int
    number: int
    zone: int = 0
    leaf: int | None = None


@dataclass(frozen=True)
class Wire:
    """A link to be, ``a`` on the lower tier. ``section`` names its tier in the model's ``links``."""

    a: str
    b: str
    plane: int
    section: str
    options: LinkOptions = field(default_factory=LinkOptions)

    @property
    def tier(self) -> LinkTier:
        """``host`` or ``fabric``."""
        return "host" if self.section == "host" else "fabric"


@dataclass
class Plan:
    """Nodes and wires in the order that numbers ports: host links first, then tier by tier."""

    planes: int = 1
    hosts: list[str] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)

    def link_names(self) -> list[str]:
        """The name of each wire: ``a-b``, with ``#2``, ``#3`` for further links between the same two nodes."""
        seen: Counter[frozenset[str]] = Counter()
        first: dict[frozenset[str], str] = {}
        names = []
        for wire in self.wires:
            ends = frozenset((wire.a, wire.b))
            seen[ends] += 1
            name = first.setdefault(ends, f"{wire.a}-{wire.b}")
            names.append(name if seen[ends] == 1 else f"{name}#{seen[ends]}")
        return names


def assemble(model: Topology, plan: Plan) -> Fabric:
    """The Fabric of a plan. Raises KeyError when a wire ends at a node that is not planned."""
    switches = {switch.name: switch for switch in plan.switches}
    leaves = _global_leaf_numbers(plan)
    taken = {*plan.hosts, *switches}
    next_port: Counter[str] = Counter()
    hosts_on: Counter[str] = Counter()

    def switch_port(wire: Wire, name: str) -> Port:
        next_port[name] += 1
        number = next_port[name]
        return Port(name, number, addresses.interface_name(name, number, taken), wire.plane)

    def host_port(wire: Wire) -> Port:
        leaf = switches[wire.b]
        if leaf.leaf is None:
            raise KeyError(f"{wire.b} is not planned as a leaf")
        hosts_on[wire.b] += 1
        place = (wire.plane, leaf.zone, leaf.leaf, hosts_on[wire.b])
        return Port(
            wire.a,
            wire.plane,
            addresses.interface_name(wire.a, wire.plane, taken),
            wire.plane,
            mac=addresses.mac(*place),
            ipv4=addresses.ipv4(wire.plane, leaves[wire.b], hosts_on[wire.b]),
            ipv6=addresses.ipv6(*place),
        )

    links, queues = [], []
    for wire, name in zip(plan.wires, plan.link_names(), strict=True):
        a = host_port(wire) if wire.tier == "host" else switch_port(wire, wire.a)
        params, queue = _params(model, wire, name)
        links.append(Link(name, a, switch_port(wire, wire.b), wire.tier, wire.plane, params))
        queues.append(queue)
    nodes = (
        *(Node(name, "host", "host") for name in plan.hosts),
        *(
            Node(
                switch.name,
                "switch",
                switch.tier,
                switch.plane,
                switch.zone,
                switch.leaf,
                addresses.dpid(switch.plane, switch.tier, switch.zone, switch.number),
            )
            for switch in plan.switches
        ),
    )
    draft = Fabric(model.name or model.kind, model.kind, plan.planes, model.mtu, nodes, tuple(links))
    sized = (
        replace(link, params=replace(link.params, queue_bytes=_queue_bytes(draft, link, queue)))
        for link, queue in zip(links, queues, strict=True)
    )
    return replace(draft, links=tuple(sized))


def _global_leaf_numbers(plan: Plan) -> dict[str, int]:
    """The number of each leaf over all zones of its plane, from 1: what IPv4 has room for."""
    count: Counter[int] = Counter()
    found = {}
    for switch in plan.switches:
        if switch.leaf is not None:
            count[switch.plane] += 1
            found[switch.name] = count[switch.plane]
    return found


def _params(model: Topology, wire: Wire, name: str) -> tuple[LinkParams, Queue]:
    """A link's parameters, but for the queue: its size may depend on the whole fabric."""
    options, *levels = model.links.levels(wire.section)
    for level in (*levels, wire.options, model.links.overrides.get(name, LinkOptions())):
        options = level.over(options)
    assert options.rate is not None and options.delay is not None
    assert options.loss is not None and options.queue is not None
    return LinkParams(options.rate, options.delay, options.loss, 0), options.queue


def _queue_bytes(draft: Fabric, link: Link, queue: Queue) -> int:
    if queue.size_bytes is not None:
        return queue.size_bytes
    return max(math.ceil(queue.bytes_for(bdp_bytes(draft, link))), QUEUE_FLOOR_PACKETS * frame_bytes(draft))
