"""Which ports lead nearer to which leaf, on what is left of a fabric when some links are down."""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import NamedTuple

from topologies.graph import Fabric, Node


class Leaf(NamedTuple):
    """A switch with hosts, as addresses name it. Planes share no switch, so the plane is part of the name."""

    plane: int
    zone: int
    leaf: int


def leaf_of(switch: Node) -> Leaf | None:
    """The leaf that ``switch`` is; None when no host is attached to it."""
    if switch.leaf is None or switch.plane is None:
        return None
    return Leaf(switch.plane, switch.zone, switch.leaf)


class Reach:
    """Shortest paths, in switch hops, between the switches of each plane.

    Hosts never forward, so a path crosses switches only. Computed once per set of failed links.
    """

    def __init__(self, fabric: Fabric, failed_links: frozenset[str] = frozenset()) -> None:
        self.fabric = fabric
        self.failed_links = failed_links
        self._distances = {leaf: self._distances_from(name) for leaf, name in self._switch_of_leaf.items()}

    @cached_property
    def _switch_of_leaf(self) -> dict[Leaf, str]:
        found = ((leaf_of(switch), switch.name) for switch in self.fabric.switches)
        return {leaf: name for leaf, name in found if leaf is not None}

    @cached_property
    def neighbours(self) -> dict[str, tuple[tuple[int, str], ...]]:
        """(port number, neighbour's name) of each switch over the fabric links that are up, by port number."""
        return {
            switch.name: tuple(
                (link.port_of(switch.name).number, link.peer_of(switch.name).node)
                for link in self.fabric.links_of[switch.name]
                if link.tier == "fabric" and link.name not in self.failed_links
            )
            for switch in self.fabric.switches
        }

    @cached_property
    def leaves_of_plane(self) -> dict[int, tuple[Leaf, ...]]:
        """The leaves of each plane, in order."""
        planes: dict[int, list[Leaf]] = {}
        for leaf in sorted(self._switch_of_leaf):
            planes.setdefault(leaf.plane, []).append(leaf)
        return {plane: tuple(leaves) for plane, leaves in planes.items()}

    def leaves(self, plane: int | None) -> tuple[Leaf, ...]:
        """The leaves of a plane; none for a plane without hosts."""
        return self.leaves_of_plane.get(plane, ()) if plane is not None else ()

    def switch_of(self, leaf: Leaf) -> str:
        """Name of the switch that a leaf is."""
        return self._switch_of_leaf[leaf]

    def distance(self, switch: str, leaf: Leaf) -> int | None:
        """Links from ``switch`` to ``leaf``; None when there is no way."""
        return self._distances[leaf].get(switch)

    def ports(self, switch: str, leaf: Leaf) -> tuple[int, ...]:
        """Ports of ``switch`` that lead one hop nearer to ``leaf``, ascending; none when it is there or cut off."""
        distances = self._distances[leaf]
        here = distances.get(switch)
        if not here:
            return ()
        return tuple(port for port, peer in self.neighbours[switch] if distances.get(peer) == here - 1)

    def _distances_from(self, name: str) -> dict[str, int]:
        distances = {name: 0}
        queue = deque([name])
        while queue:
            here = queue.popleft()
            for _, peer in self.neighbours[here]:
                if peer not in distances:
                    distances[peer] = distances[here] + 1
                    queue.append(peer)
        return distances
