"""Where does this packet go? Follows it through the programs of all switches, without a switch.

A packet may end in several places: a broadcast is copied, and where a select group's choice is not known, every choice
is followed (then ``Walk.exact`` is False and the ends are alternatives, not copies).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from controller.ovs_hash import FIELD_ORDER, select_bucket
from controller.packet import Packet
from controller.program import Bucket, FabricProgram, FlowRecord, GroupRecord, Match, Output, SwitchProgram
from topologies.graph import Fabric, Hop, Link

Choose = Callable[[GroupRecord, tuple[Bucket, ...], Packet], tuple[Bucket, ...]]
"""Given a select group, its live buckets and a packet: the buckets that the packet may take, one when it is certain."""


@dataclass(frozen=True)
class Delivery:
    """A copy that reached a host, over these hops."""

    host: str
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class Drop:
    """A copy that ended on the way: at a switch (or the source host), and why."""

    at: str
    reason: str
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class Walk:
    """Where a packet went.

    Attributes:
        loops: the hops of copies that came to a switch by the same port again.
        exact: False when the choice of a group is not known; deliveries and drops are then "any of".
    """

    deliveries: tuple[Delivery, ...]
    drops: tuple[Drop, ...]
    loops: tuple[tuple[Hop, ...], ...]
    exact: bool

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The links crossed by each delivered copy, by name."""
        return tuple(tuple(hop.link for hop in delivery.hops) for delivery in self.deliveries)


def as_ovs(group: GroupRecord, live: tuple[Bucket, ...], packet: Packet) -> tuple[Bucket, ...]:
    """The bucket that Open vSwitch takes; all of them where its default selection is left to itself."""
    if group.selection is None:
        return live
    names = [name for name in FIELD_ORDER if name in group.selection.fields]
    values = [value for value in map(packet.hash_value, names) if value is not None]
    bucket = select_bucket(live, group.selection.seed, values)
    return (bucket,) if bucket is not None else ()


def any_of(_group: GroupRecord, live: tuple[Bucket, ...], _packet: Packet) -> tuple[Bucket, ...]:
    """Every live bucket: all paths that a packet could take."""
    return live


class FlowTable:
    """The flows of one switch, indexed by which fields and bits they match."""

    def __init__(self, flows: Iterable[FlowRecord]) -> None:
        self._shapes: dict[_Shape, dict[_Seen, FlowRecord]] = {}
        for flow in flows:
            shape = _shape(flow.match)
            seen = _seen_in_match(shape, flow.match)
            found = self._shapes.setdefault(shape, {})
            if seen not in found or found[seen].priority < flow.priority:
                found[seen] = flow

    def lookup(self, packet: Packet, in_port: int) -> FlowRecord | None:
        """The flow with the highest priority that matches; None for a miss."""
        best: FlowRecord | None = None
        for shape, flows in self._shapes.items():
            flow = flows.get(_seen_in_packet(shape, packet, in_port))
            if flow is not None and (best is None or flow.priority > best.priority):
                best = flow
        return best


