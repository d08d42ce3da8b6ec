"""What has to be sent to get from one program to the next, and in which order no packet falls into a loop or a hole.

Switches change one after the other, so for a moment old and new routes are mixed. Changing the flows for a destination
in the order of their new distance to it, nearest switches first, is safe for any change: a switch that has changed
hands the packet to switches that have changed too, each of them nearer, and one that has not changed follows the old
routes until the packet gets there or meets one that has. (The same idea as ordered FIB updates, RFC 6976, with the
order known to one controller.) Broadcast trees have no distance. A switch takes a broadcast only from a port of its
tree, and has a flow for each such port: all that the new tree lacks are removed everywhere before any is added, so the
links over which broadcasts are taken are part of the old tree first, of both trees then and of the new tree at last,
and never hold a ring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from controller.program import FlowRecord, GroupRecord, Match, SwitchProgram


@dataclass(frozen=True)
class Change:
    """What leads from one program of a switch to another.

    To be applied in this order, so that no packet finds a hole: groups that flows will need, flows put (an existing one
    with the same match is replaced in place), flows removed, groups nobody uses any more.
    """

    dpid: int
    put_groups: tuple[GroupRecord, ...] = ()
    put_flows: tuple[FlowRecord, ...] = ()
    drop_flows: tuple[FlowRecord, ...] = ()
    drop_groups: tuple[int, ...] = ()

    @property
    def flow_mods(self) -> int:
        """Number of flow messages this takes."""
        return len(self.put_flows) + len(self.drop_flows)

    @property
    def group_mods(self) -> int:
        """Number of group messages this takes."""
        return len(self.put_groups) + len(self.drop_groups)

    def __bool__(self) -> bool:
        return bool(self.flow_mods or self.group_mods)


def diff(old: SwitchProgram, new: SwitchProgram) -> Change:
    """What to send to a switch that holds ``old`` so that it holds ``new``."""
    old_flows = {flow.key: flow for flow in old.flows}
    new_keys = {flow.key for flow in new.flows}
    return Change(
        dpid=new.dpid,
        put_groups=tuple(group for group in new.groups if old.group.get(group.group_id) != group),
        put_flows=tuple(flow for flow in new.flows if old_flows.get(flow.key) != flow),
        drop_flows=tuple(flow for flow in old.flows if flow.key not in new_keys),
        drop_groups=tuple(group.group_id for group in old.groups if group.group_id not in new.group),
    )


def phases(old: Mapping[int, SwitchProgram], new: Mapping[int, SwitchProgram]) -> list[list[Change]]:
    """The changes from ``old`` to ``new`` (by datapath id), as steps to be finished one after the other.

    A switch that is only in one of them is left alone.
    """
    changes = [diff(old[dpid], new[dpid]) for dpid in new if dpid in old]
    first: list[Change] = []
    by_distance: dict[int, list[Change]] = {}
    last: list[Change] = []
    for change in filter(None, changes):
        withdrawn = tuple(flow for flow in change.drop_flows if flow.is_broadcast)
        first.append(Change(change.dpid, put_groups=change.put_groups, drop_flows=withdrawn))
        for distance, step in _by_distance(change, new[change.dpid]).items():
            by_distance.setdefault(distance, []).append(step)
        broadcast = tuple(flow for flow in change.put_flows if flow.is_broadcast)
        last.append(Change(change.dpid, put_flows=broadcast, drop_groups=change.drop_groups))
    steps = [first, *(by_distance[distance] for distance in sorted(by_distance)), last]
    return [kept for kept in ([change for change in step if change] for step in steps) if kept]


def _by_distance(change: Change, new: SwitchProgram) -> dict[int, Change]:
    """The unicast flows of a change by the step in which it is safe to send them."""
    empty = Change(change.dpid)
    steps: dict[int, Change] = {}
    for flow in change.put_flows:
        if not flow.is_broadcast:
            step = steps.get(flow.distance, empty)
            steps[flow.distance] = replace(step, put_flows=(*step.put_flows, flow))
    for flow in change.drop_flows:
        if not flow.is_broadcast:
            distance = _replaced_at(flow, new)
            step = steps.get(distance, empty)
            steps[distance] = replace(step, drop_flows=(*step.drop_flows, flow))
    return steps


def _replaced_at(flow: FlowRecord, new: SwitchProgram) -> int:
    """When what takes over from a flow is in place: the flows that it covers, and the best one that covers it."""
    within = [other.distance for other in new.flows if _covers(flow.match, other.match)]
    around = [other for other in new.flows if _covers(other.match, flow.match)]
    if around:
        within.append(max(around, key=lambda other: other.priority).distance)
    return max(within, default=0)


def _covers(wide: Match, narrow: Match) -> bool:
    """True when ``wide`` differs from ``narrow`` by a shorter destination prefix at most."""
    if wide.eth_dst is None or narrow.eth_dst is None or replace(wide, eth_dst=None) != replace(narrow, eth_dst=None):
        return False
    return wide.eth_dst.mask & narrow.eth_dst.mask == wide.eth_dst.mask and wide.eth_dst.covers(narrow.eth_dst.value)
