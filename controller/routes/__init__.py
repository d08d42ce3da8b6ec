"""Routing modes: a fabric and a mode's name become the program of every switch. Pure.

:func:`compile` is the entry. Each mode is one file with a ``MODE``; to add one, write the file and name it in
``MODES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from controller.program import FabricProgram, SwitchProgram
from controller.routes import disjoint, ecmp, single
from controller.routes.broadcast import broadcast_flows, tree_ports
from controller.routes.mode import Context, Mode
from controller.routes.reach import Reach
from controller.routes.rules import guard_flows, host_flows
from topologies.graph import Fabric

MODES: Mapping[str, Mode] = MappingProxyType({mode.name: mode for mode in (single.MODE, ecmp.MODE, disjoint.MODE)})


def compile(
    fabric: Fabric, mode: str, *, seed: int | None = 1, failed_links: frozenset[str] = frozenset()
) -> FabricProgram:
    """The program of every switch of ``fabric``.

    Args:
        mode: a name in ``MODES``.
        seed: the experiment's seed for the hash seeds of the switches; None: they all hash alike.
        failed_links: names of links to avoid. A mode that does not react ignores them, and so does its program.

    Raises ValueError for an unknown mode or link.
    """
    if mode not in MODES:
        raise ValueError(f"unknown routing mode {mode!r} (known: {', '.join(MODES)})")
    unknown = failed_links - fabric.link.keys()
    if unknown:
        raise ValueError(f"unknown links: {', '.join(sorted(unknown))}")
    chosen = MODES[mode]
    avoided = failed_links if chosen.reacts else frozenset()
    intact = Reach(fabric)
    reach = Reach(fabric, avoided) if avoided else intact
    routes_of = chosen.prepare(Context(fabric, reach, intact, seed))
    tree = tree_ports(reach)
    switches = []
    for switch in fabric.switches:
        flows, groups = routes_of(switch)
        flows = [
            *guard_flows(),
            *broadcast_flows(switch, tree[switch.name]),
            *host_flows(fabric, switch),
            *flows,
        ]
        if switch.dpid is None:
            raise ValueError(f"switch {switch.name} has no datapath id")
        switches.append(SwitchProgram(switch.dpid, switch.name, tuple(flows), tuple(groups)))
    return FabricProgram(mode, seed, avoided, tuple(switches))


__all__ = ["MODES", "Mode", "Reach", "compile"]
