"""Checks that every kind of topology shares: size, names in overrides, queues that hold a packet."""

from __future__ import annotations

from topologies.builders.wiring import MAX_LINKS, Plan
from topologies.document import Problems
from topologies.errors import did_you_mean
from topologies.model import Topology
from topologies.quantities import format_size
from topologies.rtt import ETHERNET_BYTES


def check_size(problems: Problems, hosts: int, links: int, key: str) -> bool:
    """Whether a fabric has at least two hosts and few enough links to plan; else a mistake at ``key``."""
    if hosts < 2:
        problems.add(key, f"gives {hosts} host, a fabric needs two")
    elif links > MAX_LINKS:
        problems.add(key, f"gives {links} links, at most {MAX_LINKS} are supported")
    else:
        return True
    return False


def check_links(model: Topology, plan: Plan, problems: Problems) -> None:
    """Overrides of links that do not exist, and queues too small for one packet."""
    names = plan.link_names()
    known = set(names)
    for name in model.links.overrides:
        if name not in known:
            turned = "-".join(reversed(name.split("-")))
            hint = f"did you mean `{turned}`?" if turned in known else did_you_mean(name, names)
            problems.add(("links", "overrides", name), "no such link", hint or f"for example `{names[-1]}`")
    frame = model.mtu + ETHERNET_BYTES
    for path, options in model.links.blocks():
        if options.queue and options.queue.size_bytes is not None and options.queue.size_bytes < frame:
            message = f"does not hold one packet of {format_size(frame)}"
            problems.add(("links", *path, "queue"), message, "a larger queue or a smaller mtu")
