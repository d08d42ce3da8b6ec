"""Fabrics for the controller's tests, by a short name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from topologies.graph import Fabric
from topologies.load import load_fabric

TOPOLOGIES = {
    "leaf-spine": "kind: leaf_spine\nleaves: 4\nspines: 2\nhosts_per_leaf: 2",
    "fat-tree-4": "kind: fat_tree\nk: 4",
    "fat-tree-6": "kind: fat_tree\nk: 6",
    "fat-tree-8": "kind: fat_tree\nk: 8",
    "planes-2": "kind: multi_plane\nplanes: 2\nleaves: 2\nspines: 2\nhosts_per_leaf: 2",
    "planes-4": "kind: multi_plane\nplanes: 4\nleaves: 2\nspines: 4\nhosts_per_leaf: 2",
    "planes-8": "kind: multi_plane\nplanes: 8\nleaves: 2\nspines: 2\nhosts_per_leaf: 2",
    "planes-2-of-fat-tree": "kind: multi_plane\nplanes: 2\nk: 4",
    # Two sources reach `far` through `mid` by paths that share switches but are numbered differently: the diamond
    # behind `mid` is behind a second choice for `left` only.
    "custom": """
kind: custom
hosts: [h1, h2, h3]
switches: [left, right, up, down, mid, top, low, far]
links:
  list:
    - [h1, left]
    - [h2, right]
    - [h3, far]
    - [left, up]
    - [left, down]
    - [right, up]
    - [up, mid]
    - [up, mid]
    - [down, mid]
    - [mid, top]
    - [mid, low]
    - [top, far]
    - [low, far]
""",
}


@pytest.fixture(scope="session")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Fabric]:
    """Builds a fabric of ``TOPOLOGIES``, once."""
    built: dict[str, Fabric] = {}

    def get(name: str) -> Fabric:
        if name not in built:
            file = tmp_path_factory.mktemp("topology") / f"{name}.yaml"
            file.write_text(f"version: 1\n{TOPOLOGIES[name]}\n")
            built[name] = load_fabric(file)
        return built[name]

    return get
