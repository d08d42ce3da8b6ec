"""Leaf-spine: every leaf has one link to every spine, so an EV's path number is the spine."""

from __future__ import annotations

from topologies.builders.checks import check_links, check_size
from topologies.builders.wiring import Plan, Switch, Wire
from topologies.document import Problems
from topologies.model import LeafSpine


def add_plane(plan: Plan, plane: int, prefix: str, leaves: int, spines: int, hosts_per_leaf: int) -> None:
    """Add one plane of leaf-spine to a plan that already has its hosts."""
    leaf_names = [f"{prefix}leaf{number}" for number in range(1, leaves + 1)]
    spine_names = [f"{prefix}spine{number}" for number in range(1, spines + 1)]
    plan.switches += [Switch(name, "leaf", plane, n, leaf=n) for n, name in enumerate(leaf_names, 1)]
    plan.switches += [Switch(name, "spine", plane, n) for n, name in enumerate(spine_names, 1)]
    plan.wires += [
        Wire(host, leaf_names[index // hosts_per_leaf], plane, "host") for index, host in enumerate(plan.hosts)
    ]
    plan.wires += [Wire(leaf, spine, plane, "fabric") for leaf in leaf_names for spine in spine_names]


def plan_leaf_spine(model: LeafSpine) -> Plan:
    """Nodes and wires of the model."""
    plan = Plan(hosts=[f"h{number}" for number in range(1, model.leaves * model.hosts_per_leaf + 1)])
    add_plane(plan, 1, "", model.leaves, model.spines, model.hosts_per_leaf)
    return plan


def check_leaf_spine(model: LeafSpine, problems: Problems) -> None:
    """Mistakes that only show in several keys together."""
    hosts = model.leaves * model.hosts_per_leaf
    if check_size(problems, hosts, hosts + model.leaves * model.spines, "hosts_per_leaf"):
        check_links(model, plan_leaf_spine(model), problems)
