"""One-way times by plane, and when a packet counts as lost.

The rule is that of RACK (RFC 8985), by time of sending: a packet is lost when another one, sent at least a reorder
window later, has been acknowledged. Only times of sending and acknowledged packets count, never the present time, so a
host, switch or process that stalls delays the inference but does not falsify it.

The reorder window between planes i and j is the longest recent one-way time of i minus the shortest recent one of j,
but at least one base RTT, plus an allowance for jitter: queues of unequal length and planes of unequal delay reorder
packets by that much. A plane that stays silent is thus found by the acknowledgements of the others.
"""

from __future__ import annotations

from mrc_agent.profile import ReliabilityProfile

_LARGEST_DECAY = 1 / 128
_SMOOTHED_DECAY = 1 / 32
_SMALLEST_DECAY = 1 / 128
_QUEUEING_DECAY = 1 / 8


class PlaneTimes:
    """Measured times of one destination, by plane (from 0), in seconds.

    What queues on the way there must be known apart from what queues on the way back: the window and the order of
    arrival depend on the former alone. One-way times contain the unknown difference of two clocks, which is the same on
    all planes and cancels in every use.

    Attributes:
        shortest_rtt: smallest round trip ever seen, at first the configured one.
        base: smallest one-way time ever seen.
        smallest, largest: recent extremes of the one-way time; they drift towards the present samples.
        queueing: mean queueing delay on the way there.
        smoothed: mean round trip over all planes.
        floor_s: smallest reorder window.
    """

    def __init__(self, planes: int, base_rtt_s: float, window_s: float, profile: ReliabilityProfile) -> None:
        """`window_s`: how long a full window takes at full rate; until there are samples, queues may be that long."""
        self.shortest_rtt = [base_rtt_s] * planes
        self.base = [float("inf")] * planes
        self.smallest = [0.0] * planes  # the first sample of all is the origin of one-way times
        self.largest = [window_s] * planes
        self.queueing = [0.0] * planes
        self.smoothed = base_rtt_s
        self.floor_s = profile.reorder_rtts * base_rtt_s + profile.jitter_s
        self._spread = profile.reorder_spread
        self._least_s = profile.reorder_rtts * base_rtt_s
        self._jitter_s = profile.jitter_s

    def sample(self, plane: int, rtt_s: float, one_way_s: float, full: bool) -> float:
        """Takes the times of one packet; returns by how much its path is slower than the fastest of the plane now.

        `full`: the packet was of full size. A shorter one is serialised faster and would make the base too small.
        """
        largest = self.largest[plane]
        self.largest[plane] = one_way_s if one_way_s > largest else largest + (one_way_s - largest) * _LARGEST_DECAY
        if full:
            smallest = self.smallest[plane]
            if one_way_s < smallest:
                self.smallest[plane] = one_way_s
            else:
                self.smallest[plane] = smallest + (one_way_s - smallest) * _SMALLEST_DECAY
            if one_way_s < self.base[plane]:
                self.base[plane] = one_way_s
            if rtt_s < self.shortest_rtt[plane]:
                self.shortest_rtt[plane] = rtt_s
        self.smoothed += (rtt_s - self.smoothed) * _SMOOTHED_DECAY
        excess = one_way_s - self.base[plane]
        queueing = self.queueing[plane]
        self.queueing[plane] = queueing + ((excess if excess > 0.0 else 0.0) - queueing) * _QUEUEING_DECAY
        return one_way_s - self.smallest[plane]

    def lost_before(self, plane: int, newest: list[float]) -> float:
        """Packets sent on `plane` before this time are lost, given the newest acknowledged send times by plane."""
        longest = self.largest[plane]
        cutoff = float("-inf")
        for other, sent_at in enumerate(newest):
            spread = (longest - self.smallest[other]) * self._spread
            cutoff = max(cutoff, sent_at - max(spread, self._least_s) - self._jitter_s)
        return cutoff
