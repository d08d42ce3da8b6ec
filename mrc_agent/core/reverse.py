"""Which EV carries acknowledgements back (Araujo et al., section 2.4: the reverse EV set, one EV per plane).

An EV is confirmed when the peer reflects it in a SACK of our own data, or answers a probe sent on it. A queue pair that
only receives has no such SACKs and probes instead. A plane whose confirmation is much older than the newest is left
out.
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

    def pick(self, wish: int) -> int:
        """Index of the EV for the next control packet.

        `wish`: the plane that the packet which is answered came over. It works in one direction at least; a dead plane
        brings nothing that would have to be answered. When its confirmation is stale the next fresh plane is taken.
        """
        fresh = self._newest - self._stale_s
        planes = len(self._ev)
        stale = 0
        for step in range(planes):
            plane = (wish + step) % planes
            index = self._ev[plane]
            if index < 0:
                members = self._evs.good(plane)
                if not members:
                    continue
                index = self._ev[plane] = self._rng.choice(members)
            if self._confirmed[plane] >= fresh:
                return index
            stale = index
        return stale

    def next_probe(self) -> int:
        """Index of the EV to probe next: planes in turn, within them any EV (Araujo et al., section 2.4)."""
        self._turn = (self._turn + 1) % len(self._ev)
        candidates = [index for index, plane in enumerate(self._evs.plane_of) if plane == self._turn]
        return self._rng.choice(candidates) if candidates else -1
