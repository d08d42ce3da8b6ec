"""Paths from host to host inside a plane: the shortest routes between their leaves plus the two host links."""

from __future__ import annotations

from topologies.graph import Fabric, Hop, Link, Path
from topologies.routes import count_routes, next_links, routes


def host_link(fabric: Fabric, host: str, plane: int) -> Link:
    """The link of a host in a plane. Raises KeyError when there is no such host or plane."""
    for link in fabric.links_of[host]:
        if link.plane == plane and link.tier == "host" and link.a.node == host:
            return link
    raise KeyError(f"{host} has no link in plane {plane}")


def leaf_of(fabric: Fabric, host: str, plane: int) -> str:
    """The name of the leaf that a host is attached to in a plane. Raises KeyError as ``host_link`` does."""
    return host_link(fabric, host, plane).b.node


def paths(
    fabric: Fabric, source: str, target: str, plane: int, failed: frozenset[str] = frozenset()
) -> tuple[Path, ...]:
    """All equal-cost shortest paths between two hosts in a plane, in canonical order (see ``routes``).

    Paths over ``failed`` links (names) are left out and the others keep their index. Longer ways round are no paths:
    MRC's routing is static. Raises ValueError for a host and itself, KeyError for an unknown host or plane.
    """
    if source == target:
        raise ValueError(f"a path needs two hosts, not {source} twice")
    up, down = host_link(fabric, source, plane), host_link(fabric, target, plane)
    if up.name in failed or down.name in failed:
        return ()
    first = Hop(up.name, up.a, up.b)
    last = Hop(down.name, down.b, down.a)
    return tuple(
        Path(plane, index, (first, *route, last))
        for index, route in enumerate(routes(fabric, up.b.node, down.b.node))
        if not failed or not any(hop.link in failed for hop in route)
    )


def path_count(fabric: Fabric, source: str, target: str, plane: int) -> int:
    """Number of equal-cost shortest paths between two hosts in a plane. Raises as ``paths`` does."""
    if source == target:
        raise ValueError(f"a path needs two hosts, not {source} twice")
    return len(routes(fabric, leaf_of(fabric, source, plane), leaf_of(fabric, target, plane)))


def disjoint_count(found: tuple[Path, ...]) -> int:
    """How many of the first paths share no fabric link with each other."""
    seen: set[str] = set()
    for number, path in enumerate(found):
        links = set(path.links[1:-1])
        if links & seen:
            return number
        seen |= links
    return len(found)


__all__ = ["count_routes", "disjoint_count", "host_link", "leaf_of", "next_links", "path_count", "paths", "routes"]
