"""Planes side by side: every host has one interface in each, and no link joins two (Araujo et al., section 2)."""

from __future__ import annotations

from topologies.builders import fat_tree, leaf_spine
from topologies.builders.checks import check_links, check_size
from topologies.builders.wiring import Plan
from topologies.document import Problems
from topologies.model import LinkOptions, MultiPlane, hosts_per_edge

_LEAF_SPINE = ("leaves", "spines", "hosts_per_leaf")
_FAT_TREE = ("k", "hosts_per_edge", "oversubscription")


def plan_multi_plane(model: MultiPlane) -> Plan:
    """Nodes and wires of the model."""
    planes = range(1, model.planes + 1)
    if model.k is not None:
        hosts = hosts_per_edge(model.k, model.hosts_per_edge, model.oversubscription)
        plan = Plan(model.planes, fat_tree.host_names(model.k, hosts))
        for plane in planes:
            fat_tree.add_plane(plan, plane, f"p{plane}.", model.k, hosts)
        return plan
    leaves, spines, hosts = model.leaves or 0, model.spines or 0, model.hosts_per_leaf or 0
    plan = Plan(model.planes, [f"h{number}" for number in range(1, leaves * hosts + 1)])
    for plane in planes:
        leaf_spine.add_plane(plan, plane, f"p{plane}.", leaves, spines, hosts)
    return plan


def check_multi_plane(model: MultiPlane, problems: Problems) -> None:
    """Mistakes that only show in several keys together."""
    if _shape_is_right(model, problems):
        check_links(model, plan_multi_plane(model), problems)


def _shape_is_right(model: MultiPlane, problems: Problems) -> bool:
    def given(keys: tuple[str, ...]) -> list[str]:
        return [key for key in keys if getattr(model, key) is not None or problems.broken(key)]

    two_tier, three_tier = given(_LEAF_SPINE), given(_FAT_TREE)
    if two_tier and three_tier:
        hint = "planes are either leaves, spines and hosts_per_leaf, or k"
        for key in three_tier:
            problems.add(key, f"does not go with {', '.join(two_tier)}", hint)
        return False
    if not two_tier and not three_tier:
        problems.add((), "planes have no shape", "give leaves, spines and hosts_per_leaf, or k")
        return False
    missing = ["k"] if three_tier and "k" not in three_tier else []
    missing += [key for key in _LEAF_SPINE if two_tier and key not in two_tier]
    for key in missing:
        problems.add(key, "is missing")
    if missing or problems.broken(*_LEAF_SPINE, *_FAT_TREE):
        return False
    if model.k is not None:
        return fat_tree.check_shape(model.k, model.hosts_per_edge, model.oversubscription, model.planes, problems)
    for section in ("edge_agg", "agg_core"):
        if getattr(model.links, section) != LinkOptions():
            problems.add(("links", section), "is a tier of fat-trees only", "planes of leaves and spines have `fabric`")
    leaves, spines, hosts = model.leaves or 0, model.spines or 0, model.hosts_per_leaf or 0
    links = model.planes * (leaves * hosts + leaves * spines)
    return check_size(problems, leaves * hosts, links, "planes")
