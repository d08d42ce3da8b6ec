"""Topology files that the tests of this folder build from."""

from __future__ import annotations

from topologies.document import Document
from topologies.graph import Fabric
from topologies.load import load_fabric


def fabric(text: str) -> Fabric:
    """The fabric of YAML text without its version line."""
    return load_fabric(Document.parse(f"version: 1\n{text}\n", "test.yaml"))


def fat_tree(k: int, hosts_per_edge: int | None = None) -> Fabric:
    return fabric(f"kind: fat_tree\nk: {k}\n" + (f"hosts_per_edge: {hosts_per_edge}\n" if hosts_per_edge else ""))


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int) -> Fabric:
    return fabric(f"kind: leaf_spine\nleaves: {leaves}\nspines: {spines}\nhosts_per_leaf: {hosts_per_leaf}")


def multi_plane(planes: int, shape: str = "leaves: 2, spines: 3, hosts_per_leaf: 2") -> Fabric:
    return fabric(f"kind: multi_plane\nplanes: {planes}\n" + shape.replace(", ", "\n"))
