"""Every host sends to one other host and receives from one other host.

The classic test of load balancing: with perfect balancing no two flows compete, so whatever is missing from full rate
was lost to collisions (Araujo et al., appendix, figure 20).
"""

from __future__ import annotations

import random

from experiments.workloads.base import Workload, saturating
from topologies.graph import Fabric


def pairs(fabric: Fabric, *, seed: int, cross_leaf: bool = True) -> list[tuple[str, str]]:
    """A permutation of the hosts without fixed point, drawn by ``seed``.

    Args:
        cross_leaf: no host sends to one below its own leaf, where the fabric allows that.
    """
    hosts = [host.name for host in fabric.hosts]
    leaf = {host: fabric.links_of[host][0].peer_of(host).node for host in hosts}
    generator = random.Random(seed)
    best: list[tuple[str, str]] = []
    best_score = -1
    for _ in range(1000):
        targets = hosts[:]
        generator.shuffle(targets)
        candidate = list(zip(hosts, targets, strict=True))
        if any(source == target for source, target in candidate):
            continue
        score = sum(leaf[source] != leaf[target] for source, target in candidate)
        if score > best_score:
            best, best_score = candidate, score
        if not cross_leaf or best_score == len(hosts):
            break
    return best if cross_leaf and best_score == len(hosts) else _shifted(hosts, leaf, generator, cross_leaf) or best


def _shifted(
    hosts: list[str], leaf: dict[str, str], generator: random.Random, cross_leaf: bool
) -> list[tuple[str, str]]:
    """A random shift of the hosts sorted by leaf: crosses leaves for sure when all leaves have equally many hosts."""
    if not cross_leaf:
        return []
    below: dict[str, list[str]] = {}
    for host in hosts:
        below.setdefault(leaf[host], []).append(host)
    groups = list(below.values())
    generator.shuffle(groups)
    for group in groups:
        generator.shuffle(group)
    ordered = [host for group in groups for host in group]
    widest = max(len(group) for group in groups)
    targets = ordered[widest:] + ordered[:widest]
    moved = list(zip(ordered, targets, strict=True))
    if any(leaf[source] == leaf[target] for source, target in moved):
        return []
    return sorted(moved, key=lambda pair: hosts.index(pair[0]))


def compile_permutation(
    fabric: Fabric, *, seed: int, size: int, outstanding: int, count: int | None, cross_leaf: bool
) -> Workload:
    """One saturating stream from every host to its partner."""
    return saturating(pairs(fabric, seed=seed, cross_leaf=cross_leaf), size=size, outstanding=outstanding, count=count)
