"""``ecmp``: all shortest paths, one of them chosen at each switch by a hash of the five-tuple.

Open vSwitch's default selection hashes no UDP port, so flows that differ only in their UDP source port (all of MRC's)
would take one path: the select groups name their method and fields. Each switch seeds its hash differently; with one
seed for all, a switch above chooses among flows that have already been sorted by the very same hash, and uses a part of
its ports only (polarisation). ``seed=None`` shows it.
"""

from __future__ import annotations

import zlib

from controller.program import Action, Bucket, FlowRecord, GroupRecord, Output, Selection, ToGroup
from controller.routes.mode import Context, Mode, SwitchRoutes
from controller.routes.reach import Leaf
from controller.routes.rules import leaf_flows
from topologies.graph import Node

HASH_FIELDS = ("ipv4_src", "ipv4_dst", "ipv6_src", "ipv6_dst", "tcp_src", "tcp_dst", "udp_src", "udp_dst")

_U64 = (1 << 64) - 1
_LARGEST_GROUP_ID = 0x7FFF_FFFF


def switch_seed(seed: int | None, dpid: int) -> int:
    """The 64-bit hash seed of a switch, from the experiment's seed (the mixing steps of splitmix64); 0 without one."""
    if seed is None:
        return 0
    mixed = (seed * 0x9E37_79B9_7F4A_7C15 + dpid * 0xD1B5_4A32_D192_ED03) & _U64
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58_476D_1CE4_E5B9) & _U64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D0_49BB_1331_11EB) & _U64
    return mixed ^ (mixed >> 31)


def group_id(ports: tuple[int, ...]) -> int:
    """The id of the group over these ports: the same ports always make the same group.

    So a failure never changes a group under a flow that still uses it; flows move to another group.
    """
    if ports[-1] < 31:
        return sum(1 << port for port in ports)
    return zlib.crc32(repr(ports).encode()) & _LARGEST_GROUP_ID or 1


def _prepare(context: Context) -> SwitchRoutes:
    def routes(switch: Node) -> tuple[list[FlowRecord], list[GroupRecord]]:
        seed = switch_seed(context.seed, switch.dpid or 0)
        groups: dict[int, GroupRecord] = {}

        def action(leaf: Leaf, ports: tuple[int, ...]) -> Action:
            if len(ports) == 1:
                return Output(ports[0])
            group = _group(ports, seed)
            if groups.setdefault(group.group_id, group) != group:
                raise ValueError(f"{switch.name}: groups {groups[group.group_id]} and {group} share an id")
            return ToGroup(group.group_id)

        flows, _ = leaf_flows(context.reach, switch, action)
        return flows, [groups[number] for number in sorted(groups)]

    return routes


def _group(ports: tuple[int, ...], seed: int) -> GroupRecord:
    # The bucket's id is its port: Open vSwitch scores each bucket by id, so losing one moves only the flows that used
    # it.
    buckets = tuple(Bucket(port, (Output(port),)) for port in ports)
    return GroupRecord(group_id(ports), "select", buckets, Selection(HASH_FIELDS, seed))


MODE = Mode(
    "ecmp", "all shortest paths, chosen at each switch by a hash of the five-tuple", reacts=True, prepare=_prepare
)
