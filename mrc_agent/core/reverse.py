"""Which EV carries acknowledgements back (Araujo et al., section 2.4: the reverse EV set, one EV per plane).

An EV is confirmed when the peer reflects it in a SACK of our own data, or answers a probe sent on it. A queue pair that
only receives has no such SACKs and probes instead. Planes take turns; one whose confirmation is much older than the
newest is left out.
"""

from __future__ import annotations

from random import Random

from mrc_agent.core.evs import EvSet, EvState


class ReversePath:
    """The reverse EVs of one queue pair."""

    def __init__(self, evs: EvSet, planes: int, stale_s: float, rng: Random) -> None:
        self._evs = evs
        self._stale_s = stale_s
        self._rng = rng
        self._ev = [rng.choice(evs.good(plane)) if evs.good(plane) else -1 for plane in range(planes)]
        self._confirmed = [float("-inf")] * planes
        self._newest = float("-inf")
        self._turn = rng.randrange(planes)

    def confirm(self, index: int, now: float) -> None:
        """The EV has just carried a packet to the peer."""
        plane = self._evs.plane_of[index]
        if self._evs.state[index] < EvState.ASSUMED_BAD:
            self._ev[plane] = index
        self._confirmed[plane] = self._newest = now

    def replace(self, index: int) -> None:
        """The EV is assumed bad; another of its plane steps in, if there is one."""
        plane = self._evs.plane_of[index]
        if self._ev[plane] == index:
            members = self._evs.good(plane)
            self._ev[plane] = self._rng.choice(members) if members else -1

    def pick(self) -> int:
        """Index of the EV for the next control packet."""
        fresh = self._newest - self._stale_s
        planes = len(self._ev)
        stale = -1
        for _ in range(planes):
            self._turn = (self._turn + 1) % planes
            index = self._ev[self._turn]
            if index < 0:
                members = self._evs.good(self._turn)
                if not members:
                    continue
                index = self._ev[self._turn] = members[0]
            if self._confirmed[self._turn] >= fresh:
                return index
            stale = index
        return max(stale, 0)
