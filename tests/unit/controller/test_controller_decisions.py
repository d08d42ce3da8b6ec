"""What the controller decides, driven by hand: fake switches answer, a fake clock runs the timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controller.control import GATHER_S, Control
from controller.program import FlowRecord, GroupRecord, Match
from controller.routes import compile
from topologies.graph import Fabric

Build = Callable[[str], Fabric]

CONVERGENCE_S = 0.5
STALE_GROUP = 999


class FakeSwitch:
    """Keeps flows and groups as a switch does, and answers barriers when told to."""

    def __init__(self, lab: Lab, dpid: int) -> None:
        self.lab = lab
        self.dpid = dpid
        self.flows: dict[tuple[int, Match], tuple[FlowRecord, int]] = {}
        self.groups: dict[int, GroupRecord | None] = {STALE_GROUP: None}
        self.log: list[str] = []
        self._next_xid = 100 * dpid
        self.answers: list[Callable[[], None]] = []

    def put_group(self, group: GroupRecord) -> None:
        self.log.append(f"put group {group.group_id}")
        self.groups[group.group_id] = group

    def put_flow(self, flow: FlowRecord, generation: int) -> None:
        self.log.append("put flow")
        self.flows[flow.key] = (flow, generation)

    def drop_flow(self, flow: FlowRecord) -> None:
        self.log.append("drop flow")
        self.flows.pop(flow.key, None)

    def drop_group(self, group_id: int) -> None:
        self.log.append(f"drop group {group_id}")
        self.groups.pop(group_id, None)

    def purge_flows(self, generation: int) -> None:
        self.log.append("purge")
        self.flows = {key: entry for key, entry in self.flows.items() if entry[1] == generation}

    def ask_groups(self) -> None:
        self.answers.append(lambda: self.lab.control.groups_listed(self.dpid, frozenset(self.groups)))

    def ask_ports(self) -> None:
        self.answers.append(lambda: self.lab.control.ports_listed(self.dpid, dict(self.lab.ports[self.dpid])))

    def barrier(self) -> int:
        self._next_xid += 1
        xid = self._next_xid
        self.log.append("barrier")
        self.answers.append(lambda: self.lab.control.acknowledged(self.dpid, xid))
        return xid


class Lab:
    """A fabric of fake switches around a Control."""

    def __init__(self, network: Fabric, mode: str) -> None:
        self.network = network
        self.mode = mode
        self.events: list[tuple[str, str, Any]] = []
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.ports = {
            switch.dpid: {link.port_of(switch.name).number: True for link in network.links_of[switch.name]}
            for switch in network.switches
        }
        self.dpid = {switch.name: switch.dpid for switch in network.switches}
        self.restart()
        self.switches = {dpid: FakeSwitch(self, dpid) for dpid in self.ports}

    def restart(self, first_generation: int = 1) -> None:
        self.timers = []
        self.control = Control(
            self.network,
            self.mode,
            seed=1,
            convergence_s=CONVERGENCE_S,
            first_generation=first_generation,
            emit=lambda kind, name, detail: self.events.append((kind, name, detail)),
            schedule=lambda delay, callback: self.timers.append((self.now + delay, callback)),
        )

    def connect(self, *names: str) -> None:
        for name in names or tuple(self.dpid):
            self.control.connected(self.dpid[name], self.switches[self.dpid[name]])

    def answer(self) -> None:
        """Every switch answers all it was asked, and what it is asked meanwhile."""
        while any(switch.answers for switch in self.switches.values()):
            self.answer_once()

    def answer_once(self) -> None:
        """Every switch answers what it was asked so far."""
        asked = [(switch, switch.answers) for switch in self.switches.values()]
        for switch, answers in asked:
            switch.answers = []
            for answer in answers:
                answer()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, callback in due:
            callback()
        self.answer()

    def port(self, name: str, number: int, up: bool) -> None:
        self.ports[self.dpid[name]][number] = up
        self.control.port_changed(self.dpid[name], number, up)

    def link(self, name: str, up: bool) -> None:
        link = self.network.link[name]
        for end in (link.a, link.b):
            self.port(end.node, end.number, up)

    def kinds(self) -> list[str]:
        return [kind for kind, _, _ in self.events]

    def detail(self, kind: str) -> Any:
        return next(detail for found, _, detail in self.events if found == kind)

    def holds(self, failed: frozenset[str] = frozenset()) -> bool:
        """All switches hold exactly the program for these failed links."""
        for program in compile(self.network, self.mode, seed=1, failed_links=failed).switches:
            switch = self.switches[program.dpid]
            if {entry[0] for entry in switch.flows.values()} != set(program.flows):
                return False
            if set(switch.groups.values()) != set(program.groups):
                return False
        return True


@pytest.fixture
def lab(fabric: Build) -> Lab:
    return Lab(fabric("leaf-spine"), "ecmp")


@pytest.fixture
def ready(lab: Lab) -> Lab:
    lab.connect()
    lab.answer()
    lab.events.clear()
    return lab


def test_ready_comes_when_the_last_switch_has_acknowledged(lab: Lab) -> None:
    lab.connect("leaf1", "leaf2", "leaf3", "leaf4", "spine1")
    lab.answer()
    assert "ready" not in lab.kinds()
    lab.connect("spine2")
    lab.answer()
    assert lab.kinds().count("ready") == 1
    assert lab.kinds()[-1] == "ready"
    assert lab.holds()


def test_ready_waits_for_every_port(lab: Lab) -> None:
    del lab.ports[lab.dpid["leaf1"]][1]
    lab.connect()
    lab.answer()
    assert "ready" not in lab.kinds()
    lab.port("leaf1", 1, True)
    assert lab.kinds()[-2:] == ["port_up", "ready"]


def test_ready_does_not_come_when_a_switch_has_refused_something(lab: Lab) -> None:
    lab.connect()
    lab.answer_once()
    lab.control.refused(lab.dpid["leaf1"], "OFPT_GROUP_MOD refused")
    lab.answer()
    assert ("error", "leaf1", "OFPT_GROUP_MOD refused") in lab.events
    assert "ready" not in lab.kinds()


def test_groups_are_put_before_flows_and_nothing_is_removed_before_all_is_acknowledged(lab: Lab) -> None:
    lab.connect()
    lab.answer()
    log = lab.switches[lab.dpid["leaf1"]].log
    first_removal = log.index("purge")
    assert log.index("put group 24") < log.index("put flow")
    assert "barrier" in log[:first_removal]
    assert "put flow" not in log[first_removal:]
    assert log[first_removal + 1] == f"drop group {STALE_GROUP}"


def test_flows_of_an_earlier_controller_are_removed_and_the_same_flows_stay_without_a_gap(ready: Lab) -> None:
    leaf = ready.switches[ready.dpid["leaf1"]]
    old_rule = FlowRecord(7, Match(in_port=3))
    leaf.put_flow(old_rule, 1)
    kept = set(leaf.flows) - {old_rule.key}
    ready.restart(first_generation=500)
    leaf.log.clear()
    ready.connect()
    ready.answer()
    assert ready.holds()
    assert set(leaf.flows) == kept
    assert "drop flow" not in leaf.log


def test_an_unknown_switch_is_reported_and_left_alone(ready: Lab) -> None:
    stranger = FakeSwitch(ready, 77)
    ready.control.connected(77, stranger)
    assert ready.kinds() == ["error"]
    assert stranger.log == []


def test_a_failed_link_is_routed_around_after_the_convergence_delay_and_not_before(ready: Lab) -> None:
    ready.link("leaf1-spine1", False)
    ready.advance(CONVERGENCE_S * 0.9)
    assert ready.kinds() == ["port_down", "port_down"]
    assert ready.holds()
    ready.advance(CONVERGENCE_S * 0.2)
    assert ready.kinds() == ["port_down", "port_down", "reroute"]
    assert ready.holds(frozenset({"leaf1-spine1"}))
    detail = ready.detail("reroute")
    assert detail["failed_links"] == ["leaf1-spine1"]
    assert detail["flow_mods"] > 0


def test_one_end_down_is_enough(ready: Lab) -> None:
    ready.port("leaf1", 3, False)
    ready.advance(CONVERGENCE_S)
    assert ready.holds(frozenset({"leaf1-spine1"}))


def test_a_link_that_comes_back_is_used_again_after_the_delay(ready: Lab) -> None:
    ready.link("leaf1-spine1", False)
    ready.advance(CONVERGENCE_S)
    ready.link("leaf1-spine1", True)
    assert ready.holds(frozenset({"leaf1-spine1"}))
    ready.advance(CONVERGENCE_S)
    assert ready.holds()
    assert ready.kinds().count("reroute") == 2


def test_a_flap_shorter_than_the_delay_changes_nothing(ready: Lab) -> None:
    ready.link("leaf1-spine1", False)
    ready.advance(CONVERGENCE_S / 2)
    ready.link("leaf1-spine1", True)
    ready.advance(CONVERGENCE_S * 2)
    assert "reroute" not in ready.kinds()
    assert ready.holds()


def test_a_failure_during_a_reroute_is_handled_after_it(ready: Lab) -> None:
    ready.link("leaf1-spine1", False)
    ready.now += CONVERGENCE_S
    for _, callback in ready.timers:
        callback()
    ready.timers = []
    ready.link("leaf2-spine2", False)
    ready.advance(CONVERGENCE_S)
    assert ready.holds(frozenset({"leaf1-spine1", "leaf2-spine2"}))
    assert ready.kinds().count("reroute") == 2


def test_a_switch_lost_during_a_reroute_does_not_hold_it_up_and_is_told_all_when_it_returns(ready: Lab) -> None:
    ready.link("leaf1-spine1", False)
    ready.now += CONVERGENCE_S
    for _, callback in ready.timers:
        callback()
    spine = ready.switches[ready.dpid["spine1"]]
    spine.answers = []
    ready.control.disconnected(spine.dpid, spine)
    ready.answer()
    assert ready.kinds()[-2:] == ["switch_down", "reroute"]
    ready.connect("spine1")
    ready.answer()
    assert ready.holds(frozenset({"leaf1-spine1"}))


def test_a_host_link_that_fails_is_an_event_and_no_reason_for_new_routes(ready: Lab) -> None:
    ready.port("leaf1", 1, False)
    ready.advance(CONVERGENCE_S * 2)
    assert ready.kinds() == ["port_down"]


def test_disjoint_reports_failures_and_leaves_its_routes_alone(fabric: Build) -> None:
    lab = Lab(fabric("leaf-spine"), "disjoint")
    lab.connect()
    lab.answer()
    lab.link("leaf1-spine1", False)
    lab.advance(10)
    assert lab.kinds()[-2:] == ["port_down", "port_down"]
    assert lab.holds()


def test_a_controller_started_during_a_failure_routes_around_it_from_the_beginning(ready: Lab) -> None:
    ready.link("leaf1-spine1", False)
    ready.advance(CONVERGENCE_S)
    for switch in ready.switches.values():
        switch.log.clear()
    ready.restart(first_generation=500)
    ready.events.clear()
    ready.connect()
    ready.answer()
    assert ready.holds(frozenset({"leaf1-spine1"}))
    assert "reroute" not in ready.kinds()
    assert "ready" not in ready.kinds(), "a port is down"
    ready.link("leaf1-spine1", True)
    assert ready.kinds()[-1] == "ready"


def test_a_switch_that_stays_away_does_not_keep_the_others_from_forwarding(lab: Lab) -> None:
    lab.connect("leaf1", "leaf2", "spine1")
    lab.answer()
    leaf = lab.switches[lab.dpid["leaf1"]]
    assert not leaf.flows
    lab.advance(GATHER_S)
    assert leaf.flows


def test_a_switch_that_lost_its_flows_gets_them_back_when_it_reconnects(ready: Lab) -> None:
    spine = ready.switches[ready.dpid["spine1"]]
    ready.control.disconnected(spine.dpid, spine)
    spine.flows.clear()
    spine.groups.clear()
    ready.connect("spine1")
    ready.answer()
    assert ready.holds()


def test_a_reconnection_noticed_before_the_loss_is_no_loss(ready: Lab) -> None:
    dpid = ready.dpid["spine1"]
    old = ready.switches[dpid]
    ready.switches[dpid] = FakeSwitch(ready, dpid)
    ready.connect("spine1")
    ready.control.disconnected(dpid, old)
    ready.answer()
    assert "switch_down" not in ready.kinds()
    assert ready.holds()
