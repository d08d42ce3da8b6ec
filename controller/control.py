"""What the controller decides, apart from the framework: when to install, when all is ready, what to do about a
failure.

Fed with what happens (a switch connected, these are its ports, a barrier was answered, a port went down, a timer
fired); answers by calling the :class:`Channel` of a switch, a scheduler and an event sink. No sockets, no threads, no
clock of its own, so tests drive it by hand. Everything is called from one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller.program import FabricProgram, FlowRecord, GroupRecord, SwitchProgram
from controller.routes import MODES, compile
from controller.transition import Change, phases
from topologies.graph import Fabric

GATHER_S = 2.0
"""How long after the first switch the others are waited for, so that a restart in the middle of a failure knows of
it."""

GENERATIONS = 1 << 16


class Channel(Protocol):
    """What can be sent to a connected switch. Messages are taken in the order of the calls."""

    def put_group(self, group: GroupRecord) -> None:
        """Add the group, or give it these buckets if it exists."""

    def put_flow(self, flow: FlowRecord, generation: int) -> None:
        """Add the flow, or replace the one with the same priority and match in place."""

    def drop_flow(self, flow: FlowRecord) -> None:
        """Remove the flow, if it exists."""

    def drop_group(self, group_id: int) -> None:
        """Remove the group, if it exists."""

    def purge_flows(self, generation: int) -> None:
        """Remove every flow of any other generation."""

    def ask_groups(self) -> None:
        """Ask which groups exist; answered by ``Control.groups_listed``."""

    def ask_ports(self) -> None:
        """Ask for the ports; answered by ``Control.ports_listed``."""

    def barrier(self) -> int:
        """Ask to be told when all of the above is done; returns the number that ``Control.acknowledged`` will name."""


Emit = Callable[[str, str, Any], None]
"""Takes an event's kind, the name of what it is about, and its detail."""

Schedule = Callable[[float, Callable[[], None]], None]
"""Calls a function after a delay in seconds, on the thread of everything else."""


@dataclass(frozen=True)
class _Waiting:
    """What to do when a barrier is answered, and when the connection is lost before."""

    answered: Callable[[], None]
    lost: Callable[[], None]


@dataclass
class _Switch:
    name: str
    dpid: int
    expected_ports: frozenset[int]
    channel: Channel | None = None
    ports: dict[int, bool] = field(default_factory=dict)
    ports_known: bool = False
    installed: SwitchProgram | None = None
    synced: bool = False
    refused: bool = False
    waiting: dict[int, _Waiting] = field(default_factory=dict)

    def forget_connection(self) -> None:
        """Nothing is known of what the switch holds, and no barrier will be answered any more."""
        self.channel = None
        self.installed = None
        self.synced = False
        self.ports_known = False
        waiting, self.waiting = self.waiting, {}
        for entry in waiting.values():
            entry.lost()


