"""The kinds of topology. A new kind is a model, a file beside this one, and a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from topologies.builders.custom import check_custom, plan_custom
from topologies.builders.fat_tree import check_fat_tree, plan_fat_tree
from topologies.builders.leaf_spine import check_leaf_spine, plan_leaf_spine
from topologies.builders.multi_plane import check_multi_plane, plan_multi_plane
from topologies.builders.wiring import Plan
from topologies.document import Problems
from topologies.model import Custom, FatTree, LeafSpine, MultiPlane, Topology


@dataclass(frozen=True)
class Kind:
    """A kind of topology: its model, its plan of nodes and wires, and the checks that the model cannot express."""

    model: type[Topology]
    plan: Callable[[Any], Plan]
    check: Callable[[Any, Problems], None]


KINDS: Mapping[str, Kind] = {
    "fat_tree": Kind(FatTree, plan_fat_tree, check_fat_tree),
    "leaf_spine": Kind(LeafSpine, plan_leaf_spine, check_leaf_spine),
    "multi_plane": Kind(MultiPlane, plan_multi_plane, check_multi_plane),
    "custom": Kind(Custom, plan_custom, check_custom),
}
