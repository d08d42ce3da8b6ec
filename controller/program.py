"""Flow and group records: what a switch is to be told, as plain immutable data.

A route mode compiles a fabric into a :class:`FabricProgram`; ``walk.py`` follows packets through it, ``openflow.py``
turns it into messages, :func:`diff` says what has to change to get from one to the next, and :func:`render` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

GroupKind = Literal["select", "ff", "all"]

ETH_IPV4 = 0x0800
ETH_ARP = 0x0806
ETH_IPV6 = 0x86DD
ETH_LLDP = 0x88CC
IP_TCP = 6
IP_UDP = 17
IP_ICMPV6 = 58

MAC_EXACT = (1 << 48) - 1
_GROUP_BIT = 1 << 40


class Masked(NamedTuple):
    """A value of which only the bits set in ``mask`` are compared."""

    value: int
    mask: int

    def covers(self, value: int) -> bool:
        """True when ``value`` agrees with this one in every bit of the mask."""
        return (value ^ self.value) & self.mask == 0


class Output(NamedTuple):
    """Send the packet out of a port. A switch never sends it back out of the port that it came from."""

    port: int


class ToGroup(NamedTuple):
    """Hand the packet to a group."""

    group_id: int


Action = Output | ToGroup


@dataclass(frozen=True, slots=True)
class Match:
    """What a flow matches. None means any; an empty match takes every packet.

    Attributes:
        in_port: OpenFlow port number that the packet came in by.
        eth_dst, eth_src: MAC addresses as 48-bit numbers, with masks.
        eth_type, ip_proto: exact values.
        udp_src: UDP source port, with a mask.
    """

    in_port: int | None = None
    eth_dst: Masked | None = None
    eth_src: Masked | None = None
    eth_type: int | None = None
    ip_proto: int | None = None
    udp_src: Masked | None = None


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """One flow. Identity on the switch is (priority, match); no action means drop.

    Attributes:
        distance: switches still to cross to the destination after this one; says in which order a change is safe
            (``transition.py``) and is not sent.
    """

    priority: int
    match: Match
    actions: tuple[Action, ...] = ()
    distance: int = field(default=0, compare=False)

    @property
    def key(self) -> tuple[int, Match]:
        """What identifies the flow on a switch."""
        return (self.priority, self.match)

    @property
    def is_broadcast(self) -> bool:
        """True for a flow that takes broadcast and multicast frames and hands them on."""
        mac = self.match.eth_dst
        return mac is not None and bool(mac.value & mac.mask & _GROUP_BIT) and self.match.in_port is not None


@dataclass(frozen=True, slots=True)
class Bucket:
    """One choice of a group.

    Attributes:
        bucket_id: identity of the bucket; Open vSwitch hashes it, so a bucket that stays keeps its flows.
        watch_port: port that must be up for the bucket to be taken (fast failover); None: always taken.
    """

    bucket_id: int
    actions: tuple[Action, ...]
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """How a select group chooses: hash of these header fields, seeded.

    Attributes:
        fields: OpenFlow field names; those that a packet does not have are left out of its hash.
        seed: 64-bit number (``selection_method_param`` of Open vSwitch).
    """

    fields: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One group; ``selection`` only on ``select``."""

    group_id: int
    kind: GroupKind
    buckets: tuple[Bucket, ...]
    selection: Selection | None = None


@dataclass(frozen=True)
class SwitchProgram:
    """Everything one switch is told."""

    dpid: int
    name: str
    flows: tuple[FlowRecord, ...]
    groups: tuple[GroupRecord, ...] = ()

    @cached_property
    def group(self) -> dict[int, GroupRecord]:
        """Groups by id."""
        return {group.group_id: group for group in self.groups}


