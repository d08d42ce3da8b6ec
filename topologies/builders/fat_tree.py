"""k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches; aggregation switch j of every pod reaches the same
k/2 core switches, numbers (j-1)·k/2 + 1 to j·k/2. Between pods an EV's path number i takes aggregation switch i % (k/2)
and its uplink i // (k/2), both counted from 0.
"""

from __future__ import annotations

from topologies.addresses import MAX_HOSTS_PER_LEAF, MAX_LEAVES
from topologies.builders.checks import check_links, check_size
from topologies.builders.wiring import Plan, Switch, Wire
from topologies.document import Problems
from topologies.model import FatTree, hosts_per_edge


def add_plane(plan: Plan, plane: int, prefix: str, k: int, hosts: int) -> None:
    """Add one plane of k-ary fat-tree with ``hosts`` hosts on each edge switch to a plan that already has its hosts."""
    half = range(1, k // 2 + 1)
    pods = range(1, k + 1)
    edges = [(pod, number, f"{prefix}edge{pod}.{number}") for pod in pods for number in half]
    aggs = [(pod, number, f"{prefix}agg{pod}.{number}") for pod in pods for number in half]
    plan.switches += [Switch(name, "edge", plane, n, zone=pod, leaf=n) for pod, n, name in edges]
    plan.switches += [Switch(name, "agg", plane, n, zone=pod) for pod, n, name in aggs]
    plan.switches += [Switch(f"{prefix}core{n}", "core", plane, n) for n in range(1, (k // 2) ** 2 + 1)]
    plan.wires += [Wire(host, edges[index // hosts][2], plane, "host") for index, host in enumerate(plan.hosts)]
    plan.wires += [Wire(edge, f"{prefix}agg{pod}.{n}", plane, "edge_agg") for pod, _, edge in edges for n in half]
    plan.wires += [
        Wire(agg, f"{prefix}core{(n - 1) * (k // 2) + offset}", plane, "agg_core")
        for _, n, agg in aggs
        for offset in half
    ]


def host_names(k: int, hosts: int) -> list[str]:
    """Names of all hosts of a k-ary fat-tree with ``hosts`` hosts on each edge switch."""
    return [f"h{number}" for number in range(1, k * (k // 2) * hosts + 1)]


def plan_fat_tree(model: FatTree) -> Plan:
    """Nodes and wires of the model."""
    hosts = hosts_per_edge(model.k, model.hosts_per_edge, model.oversubscription)
    plan = Plan(hosts=host_names(model.k, hosts))
    add_plane(plan, 1, "", model.k, hosts)
    return plan


def check_shape(k: int, hosts: int | None, oversubscription: float | None, planes: int, problems: Problems) -> bool:
    """Mistakes in the shape of k-ary planes; True when the plan can be made."""
    leaves = k * (k // 2)
    if leaves > MAX_LEAVES:
        problems.add("k", f"gives {leaves} edge switches, addresses have room for {MAX_LEAVES}", "at most `k: 22`")
        return False
    if problems.broken("hosts_per_edge", "oversubscription"):
        return False
    if oversubscription is not None:
        exact = k // 2 * oversubscription
        if exact != round(exact) or exact < 1:
            hint = f"a multiple of {2 / k:g}"
            problems.add("oversubscription", f"gives {exact:g} hosts on each edge switch of {k // 2} uplinks", hint)
            return False
        if hosts is not None and hosts != round(exact):
            hint = "say one of the two"
            problems.add("oversubscription", f"gives {exact:g} hosts per edge, but hosts_per_edge is {hosts}", hint)
            return False
        if exact > MAX_HOSTS_PER_LEAF:
            problems.add("oversubscription", f"gives {exact:g} hosts per edge, at most {MAX_HOSTS_PER_LEAF} fit")
            return False
    total = leaves * hosts_per_edge(k, hosts, oversubscription)
    links = planes * (total + 2 * leaves * (k // 2))
    return check_size(problems, total, links, "planes" if planes > 1 else "k")


def check_fat_tree(model: FatTree, problems: Problems) -> None:
    """Mistakes that only show in several keys together."""
    if check_shape(model.k, model.hosts_per_edge, model.oversubscription, 1, problems):
        check_links(model, plan_fat_tree(model), problems)
