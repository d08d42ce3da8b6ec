"""``disjoint``: the EV of a packet names its path; static, as in MRC's fabric.

The path number sits in bits 13:6 of the UDP source port, below two bits that are always 1 (RoCEv2's dynamic ports), so
one masked match pins a path for a whole leaf or zone, whatever the EV's salt. Everything else (other protocols, lower
ports, path numbers that do not exist) takes the ``single`` route at a lower priority: TCP and ping work.

Nothing here reacts to failures: MRC's hosts do ("This forwarding table was configured when the switch was installed,
and is generally never changed", Araujo et al.).
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.program import ETH_IPV6, IP_UDP, Action, FlowRecord, GroupRecord, Masked, Match, Output
from controller.routes.mode import Context, Mode, SwitchRoutes
from controller.routes.reach import Leaf
from controller.routes.rules import (
    PINNED_FROM_LEAF_PRIORITY,
    PINNED_LEAF_PRIORITY,
    PINNED_ZONE_PRIORITY,
    Step,
    by_prefix,
    leaf_flows,
    leaf_prefix,
    zone_prefix,
)
from controller.routes.single import pick_port
from topologies.ev import PATH_SHIFT, PORT_BASE, PORT_PATH_MASK
from topologies.graph import Node
from topologies.routes import routes

Pins = dict[int, dict[Leaf, dict[Leaf, int]]]
"""Of one switch: path number -> destination leaf -> source leaf -> port."""


def path_port(index: int) -> Masked:
    """Matches the UDP source ports that name path ``index``, whatever their salt."""
    return Masked(PORT_BASE | index << PATH_SHIFT, PORT_BASE | PORT_PATH_MASK)


def _prepare(context: Context) -> SwitchRoutes:
    pins = _collect(context)

    def routes_of(switch: Node) -> tuple[list[FlowRecord], list[GroupRecord]]:
        def action(leaf: Leaf, ports: tuple[int, ...]) -> Action:
            return Output(pick_port(context, switch, leaf, ports))

        flows, fallback = leaf_flows(context.reach, switch, action)
        for index, targets in sorted(pins.get(switch.name, {}).items()):
            flows += _pinned_flows(context, switch, index, targets, fallback)
        return flows, []

    return routes_of


def _collect(context: Context) -> dict[str, Pins]:
    pins: dict[str, Pins] = {}
    for source, target in _leaf_pairs(context):
        for index, route in enumerate(
            routes(context.fabric, context.reach.switch_of(source), context.reach.switch_of(target))
        ):
            for hop in route:
                here = pins.setdefault(hop.out.node, {}).setdefault(index, {})
                here.setdefault(target, {})[source] = hop.out.number
    return pins


def _leaf_pairs(context: Context) -> Iterator[tuple[Leaf, Leaf]]:
    for leaves in context.reach.leaves_of_plane.values():
        for source in leaves:
            for target in leaves:
                if source != target:
                    yield source, target


def _pinned_flows(
    context: Context, switch: Node, index: int, targets: dict[Leaf, dict[Leaf, int]], fallback: dict[Leaf, Step]
) -> list[FlowRecord]:
    """The flows of one path number. What the single route would do anyway needs no flow."""
    reach = context.reach
    agreed: dict[Leaf, Step] = {}
    flows: list[FlowRecord] = []
    for target, ports in targets.items():
        distance = reach.distance(switch.name, target) or 0
        if len(set(ports.values())) == 1:
            agreed[target] = Step(Output(next(iter(ports.values()))), distance)
            continue
        # Two sources number their paths differently here (custom fabrics only): the source has to be part of the match.
        for source, port in sorted(ports.items()):
            match = _match(index, leaf_prefix(target), leaf_prefix(source))
            flows.append(FlowRecord(PINNED_FROM_LEAF_PRIORITY, match, (Output(port),), distance))
    if all(fallback.get(target) == step for target, step in agreed.items()):
        return flows
    zones, singles = by_prefix(reach, switch, agreed)
    for zone, step in zones.items():
        match = _match(index, zone_prefix(*zone))
        flows.append(FlowRecord(PINNED_ZONE_PRIORITY, match, (step.action,), step.distance))
    for target, step in singles.items():
        if fallback.get(target) != step:
            match = _match(index, leaf_prefix(target))
            flows.append(FlowRecord(PINNED_LEAF_PRIORITY, match, (step.action,), step.distance))
    return flows


def _match(index: int, target: Masked, source: Masked | None = None) -> Match:
    return Match(eth_dst=target, eth_src=source, eth_type=ETH_IPV6, ip_proto=IP_UDP, udp_src=path_port(index))


MODE = Mode("disjoint", "the EV pins the path; everything else takes the single route", reacts=False, prepare=_prepare)
