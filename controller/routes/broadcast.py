"""Broadcast and multicast (ARP, neighbour discovery): a spanning tree in each plane, so every host gets one copy.

A switch takes a broadcast only from a port of the tree and sends it out of all the others; elsewhere it is dropped.
"""

from __future__ import annotations

from controller.program import FlowRecord, Masked, Match, Output, mac_number
from controller.routes.reach import Reach
from controller.routes.rules import BROADCAST_PRIORITY
from topologies.graph import Node

GROUP_BIT = Masked(mac_number("01:00:00:00:00:00"), mac_number("01:00:00:00:00:00"))


def tree_ports(reach: Reach) -> dict[str, tuple[int, ...]]:
    """Ports of each switch, ascending, that belong to the tree of its plane; all host ports do.

    Breadth first from the switches of the highest tier (those listed last), so the tree is shallow. A plane that
    failures have split gets one tree for each part.
    """
    ports: dict[str, set[int]] = {switch.name: set() for switch in reach.fabric.switches}
    seen: set[str] = set()
    for root in reversed(reach.fabric.switches):
        frontier = [root.name] if root.name not in seen else []
        seen.update(frontier)
        while frontier:
            following: list[str] = []
            for name in frontier:
                for number, peer in reach.neighbours[name]:
                    if peer not in seen:
                        seen.add(peer)
                        following.append(peer)
                        ports[name].add(number)
                        ports[peer].add(_other_end(reach, name, number))
            frontier = following
    for link in reach.fabric.links:
        if link.tier == "host":
            ports[link.b.node].add(link.b.number)
    return {name: tuple(sorted(numbers)) for name, numbers in ports.items()}


def broadcast_flows(switch: Node, ports: tuple[int, ...]) -> list[FlowRecord]:
    """The flows of one switch, given its ports of the tree."""
    return [
        FlowRecord(
            BROADCAST_PRIORITY,
            Match(in_port=port, eth_dst=GROUP_BIT),
            tuple(Output(other) for other in ports if other != port),
        )
        for port in ports
    ]


def _other_end(reach: Reach, switch: str, number: int) -> int:
    link = next(link for link in reach.fabric.links_of[switch] if link.port_of(switch).number == number)
    return link.peer_of(switch).number
