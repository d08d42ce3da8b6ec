"""Custom fabrics: nodes and links as listed, so most of this file is about what a list can get wrong."""

from __future__ import annotations

from collections import Counter

from topologies.addresses import MAX_HOSTS_PER_LEAF, MAX_LEAVES
from topologies.builders.checks import check_links
from topologies.builders.wiring import MAX_LINKS, Plan, Switch, Wire, assemble
from topologies.document import Problems
from topologies.errors import did_you_mean
from topologies.graph import Fabric
from topologies.model import Custom
from topologies.routes import MAX_PATHS, count_routes


def plan_custom(model: Custom) -> Plan:
    """Nodes and wires of the model. Hosts come first in a link, else the ends keep the order of the file.

    Raises KeyError when a link ends at a node that is not listed.
    """
    hosts = [host.name for host in model.hosts]
    is_host = set(hosts)
    planes = {switch.name: switch.plane for switch in model.switches}
    wires = []
    for link in model.links.list:
        a, b = link.ends if link.ends[1] not in is_host else reversed(link.ends)
        wires.append(Wire(a, b, planes[b], "host" if a in is_host else "fabric", link))
    wires.sort(key=lambda wire: wire.section != "host")
    leaves = {wire.b for wire in wires if wire.section == "host"}
    numbers: Counter[int] = Counter()
    leaf_numbers: Counter[int] = Counter()
    switches = []
    for switch in model.switches:
        numbers[switch.plane] += 1
        leaf_numbers[switch.plane] += switch.name in leaves
        leaf = leaf_numbers[switch.plane] if switch.name in leaves else None
        switches.append(Switch(switch.name, "switch", switch.plane, numbers[switch.plane], leaf=leaf))
    return Plan(max(planes.values()), hosts, switches, wires)


def check_custom(model: Custom, problems: Problems) -> None:
    """Mistakes that only show in several keys together."""
    if problems.broken("hosts", "switches", ("links", "list")):
        return
    before = len(problems.errors)
    if len(model.links.list) > MAX_LINKS:
        problems.add("links.list", f"holds {len(model.links.list)} links, at most {MAX_LINKS} are supported")
        return
    _check_names(model, problems)
    _check_ends(model, problems)
    if len(problems.errors) > before:
        return
    _check_planes(model, problems)
    plan = plan_custom(model)
    _check_link_names(plan, problems)
    _check_leaves(plan, problems)
    if len(problems.errors) > before:
        check_links(model, plan, problems)
        return
    check_links(model, plan, problems)
    _check_routes(assemble(model, plan), problems)


def _check_names(model: Custom, problems: Problems) -> None:
    seen: dict[str, str] = {}
    listed = [("hosts", index, host.name) for index, host in enumerate(model.hosts)]
    listed += [("switches", index, switch.name) for index, switch in enumerate(model.switches)]
    for key, index, name in listed:
        if name in seen:
            problems.add((key, index), f"duplicate name {name!r}", f"first at {seen[name]}")
        seen.setdefault(name, f"{key}.{index}")


def _check_ends(model: Custom, problems: Problems) -> None:
    hosts = {host.name for host in model.hosts}
    planes = {switch.name: switch.plane for switch in model.switches}
    linked: set[str] = set()
    for index, link in enumerate(model.links.list):
        path = ("links", "list", index)
        linked.update(link.ends)
        a, b = link.ends
        unknown = [end for end in dict.fromkeys(link.ends) if end not in hosts and end not in planes]
        for end in unknown:
            problems.add(path, f"no such node {end[:40]!r}", did_you_mean(end, [*hosts, *planes]))
        if unknown:
            continue
        if a == b:
            problems.add(path, f"links {a} to itself")
        elif a in hosts and b in hosts:
            problems.add(path, "links two hosts", "put a switch between them")
        elif a in planes and b in planes and planes[a] != planes[b]:
            problems.add(path, f"joins plane {planes[a]} and plane {planes[b]}", "planes share hosts and nothing else")
    for index, switch in enumerate(model.switches):
        if switch.name not in linked:
            problems.add(("switches", index), f"{switch.name} has no link")


def _check_planes(model: Custom, problems: Problems) -> None:
    planes = {switch.name: switch.plane for switch in model.switches}
    count = max(planes.values())
    absent = sorted(set(range(1, count + 1)) - set(planes.values()))
    if absent:
        hint = "planes are counted from 1 without gaps"
        problems.add("switches", f"no switch is in plane {', '.join(map(str, absent))}", hint)
    interfaces: Counter[tuple[str, int]] = Counter()
    for link in model.links.list:
        for end, other in (link.ends, link.ends[::-1]):
            if other in planes and end not in planes:
                interfaces[end, planes[other]] += 1
    for index, host in enumerate(model.hosts):
        for plane in sorted(set(planes.values())):
            links = interfaces[host.name, plane]
            if links == 0:
                where = f"in plane {plane}" if count > 1 else "to a switch"
                problems.add(("hosts", index), f"{host.name} has no link {where}", "one link in each plane")
            elif links > 1:
                problems.add(
                    ("hosts", index), f"{host.name} has {links} links in plane {plane}", "one link in each plane"
                )


def _check_link_names(plan: Plan, problems: Problems) -> None:
    for name, count in Counter(plan.link_names()).items():
        if count > 1:
            problems.add("links.list", f"{count} different links would be called {name!r}", "rename a node")


def _check_leaves(plan: Plan, problems: Problems) -> None:
    leaves = Counter(switch.plane for switch in plan.switches if switch.leaf is not None)
    for plane, count in leaves.items():
        if count > MAX_LEAVES:
            problems.add(
                "switches", f"{count} switches of plane {plane} have hosts, addresses have room for {MAX_LEAVES}"
            )
    for leaf, count in Counter(wire.b for wire in plan.wires if wire.section == "host").items():
        if count > MAX_HOSTS_PER_LEAF:
            problems.add("links.list", f"{leaf} has {count} hosts, addresses have room for {MAX_HOSTS_PER_LEAF}")


def _check_routes(fabric: Fabric, problems: Problems) -> None:
    leaves = list(fabric.hosts_of)
    for number, source in enumerate(leaves):
        for target in leaves[number + 1 :]:
            if fabric.node[source].plane != fabric.node[target].plane:
                continue
            count = count_routes(fabric, source, target)
            if count == 0:
                a, b = fabric.hosts_of[source][0], fabric.hosts_of[target][0]
                problems.add("links.list", f"{a} and {b} have no path in plane {fabric.node[source].plane}")
                return
            if count > MAX_PATHS:
                message = f"{source} and {target} have {count} shortest paths, entropy values count up to {MAX_PATHS}"
                problems.add("links.list", message)
                return
