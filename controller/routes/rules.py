"""The parts that route modes are made of: priorities, MAC prefixes, and flows for hosts and leaves.

Addresses are structured (``02:plane:zone:leaf:host hi:host lo``), so a switch needs one flow for a leaf, and one for a
whole zone when all its leaves lie the same way. There is no default route: a packet to an address that nobody has finds
no flow and is dropped and counted, instead of wandering.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from controller.program import (
    ETH_LLDP,
    MAC_EXACT,
    Action,
    FlowRecord,
    Masked,
    Match,
    Output,
    mac_number,
)
from controller.routes.reach import Leaf, Reach
from topologies.graph import Fabric, Node

# The higher wins. Between two steps there is room for a later mode.
GUARD_PRIORITY = 500
BROADCAST_PRIORITY = 400
HOST_PRIORITY = 300
PINNED_FROM_LEAF_PRIORITY = 260
PINNED_LEAF_PRIORITY = 250
PINNED_ZONE_PRIORITY = 240
LEAF_PRIORITY = 200
ZONE_PRIORITY = 100
MISS_PRIORITY = 0

_LEAF_MASK = MAC_EXACT & ~0xFFFF
_ZONE_MASK = MAC_EXACT & ~0xFF_FFFF
_LINK_LOCAL_GROUPS = Masked(mac_number("01:80:c2:00:00:00"), mac_number("ff:ff:ff:ff:ff:f0"))

Choice = TypeVar("Choice")


class Step(NamedTuple):
    """What a switch does for a leaf, and how many links away the leaf is."""

    action: Action
    distance: int


def leaf_prefix(leaf: Leaf) -> Masked:
    """The MAC prefix (32 bits) that all hosts of a leaf share."""
    return Masked(0x02 << 40 | leaf.plane << 32 | leaf.zone << 24 | leaf.leaf << 16, _LEAF_MASK)


def zone_prefix(plane: int, zone: int) -> Masked:
    """The MAC prefix (24 bits) that all hosts of a zone share."""
    return Masked(0x02 << 40 | plane << 32 | zone << 24, _ZONE_MASK)


def guard_flows() -> list[FlowRecord]:
    """What every switch holds whatever the mode: neighbour protocols stay on their link, and a miss is counted.

    LLDP and everything else sent to the link-local groups 01-80-C2-00-00-0x (IEEE 802.1Q, table 8-1) is never
    forwarded.
    """
    return [
        FlowRecord(GUARD_PRIORITY, Match(eth_type=ETH_LLDP)),
        FlowRecord(GUARD_PRIORITY, Match(eth_dst=_LINK_LOCAL_GROUPS)),
        FlowRecord(MISS_PRIORITY, Match()),
    ]


def host_flows(fabric: Fabric, switch: Node) -> list[FlowRecord]:
    """One flow for each host on the switch, by its full MAC address."""
    flows = []
    for link in fabric.links_of[switch.name]:
        host_port = link.peer_of(switch.name)
        if host_port.mac is not None:
            match = Match(eth_dst=Masked(mac_number(host_port.mac), MAC_EXACT))
            flows.append(FlowRecord(HOST_PRIORITY, match, (Output(link.port_of(switch.name).number),)))
    return flows


def by_prefix(
    reach: Reach, switch: Node, choice: Mapping[Leaf, Choice]
) -> tuple[dict[tuple[int, int], Choice], dict[Leaf, Choice]]:
    """Splits a choice per leaf into one per zone, by (plane, zone), where all leaves of the zone agree, and the rest.

    Only for zones that the switch is not part of: inside its own zone a prefix would also cover addresses that nobody
    has, and two switches could hand such a packet to each other for ever. Zone 0 is "no zone" and is never put
    together.
    """
    zones: dict[tuple[int, int], Choice] = {}
    singles = dict(choice)
    members: dict[tuple[int, int], list[Leaf]] = {}
    for leaf in reach.leaves(switch.plane):
        members.setdefault((leaf.plane, leaf.zone), []).append(leaf)
    for zone, leaves in members.items():
        if zone[1] in (0, switch.zone) or len(leaves) < 2 or any(leaf not in choice for leaf in leaves):
            continue
        first = choice[leaves[0]]
        if all(choice[leaf] == first for leaf in leaves):
            zones[zone] = first
            for leaf in leaves:
                del singles[leaf]
    return zones, singles


def leaf_flows(
    reach: Reach, switch: Node, action: Callable[[Leaf, tuple[int, ...]], Action]
) -> tuple[list[FlowRecord], dict[Leaf, Step]]:
    """Flows to every other leaf that can be reached, and the step they take for each leaf.

    Args:
        action: what to do for a leaf, given the ports that lead nearer to it (at least one).
    """
    steps: dict[Leaf, Step] = {}
    for leaf in reach.leaves(switch.plane):
        ports = reach.ports(switch.name, leaf)
        if ports:
            steps[leaf] = Step(action(leaf, ports), reach.distance(switch.name, leaf) or 0)
    zones, singles = by_prefix(reach, switch, steps)
    flows = [
        FlowRecord(ZONE_PRIORITY, Match(eth_dst=zone_prefix(*zone)), (step.action,), step.distance)
        for zone, step in zones.items()
    ]
    flows += [
        FlowRecord(LEAF_PRIORITY, Match(eth_dst=leaf_prefix(leaf)), (step.action,), step.distance)
        for leaf, step in singles.items()
    ]
    return flows, steps
