"""``single``: one shortest path for each pair of leaves; what a flow pinned to one path by plain routing gets."""

from __future__ import annotations

from controller.program import Action, FlowRecord, GroupRecord, Output
from controller.routes.mode import Context, Mode, SwitchRoutes
from controller.routes.reach import Leaf
from controller.routes.rules import leaf_flows
from topologies.graph import Node


def pick_port(context: Context, switch: Node, leaf: Leaf, ports: tuple[int, ...]) -> int:
    """The one port towards ``leaf``, out of those that lead nearer to it.

    Destinations are dealt out over equal ports (by leaf where hosts are attached, by zone above), so that the fabric is
    not reduced to one spine. When a port goes away, only the destinations that used it move.
    """
    usual = context.intact.ports(switch.name, leaf)
    deal = leaf.leaf if switch.leaf is not None or leaf.zone == 0 else leaf.zone
    start = (deal - 1) % len(usual) if usual else 0
    for port in usual[start:] + usual[:start]:
        if port in ports:
            return port
    return ports[0]


def _prepare(context: Context) -> SwitchRoutes:
    def routes(switch: Node) -> tuple[list[FlowRecord], list[GroupRecord]]:
        def action(leaf: Leaf, ports: tuple[int, ...]) -> Action:
            return Output(pick_port(context, switch, leaf, ports))

        flows, _ = leaf_flows(context.reach, switch, action)
        return flows, []

    return routes


MODE = Mode("single", "one shortest path for each pair of leaves", reacts=True, prepare=_prepare)
