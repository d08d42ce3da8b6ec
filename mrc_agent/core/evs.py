"""The entropy values of one queue pair: which path each packet takes (MRC 1.0 section 9.3.1; Araujo et al., 2.1).

Equal shares: planes take turns, one packet each, so every plane that has a usable EV carries the same number of
packets. Within a plane the active EVs are visited in a fresh random order each rotation. An EV that lost a packet
leaves at once and a backup of the *same plane* takes its place; a plane without usable EV drops out of the turns until
probes bring one back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from math import ceil
from random import Random

from mrc_agent.core.errors import MrcError
from mrc_agent.profile import EvProfile


class EvState(IntEnum):
    """MRC 1.0 figure 5."""

    GOOD = 0
    SKIP = 1
    ASSUMED_BAD = 2
    DENIED = 3


OnChange = Callable[[float, int, EvState, EvState, str], None]
"""Time, index of the EV, state before, state after, cause."""


class EvSet:
    """The EV universe of a queue pair. An EV is named by its index in `values`.

    Attributes:
        values, plane_of: EV and plane (from 0) by index.
        order, position: planes that take turns, and whose turn is next.
        recent: by plane, the EV of the newest packet that was acknowledged; -1 before the first.
        sent, retransmitted, acked, lost, skips, changes: counters by index.
    """

    def __init__(self, evs: Sequence[Sequence[int]], profile: EvProfile, rng: Random, on_change: OnChange) -> None:
        """`evs`: by plane (from 0), the EVs that may be used there. Raises MrcError when none is given or one twice."""
        self._profile = profile
        self._random = rng.random
        self._on_change = on_change
        self.values: list[int] = []
        self.plane_of: list[int] = []
        self._active: list[list[int]] = []
        self._backups: list[deque[int]] = []
        for plane, values in enumerate(evs):
            members = list(range(len(self.values), len(self.values) + len(values)))
            self.values.extend(values)
            self.plane_of.extend([plane] * len(values))
            rng.shuffle(members)
            backups = ceil(len(members) * profile.backup_share) if len(members) > 1 else 0
            count = min(max(len(members) - backups, 1), profile.active_max)
            self._active.append(members[:count])
            self._backups.append(deque(members[count:]))
        if not self.values:
            raise MrcError("a queue pair needs at least one EV")
        self.index_of = {value: index for index, value in enumerate(self.values)}
        if len(self.index_of) != len(self.values):
            raise MrcError("an EV is listed twice: each names one path of one plane")
        total = len(self.values)
        self._wanted = [len(members) for members in self._active]
        self._cursor = [0] * len(self._active)
        self.state: list[EvState] = [EvState.GOOD] * total
        self._since = [float("-inf")] * total
        self.sent = [0] * total
        self.retransmitted = [0] * total
        self.acked = [0] * total
        self.lost = [0] * total
        self.skips = [0] * total
        self.changes = [0] * total
        self.recent = [-1] * len(self._active)
        self.order: list[int] = []
        self.position = 0
        self._take_turns()
        rng.shuffle(self.order)

    def _take_turns(self) -> None:
        """Rebuilds the turns after a plane lost its last or won its first EV."""
        usable = [plane for plane, members in enumerate(self._active) if members]
        kept = [plane for plane in self.order if plane in usable]
        self.order = kept + [plane for plane in usable if plane not in kept]
        self.position = 0

    def pick(self, plane: int, avoid: int = -1) -> int:
        """Index of the EV for the next packet on a plane of `order`; `avoid` only when it is the plane's last.

        A visited SKIP EV becomes GOOD, but this packet moves on; at most one per packet (MRC 1.0 section 9.3.1).
        """
        members = self._active[plane]
        count = len(members)
        cursor = self._cursor[plane]
        restored = False
        index = -1
        for _ in range(count + 2):
            if cursor >= count:
                cursor = 0
            # One step of a Fisher-Yates shuffle: a fresh order each rotation, paid for one packet at a time.
            other = cursor + int(self._random() * (count - cursor))
            index = members[other]
            members[other] = members[cursor]
            members[cursor] = index
            cursor += 1
            if self.state[index] == EvState.SKIP and not restored:
                restored = True
                self.state[index] = EvState.GOOD
                continue
            if index != avoid or count == 1:
                break
        self._cursor[plane] = cursor
        return index

    def pick_proven(self, position: int, avoid: int, since: float, newest: list[float]) -> int:
        """The EV for a retransmission: one that has just delivered, so that the same failure does not hit it twice.

        Planes are tried in turn from `position`; the first that delivered something sent after the lost packet wins,
        so a plane that fell silent is not asked again. `avoid`: the EV that lost the packet; it is taken only when
        there is no other at all. `since`: when the lost packet was sent. `newest`: by plane, when the newest delivered
        packet was sent.
        """
        order = self.order
        planes = order[position:] + order[:position]
        planes.sort(key=lambda plane: newest[plane] < since)
        for plane in planes:
            index = self.recent[plane]
            if index < 0 or index == avoid or index not in self._active[plane]:
                index = self.pick(plane, avoid)
            if index != avoid:
                return index
        return avoid

    def good(self, plane: int) -> list[int]:
        """The EVs of a plane in use (not the backups)."""
        return self._active[plane]

    def skip(self, index: int) -> None:
        """The path is congested: pass over this EV once. Not reported: only GOOD and ASSUMED_BAD make events."""
        if self.state[index] == EvState.GOOD:
            self.state[index] = EvState.SKIP
            self.skips[index] += 1

    def bad(self, index: int, now: float, cause: str, evidence_s: float) -> bool:
        """The path is assumed broken: the EV leaves and a backup of its plane comes in.

        `evidence_s`: when the packet that speaks against the EV was sent; evidence from before the EV's last change
        of state says nothing about it now. Returns False when the EV stays because of ``ev_min_active``.
        """
        if self.state[index] >= EvState.ASSUMED_BAD or evidence_s < self._since[index]:
            return True
        plane = self.plane_of[index]
        members = self._active[plane]
        if index in members:
            if self._backups[plane]:
                members[members.index(index)] = self._backups[plane].popleft()
            elif sum(map(len, self._active)) <= self._profile.min_active:
                return False
            else:
                self._remove(plane, index)
        else:
            self._backups[plane].remove(index)
        self._change(now, index, EvState.ASSUMED_BAD, cause)
        return True

    def restore(self, index: int, now: float, cause: str) -> None:
        """The path works again: the EV becomes active when its plane is short of EVs, else a backup."""
        if self.state[index] < EvState.ASSUMED_BAD:
            return
        plane = self.plane_of[index]
        if len(self._active[plane]) < self._wanted[plane]:
            self._active[plane].append(index)
            if len(self._active[plane]) == 1:
                self._take_turns()
        else:
            self._backups[plane].append(index)
        self._change(now, index, EvState.GOOD, cause)

    def _remove(self, plane: int, index: int) -> None:
        members = self._active[plane]
        at = members.index(index)
        del members[at]
        if at < self._cursor[plane]:
            self._cursor[plane] -= 1
        if not members:
            self._take_turns()

    def _change(self, now: float, index: int, after: EvState, cause: str) -> None:
        before = self.state[index]
        self.state[index] = after
        self._since[index] = now
        self.changes[index] += 1
        self._on_change(now, index, before, after, cause)
