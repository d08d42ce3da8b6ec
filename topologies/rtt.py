"""Round-trip time of an idle fabric, and the bandwidth-delay products that queues are measured in.

Base RTT: a full data packet goes out, stored and forwarded at every hop, and a control packet comes back the same way,
each hop adding its propagation delay. With 10 Mbit/s links the transmission times are most of it.
"""

from __future__ import annotations

from topologies.graph import Fabric, Link
from topologies.paths import paths
from topologies.routes import distances

ETHERNET_BYTES = 14
CONTROL_BYTES = 120
"""A SACK on the wire: Ethernet 14, IPv6 40, UDP 8, BTH to ICRC 52 (MRC 1.0 section 7.5), rounded up."""
QUEUE_FLOOR_PACKETS = 8
"""A queue given as a multiple of the bdp holds at least so many full packets: store-and-forward bdps are tiny."""


def frame_bytes(fabric: Fabric) -> int:
    """A full packet on the wire, in bytes, as the rate limiter counts it (without preamble and checksum)."""
    return fabric.mtu + ETHERNET_BYTES


def link_rtt_s(link: Link, frame: int) -> float:
    """What one link adds to the base RTT, in seconds; ``frame`` is the data packet's size in bytes."""
    return 2 * link.params.delay_s + (frame + CONTROL_BYTES) * 8 / link.params.rate_bps


def base_rtt_s(fabric: Fabric, source: str, target: str, plane: int | None = None) -> float:
    """Base RTT in seconds between two hosts over their slowest path, in one plane or the slowest of all.

    Raises ValueError when there is no path, and as ``paths`` does.
    """
    frame = frame_bytes(fabric)
    planes = range(1, fabric.planes + 1) if plane is None else (plane,)
    found = [path for number in planes for path in paths(fabric, source, target, number)]
    if not found:
        raise ValueError(f"no path from {source} to {target}")
    return max(sum(link_rtt_s(fabric.link[name], frame) for name in path.links) for path in found)


def longest_base_rtt_s(fabric: Fabric) -> float:
    """The greatest base RTT in seconds between any two hosts. The bdp of a link is its rate times this."""
    frame = frame_bytes(fabric)
    cost = {link.name: link_rtt_s(link, frame) for link in fabric.links}
    access: dict[str, list[float]] = {}
    for link in fabric.links:
        if link.tier == "host":
            access.setdefault(link.b.node, []).append(cost[link.name])
    longest = 0.0
    for leaf, costs in access.items():
        costs.sort()
        if len(costs) > 1:
            longest = max(longest, costs[-1] + costs[-2])
        for name, worst in _slowest_to(fabric, leaf, cost).items():
            if name in access and name != leaf:
                longest = max(longest, costs[-1] + worst + max(access[name]))
    return longest


def _slowest_to(fabric: Fabric, leaf: str, cost: dict[str, float]) -> dict[str, float]:
    """Cost of the slowest of the shortest routes to a leaf, from every switch that reaches it."""
    away = distances(fabric, leaf)
    worst = {leaf: 0.0}
    for name, distance in away.items():  # in the order of a breadth-first search, nearest first
        if name != leaf:
            nearer = [cost[link.name] + worst[peer] for link, peer in fabric.neighbours[name] if away[peer] < distance]
            worst[name] = max(nearer)
    return worst


def bdp_bytes(fabric: Fabric, link: Link) -> float:
    """Bandwidth-delay product of a link in bytes: its rate times the fabric's longest base RTT."""
    key = "longest_base_rtt_s"
    if key not in fabric.memo:
        fabric.memo[key] = longest_base_rtt_s(fabric)
    rtt_s = fabric.memo[key]
    assert isinstance(rtt_s, float)
    return link.params.rate_bps * rtt_s / 8