class Walker:
    """Follows packets through one program; keeps the tables, so ask it for many."""

    def __init__(self, fabric: Fabric, program: FabricProgram, failed_links: frozenset[str] = frozenset()) -> None:
        """Packets are lost on ``failed_links`` (names), whether the program knows of them or not."""
        self._fabric = fabric
        self._program = program
        self._failed = failed_links
        self._tables = {switch.name: FlowTable(switch.flows) for switch in program.switches}
        self._link_at = {(end.node, end.number): link for link in fabric.links for end in (link.a, link.b)}

    def walk(self, packet: Packet, source: str, plane: int, choose: Choose = as_ovs) -> Walk:
        """Sends a packet out of a host's interface in a plane. Raises KeyError for an unknown host or plane."""
        port = self._fabric.host_port[(source, plane)]
        state = _State(packet, choose)
        self._cross(state, self._link_at[(source, port.number)], source, ())
        while state.copies:
            self._switch(state, *state.copies.pop())
        return Walk(tuple(state.deliveries), tuple(state.drops), tuple(state.loops), state.exact)

    def _cross(self, state: _State, link: Link, sender: str, hops: tuple[Hop, ...]) -> None:
        """Sends a copy over a link, away from ``sender``."""
        out, into = link.port_of(sender), link.peer_of(sender)
        if link.name in self._failed:
            state.drops.append(Drop(sender, f"{link.name} is down", hops))
            return
        longer = (*hops, Hop(link.name, out, into))
        if into.node not in self._tables:
            state.deliveries.append(Delivery(into.node, longer))
        elif any(hop.into.node == into.node and hop.into.number == into.number for hop in hops):
            state.loops.append(longer)
        else:
            state.copies.append((into.node, into.number, longer))

    def _switch(self, state: _State, name: str, in_port: int, hops: tuple[Hop, ...]) -> None:
        """What a switch does with a copy."""
        flow = self._tables[name].lookup(state.packet, in_port)
        if flow is None or not flow.actions:
            reason = "no flow" if flow is None or flow.match == Match() else "dropped by a flow"
            state.drops.append(Drop(name, reason, hops))
            return
        switch = self._program.by_name[name]
        for action in flow.actions:
            if isinstance(action, Output):
                self._output(state, name, action.port, in_port, hops)
            else:
                self._group(state, switch, action.group_id, in_port, hops)

    def _group(self, state: _State, switch: SwitchProgram, group_id: int, in_port: int, hops: tuple[Hop, ...]) -> None:
        group = switch.group.get(group_id)
        live = () if group is None else tuple(b for b in group.buckets if self._is_live(switch.name, b))
        if group is None or not live:
            state.drops.append(Drop(switch.name, f"group {group_id} has no live bucket", hops))
            return
        taken = live
        if group.kind == "ff":
            taken = live[:1]
        elif group.kind == "select":
            taken = state.choose(group, live, state.packet)
            state.exact = state.exact and len(taken) == 1
        for bucket in taken:
            for action in bucket.actions:
                if isinstance(action, Output):
                    self._output(state, switch.name, action.port, in_port, hops)
                else:
                    self._group(state, switch, action.group_id, in_port, hops)

    def _output(self, state: _State, name: str, number: int, in_port: int, hops: tuple[Hop, ...]) -> None:
        if number == in_port:
            state.drops.append(Drop(name, f"would leave by port {number}, where it came in", hops))
        elif (name, number) not in self._link_at:
            state.drops.append(Drop(name, f"there is no port {number}", hops))
        else:
            self._cross(state, self._link_at[(name, number)], name, hops)

    def _is_live(self, name: str, bucket: Bucket) -> bool:
        return bucket.watch_port is None or self._link_at[(name, bucket.watch_port)].name not in self._failed


class _State:
    """One walk in progress."""

    def __init__(self, packet: Packet, choose: Choose) -> None:
        self.packet = packet
        self.choose = choose
        self.copies: list[tuple[str, int, tuple[Hop, ...]]] = []
        self.deliveries: list[Delivery] = []
        self.drops: list[Drop] = []
        self.loops: list[tuple[Hop, ...]] = []
        self.exact = True


class _Shape(NamedTuple):
    """Which fields a match looks at, and through which masks."""

    in_port: bool
    eth_dst: int
    eth_src: int
    eth_type: bool
    ip_proto: bool
    udp_src: int


_Seen = tuple[int, int, int, int, int | None, int]
"""What a shape shows of a packet."""


def _shape(match: Match) -> _Shape:
    return _Shape(
        match.in_port is not None,
        match.eth_dst.mask if match.eth_dst else 0,
        match.eth_src.mask if match.eth_src else 0,
        match.eth_type is not None,
        match.ip_proto is not None,
        match.udp_src.mask if match.udp_src else 0,
    )


def _seen_in_match(shape: _Shape, match: Match) -> _Seen:
    packet = Packet(
        eth_src=match.eth_src.value if match.eth_src else 0,
        eth_dst=match.eth_dst.value if match.eth_dst else 0,
        eth_type=match.eth_type or 0,
        ip_proto=match.ip_proto,
        src_port=match.udp_src.value if match.udp_src else 0,
    )
    return _seen_in_packet(shape, packet, match.in_port or 0)


def _seen_in_packet(shape: _Shape, packet: Packet, in_port: int) -> _Seen:
    return (
        in_port if shape.in_port else 0,
        packet.eth_dst & shape.eth_dst,
        packet.eth_src & shape.eth_src,
        packet.eth_type if shape.eth_type else 0,
        packet.ip_proto if shape.ip_proto else None,
        packet.src_port & shape.udp_src,
    )