class Control:
    """The control plane of one fabric in one routing mode."""

    def __init__(
        self,
        fabric: Fabric,
        mode: str,
        *,
        seed: int | None,
        convergence_s: float,
        first_generation: int,
        emit: Emit,
        schedule: Schedule,
    ) -> None:
        self._fabric = fabric
        self._mode = mode
        self._seed = seed
        self._convergence_s = convergence_s
        self._generation = first_generation % GENERATIONS
        self._emit = emit
        self._schedule = schedule
        self._compiled: dict[frozenset[str], FabricProgram] = {}
        self._program = self._compile(frozenset())
        self._switches = {
            program.dpid: _Switch(
                program.name,
                program.dpid,
                frozenset(link.port_of(program.name).number for link in fabric.links_of[program.name]),
            )
            for program in self._program.switches
        }
        self._dpid_of = {switch.name: switch.dpid for switch in self._switches.values()}
        self._link_at = {
            (end.node, end.number): link
            for link in fabric.links
            for end in (link.a, link.b)
            if end.node in self._dpid_of
        }
        self._gathering = False
        self._started = False
        self._ready = False
        self._wanted: frozenset[str] = frozenset()
        self._reroute: _Reroute | None = None

    # What happens

    def connected(self, dpid: int, channel: Channel) -> None:
        """A switch has connected (again)."""
        switch = self._switches.get(dpid)
        if switch is None:
            self._emit("error", f"dpid {dpid:#x}", "a switch that is not in the topology connected; it is left alone")
            return
        switch.forget_connection()
        switch.channel = channel
        channel.ask_ports()

    def disconnected(self, dpid: int, channel: Channel) -> None:
        """The connection is gone. The switch goes on forwarding as it was told (fail-secure)."""
        switch = self._switches.get(dpid)
        if switch is None or switch.channel is not channel:
            return
        self._emit("switch_down", switch.name, "connection lost; it keeps its flows")
        switch.forget_connection()

    def ports_listed(self, dpid: int, ports: Mapping[int, bool]) -> None:
        """The answer to ``ask_ports``: port number -> is it up?"""
        switch = self._switches.get(dpid)
        if switch is None or switch.channel is None:
            return
        mine = {number: up for number, up in ports.items() if number in switch.expected_ports}
        # Before the start, a port that is down from the beginning is no event: routes are made without it.
        changed = [number for number, up in mine.items() if switch.ports.get(number, self._started or up) != up]
        missing = [number for number in switch.ports if number not in mine]
        if not switch.ports_known:
            ports_up = sorted(number for number, up in mine.items() if up)
            self._emit("switch_up", switch.name, {"dpid": dpid, "ports_up": ports_up})
        switch.ports_known = True
        for number in changed + missing:
            self.port_changed(dpid, number, mine.get(number, False))
        switch.ports.update(mine)
        if self._started:
            self._install(switch)
        elif all(other.channel is not None and other.ports_known for other in self._switches.values()):
            self._start()
        elif not self._gathering:
            self._gathering = True
            self._schedule(GATHER_S, self._start)

    def port_changed(self, dpid: int, number: int, up: bool) -> None:
        """A port went up, went down or was removed (down)."""
        switch = self._switches.get(dpid)
        if switch is None or number not in switch.expected_ports or switch.ports.get(number) == up:
            return
        switch.ports[number] = up
        link = self._link_at[(switch.name, number)]
        detail = {"port": number, "link": link.name}
        self._emit("port_up" if up else "port_down", f"{switch.name}:{number}", detail)
        if self._started and link.tier == "fabric" and MODES[self._mode].reacts:
            if up == (link.name in self._wanted):
                # Worked out now, so that the delay is the configured one and not that plus the computation.
                self._compile(self._wanted ^ {link.name})
            self._schedule(self._convergence_s, lambda: self._converge(link.name))
        self._check_ready()

    def acknowledged(self, dpid: int, number: int) -> None:
        """A barrier was answered."""
        switch = self._switches.get(dpid)
        waiting = switch.waiting.pop(number, None) if switch is not None else None
        if waiting is not None:
            waiting.answered()

    def groups_listed(self, dpid: int, groups: frozenset[int]) -> None:
        """The answer to ``ask_groups``."""
        switch = self._switches.get(dpid)
        if switch is None or switch.channel is None or switch.installed is None:
            return
        needed = set(switch.installed.group)
        if self._reroute is not None:
            needed |= self._reroute.target.by_dpid[dpid].group.keys()
        for group_id in sorted(groups - needed):
            switch.channel.drop_group(group_id)
        self._barrier(switch, lambda: self._synced(switch))

    def refused(self, dpid: int | None, what: str) -> None:
        """A switch answered with an error message: it lacks something that it was told, so it is not ready."""
        switch = self._switches.get(dpid) if dpid is not None else None
        if switch is not None:
            switch.refused = True
        self._emit("error", switch.name if switch is not None else "unknown switch", what)

    # Installing

    def _compile(self, failed: frozenset[str]) -> FabricProgram:
        if failed not in self._compiled:
            self._compiled[failed] = compile(self._fabric, self._mode, seed=self._seed, failed_links=failed)
        return self._compiled[failed]

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        self._wanted = frozenset(link.name for link in self._fabric.links if self._is_down(link.name))
        self._program = self._compile(self._wanted)
        for switch in self._switches.values():
            if switch.ports_known:
                self._install(switch)

    def _install(self, switch: _Switch) -> None:
        """Everything, over whatever the switch holds: first put, then remove what is left of earlier generations."""
        channel = switch.channel
        if channel is None:
            return
        self._generation = (self._generation + 1) % GENERATIONS
        generation = self._generation
        program = (self._reroute.target if self._reroute is not None else self._program).by_dpid[switch.dpid]
        switch.installed = program
        switch.refused = False
        for group in program.groups:
            channel.put_group(group)
        for flow in program.flows:
            channel.put_flow(flow, generation)

        def remove_stale() -> None:
            if switch.channel is channel:
                channel.purge_flows(generation)
                channel.ask_groups()

        self._barrier(switch, remove_stale)

    def _synced(self, switch: _Switch) -> None:
        switch.synced = True
        if switch.installed is not None:
            detail = {"flows": len(switch.installed.flows), "groups": len(switch.installed.groups)}
            self._emit("synced", switch.name, detail)
        self._check_ready()

    def _check_ready(self) -> None:
        if self._ready or not self._started:
            return
        for switch in self._switches.values():
            if not switch.synced or switch.refused:
                return
            if not all(switch.ports.get(number) for number in switch.expected_ports):
                return
        self._ready = True
        program = self._program
        detail = {"switches": len(self._switches), "flows": program.flow_count, "groups": program.group_count}
        self._emit("ready", self._fabric.name, detail)

    def _barrier(self, switch: _Switch, answered: Callable[[], None], lost: Callable[[], None] = lambda: None) -> None:
        if switch.channel is not None:
            switch.waiting[switch.channel.barrier()] = _Waiting(answered, lost)

    # Reacting

    def _is_down(self, link_name: str) -> bool:
        """True when an end of the link is known to be down; a port never heard of is not."""
        link = self._fabric.link[link_name]
        if link.tier != "fabric":
            return False
        return any(self._switches[self._dpid_of[end.node]].ports.get(end.number) is False for end in (link.a, link.b))

    def _converge(self, link_name: str) -> None:
        """The convergence delay after a change of this link is over. A flap within the delay changes nothing."""
        wanted = self._wanted | {link_name} if self._is_down(link_name) else self._wanted - {link_name}
        if wanted == self._wanted:
            return
        self._wanted = wanted
        if self._reroute is None:
            self._begin_reroute()

    def _begin_reroute(self) -> None:
        target = self._compile(self._wanted)
        held = {dpid: switch.installed for dpid, switch in self._switches.items() if switch.installed is not None}
        steps = phases(held, target.by_dpid)
        self._reroute = _Reroute(target, steps, len(steps))
        self._next_step()

    def _next_step(self) -> None:
        reroute = self._reroute
        if reroute is None:
            return
        if not reroute.steps:
            self._end_reroute(reroute)
            return
        step = reroute.steps.pop(0)
        reroute.unanswered = len(step)

        def answered() -> None:
            reroute.unanswered -= 1
            if reroute.unanswered == 0:
                self._next_step()

        for change in step:
            switch = self._switches[change.dpid]
            if switch.channel is None or switch.installed is reroute.target.by_dpid[change.dpid]:
                # Gone, or back meanwhile and given the new program as a whole.
                answered()
                continue
            reroute.flow_mods += change.flow_mods
            reroute.group_mods += change.group_mods
            _send(switch.channel, change, self._generation)
            self._barrier(switch, answered, lost=answered)

    def _end_reroute(self, reroute: _Reroute) -> None:
        for dpid, switch in self._switches.items():
            if switch.installed is not None:
                switch.installed = reroute.target.by_dpid[dpid]
        self._program = reroute.target
        self._reroute = None
        keep = (self._wanted, frozenset[str]())
        self._compiled = {links: program for links, program in self._compiled.items() if links in keep}
        detail = {
            "failed_links": sorted(reroute.target.failed_links),
            "flow_mods": reroute.flow_mods,
            "group_mods": reroute.group_mods,
            "steps": reroute.step_count,
        }
        self._emit("reroute", self._mode, detail)
        if self._wanted != reroute.target.failed_links:
            self._begin_reroute()


@dataclass
class _Reroute:
    target: FabricProgram
    steps: list[list[Change]]
    step_count: int
    unanswered: int = 0
    flow_mods: int = 0
    group_mods: int = 0


def _send(channel: Channel, change: Change, generation: int) -> None:
    for group in change.put_groups:
        channel.put_group(group)
    for flow in change.put_flows:
        channel.put_flow(flow, generation)
    for dropped in change.drop_flows:
        channel.drop_flow(dropped)
    for group_id in change.drop_groups:
        channel.drop_group(group_id)
