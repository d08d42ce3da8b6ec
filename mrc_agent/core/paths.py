"""Round trips by plane, and when a packet counts as lost.

The rule is that of RACK (RFC 8985), by time of sending: a packet is lost when another one, sent at least a reorder
window later, has been acknowledged. Only times of sending and acknowledged packets count, never the present time, so a
host, switch or process that stalls delays the inference but does not falsify it.

The reorder window between planes i and j is the longest recent round trip of i minus the shortest recent one of j, but
at least one base RTT, plus an allowance for jitter: queues of unequal length and planes of unequal delay reorder
packets by that much. A plane that stays silent is thus found by the acknowledgements of the others.
"""

from __future__ import annotations

from mrc_agent.profile import ReliabilityProfile

_LARGEST_DECAY = 1 / 32
_SMALLEST_DECAY = 1 / 128


class PlaneTimes:
    """Measured round trips of one destination, by plane (from 0), in seconds.

    Attributes:
        base: smallest ever seen, at first the configured one.
        smallest, largest: recent extremes; they drift towards the present samples.
        smoothed: mean over all planes, for reports.
        floor_s: smallest reorder window.
    """

    def __init__(self, planes: int, base_rtt_s: float, profile: ReliabilityProfile) -> None:
        self.base = [base_rtt_s] * planes
        self.smallest = [base_rtt_s] * planes
        self.largest = [base_rtt_s] * planes
        self.smoothed = base_rtt_s
        self.floor_s = profile.reorder_rtts * base_rtt_s + profile.jitter_s
        self._spread = profile.reorder_spread
        self._least_s = profile.reorder_rtts * base_rtt_s
        self._jitter_s = profile.jitter_s

    def sample(self, plane: int, rtt_s: float, full: bool) -> float:
        """Takes one round trip and returns its delay above the base.

        `full`: the packet was of full size. A shorter one is serialised faster and would make the base too small.
        """
        largest = self.largest[plane]
        self.largest[plane] = rtt_s if rtt_s > largest else largest + (rtt_s - largest) * _LARGEST_DECAY
        smallest = self.smallest[plane]
        if full:
            self.smallest[plane] = rtt_s if rtt_s < smallest else smallest + (rtt_s - smallest) * _SMALLEST_DECAY
            if rtt_s < self.base[plane]:
                self.base[plane] = rtt_s
        self.smoothed += (rtt_s - self.smoothed) * _LARGEST_DECAY
        return max(rtt_s - self.base[plane], 0.0)

    def lost_before(self, plane: int, newest: list[float]) -> float:
        """Packets sent on `plane` before this time are lost, given the newest acknowledged send times by plane."""
        longest = self.largest[plane]
        cutoff = float("-inf")
        for other, sent_at in enumerate(newest):
            spread = (longest - self.smallest[other]) * self._spread
            cutoff = max(cutoff, sent_at - max(spread, self._least_s) - self._jitter_s)
        return cutoff