@dataclass(frozen=True)
class FabricProgram:
    """The programs of all switches of a fabric, for one routing mode and one set of failed links.

    Attributes:
        seed: the experiment's seed of the per-switch hash seeds; None: every switch hashes alike.
        failed_links: names of the links that the routes avoid.
    """

    mode: str
    seed: int | None
    failed_links: frozenset[str]
    switches: tuple[SwitchProgram, ...]

    @cached_property
    def by_dpid(self) -> dict[int, SwitchProgram]:
        """Programs by datapath id."""
        return {switch.dpid: switch for switch in self.switches}

    @cached_property
    def by_name(self) -> dict[str, SwitchProgram]:
        """Programs by the switch's name."""
        return {switch.name: switch for switch in self.switches}

    @property
    def flow_count(self) -> int:
        """Number of flows in the whole fabric."""
        return sum(len(switch.flows) for switch in self.switches)

    @property
    def group_count(self) -> int:
        """Number of groups in the whole fabric."""
        return sum(len(switch.groups) for switch in self.switches)


def mac_number(mac: str) -> int:
    """``02:01:00:03:00:01`` as a 48-bit number."""
    return int(mac.replace(":", ""), 16)


def mac_text(number: int) -> str:
    """A 48-bit number as ``02:01:00:03:00:01``."""
    digits = f"{number:012x}"
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


def render(programs: Iterable[SwitchProgram]) -> str:
    """The programs as text, one flow or group a line, in the manner of ``ovs-ofctl dump-flows``."""
    lines: list[str] = []
    for switch in programs:
        lines.append(f"{switch.name} (dpid {switch.dpid}): {len(switch.flows)} flows, {len(switch.groups)} groups")
        lines += [f"  {_group_text(group)}" for group in switch.groups]
        lines += [f"  {_flow_text(flow)}" for flow in sorted(switch.flows, key=lambda flow: -flow.priority)]
    return "\n".join(lines) + "\n"


def _flow_text(flow: FlowRecord) -> str:
    return f"priority={flow.priority:<4} {_match_text(flow.match):<72} -> {_actions_text(flow.actions)}"


def _group_text(group: GroupRecord) -> str:
    text = f"group {group.group_id} {group.kind}"
    if group.selection is not None:
        text += f" hash({','.join(group.selection.fields)}) seed {group.selection.seed:#x}"
    for bucket in group.buckets:
        watch = "" if bucket.watch_port is None else f" while port {bucket.watch_port} is up"
        weight = "" if bucket.weight == 1 else f" weight {bucket.weight}"
        text += f" | bucket {bucket.bucket_id}: {_actions_text(bucket.actions)}{weight}{watch}"
    return text


def _actions_text(actions: tuple[Action, ...]) -> str:
    if not actions:
        return "drop"
    return ", ".join(f"port {a.port}" if isinstance(a, Output) else f"group {a.group_id}" for a in actions)


def _match_text(match: Match) -> str:
    parts: list[str] = []
    if match.in_port is not None:
        parts.append(f"in_port={match.in_port}")
    for name, mac in (("eth_src", match.eth_src), ("eth_dst", match.eth_dst)):
        if mac is not None:
            parts.append(f"{name}={_mac_match_text(mac)}")
    if match.eth_type is not None:
        known = {ETH_IPV4: "ipv4", ETH_ARP: "arp", ETH_IPV6: "ipv6", ETH_LLDP: "lldp"}
        parts.append(known.get(match.eth_type, f"eth_type={match.eth_type:#06x}"))
    if match.ip_proto is not None:
        parts.append({IP_TCP: "tcp", IP_UDP: "udp"}.get(match.ip_proto, f"ip_proto={match.ip_proto}"))
    if match.udp_src is not None:
        parts.append(f"udp_src={match.udp_src.value:#06x}/{match.udp_src.mask:#06x}")
    return " ".join(parts) or "any"


def _mac_match_text(mac: Masked) -> str:
    prefix_bits = mac.mask.bit_count()
    if mac.mask == MAC_EXACT:
        return mac_text(mac.value)
    if mac.mask == MAC_EXACT & ~((1 << (48 - prefix_bits)) - 1):
        return f"{mac_text(mac.value)}/{prefix_bits}"
    return f"{mac_text(mac.value)}/{mac_text(mac.mask)}"
