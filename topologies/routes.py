"""Shortest routes between the leaves of a plane, in the canonical order that the EV's path field counts.

In a fat-tree or leaf-spine a route is fixed by its way up: index = (port at the highest tier, ..., port at the leaf),
the leaf's port varying fastest. So the first routes leave the source leaf by different uplinks and are edge-disjoint,
and each switch finds its port from the index alone, without knowing the source: the leaf takes uplink ``i % n``, the
aggregation switch ``i // n``. In a custom fabric the first routes are a largest set of edge-disjoint ones (augmenting
paths), and the others follow in the order of their port numbers.
"""

from __future__ import annotations

from collections import deque
from typing import cast

from topologies.graph import Fabric, Hop, Link

MAX_PATHS = 256
"""The EV's path field has 8 bits."""

Route = tuple[Hop, ...]


def distances(fabric: Fabric, target: str, failed: frozenset[str] = frozenset()) -> dict[str, int]:
    """Links between each switch and the switch ``target``, through switches only; unreachable ones are left out."""
    found = {target: 0}
    queue = deque([target])
    while queue:
        here = queue.popleft()
        for link, peer in fabric.neighbours[here]:
            if peer not in found and link.name not in failed:
                found[peer] = found[here] + 1
                queue.append(peer)
    return found


def next_links(fabric: Fabric, target: str, failed: frozenset[str] = frozenset()) -> dict[str, tuple[Link, ...]]:
    """The equal-cost next links of every switch towards the switch ``target``, by port number.

    With failed links these are the shortest ways through what is left, as a routing protocol would find them: they may
    be longer than the canonical routes. ``target`` and unreachable switches are left out.
    """
    away = distances(fabric, target, failed)
    return {
        name: tuple(
            link
            for link, peer in fabric.neighbours[name]
            if away.get(peer, distance) == distance - 1 and link.name not in failed
        )
        for name, distance in away.items()
        if name != target
    }


def count_routes(fabric: Fabric, source: str, target: str) -> int:
    """Number of shortest routes between two switches, without enumerating them; 0 when there is none."""
    ways = next_links(fabric, target)
    if source == target:
        return 1
    if source not in ways:
        return 0
    away = distances(fabric, target)
    counts = {target: 1}
    for name in sorted((name for name in away if away[name] <= away[source] and name != target), key=away.__getitem__):
        counts[name] = sum(counts[link.peer_of(name).node] for link in ways[name])
    return counts[source]


def routes(fabric: Fabric, source: str, target: str) -> tuple[Route, ...]:
    """All shortest routes from leaf to leaf in canonical order; one empty route when they are the same leaf.

    Raises ValueError when there are more than MAX_PATHS.
    """
    key = ("routes", source, target)
    if key not in fabric.memo:
        fabric.memo[key] = _find_routes(fabric, source, target)
    return cast("tuple[Route, ...]", fabric.memo[key])


def _find_routes(fabric: Fabric, source: str, target: str) -> tuple[Route, ...]:
    if source == target:
        return ((),)
    key = ("next_links", target)
    if key not in fabric.memo:
        fabric.memo[key] = next_links(fabric, target)
    ways = cast("dict[str, tuple[Link, ...]]", fabric.memo[key])
    if source not in ways:
        return ()
    found: list[Route] = []
    stack: list[tuple[str, Route]] = [(source, ())]
    while stack:
        here, route = stack.pop()
        if here == target:
            found.append(route)
            if len(found) > MAX_PATHS:
                raise ValueError(f"more than {MAX_PATHS} shortest paths from {source} to {target}")
            continue
        for link in reversed(ways[here]):
            hop = _hop(link, here)
            stack.append((hop.into.node, (*route, hop)))
    if fabric.kind == "custom":
        first = _disjoint(ways, source, target)
        return (*first, *(route for route in found if route not in first))
    return tuple(sorted(found, key=_way_up))


def _way_up(route: Route) -> tuple[int, ...]:
    """Ports taken on the way up, highest tier first."""
    return tuple(hop.out.number for hop in reversed(route[: len(route) // 2]))


def _hop(link: Link, here: str) -> Hop:
    return Hop(link.name, link.port_of(here), link.peer_of(here))


def _disjoint(ways: dict[str, tuple[Link, ...]], source: str, target: str) -> tuple[Route, ...]:
    """A largest set of edge-disjoint shortest routes (Ford-Fulkerson with unit capacities), ordered by their ports."""
    used: dict[str, Hop] = {}
    into: dict[str, list[tuple[str, Link]]] = {}
    for name, links in ways.items():
        for link in links:
            into.setdefault(link.peer_of(name).node, []).append((name, link))
    while True:
        came: dict[str, tuple[str, Link, bool]] = {source: (source, ways[source][0], True)}
        queue = deque([source])
        while queue and target not in came:
            here = queue.popleft()
            for link in ways.get(here, ()):
                peer = link.peer_of(here).node
                if link.name not in used and peer not in came:
                    came[peer] = (here, link, True)
                    queue.append(peer)
            for name, link in into.get(here, ()):
                if link.name in used and name not in came:
                    came[name] = (here, link, False)
                    queue.append(name)
        if target not in came:
            break
        here = target
        while here != source:
            previous, link, forward = came[here]
            if forward:
                used[link.name] = _hop(link, previous)
            else:
                del used[link.name]
            here = previous
    leaving: dict[str, list[Hop]] = {}
    for hop in sorted(used.values(), key=lambda hop: (hop.out.node, hop.out.number)):
        leaving.setdefault(hop.out.node, []).append(hop)
    found: list[Route] = []
    for start in leaving[source]:
        route = [start]
        while route[-1].into.node != target:
            route.append(leaving[route[-1].into.node].pop(0))
        found.append(tuple(route))
    return tuple(found)
