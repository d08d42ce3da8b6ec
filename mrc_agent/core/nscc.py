"""Congestion control: NSCC, one window per destination over all its paths (MRC 1.0 chapter 8; UET 1.0 section 3.6.13).

Four quadrants by queueing delay and ECN mark:

| | delay < target | delay >= target |
|---|---|---|
| no mark | proportional or fast increase | fair increase |
| mark | no change (the path is skipped instead) | multiplicative decrease, once per RTT |

Only delay on the way there counts: what acknowledgements wait behind the data of other hosts on the way back is no
queue of ours, and a window that shrank because of it would leave the field to those others.

In a fabric that neither marks nor trims nothing graded would ever shrink the window, so there the profile lets a delay
above target count as a mark (``delay_stands_for_ecn``); set it to False in a fabric with ECN.
"""

from __future__ import annotations

from mrc_agent.profile import NsccProfile


class Nscc:
    """The window of one destination.

    Attributes:
        cwnd: window in bytes, headers included; a packet may leave while inflight < cwnd.
        inflight: bytes sent and neither acknowledged nor declared lost; kept by the senders.
    """

    def __init__(
        self, profile: NsccProfile, *, base_rtt_s: float, rate_bps: float, packet_bytes: int, port_delay_s: float = 0.0
    ) -> None:
        """`rate_bps`: of all planes together; `packet_bytes`: a full packet with all headers; `port_delay_s`: what a
        packet may wait in the sender's own port (see ``ports.py``)."""
        self._profile = profile
        self._packet = packet_bytes
        # Ports, and hosts and switches in software, add delay that no idle round trip shows; the window covers it.
        base_rtt_s += profile.host_delay_s + port_delay_s
        self._base_rtt_s = base_rtt_s
        self._target_s = profile.target_rtts * base_rtt_s
        self.bdp = max(base_rtt_s * rate_bps / 8, packet_bytes)
        scale = self.bdp / profile.reference_bdp_bytes
        self._alpha = profile.alpha * packet_bytes * scale / self._target_s
        self._fair = profile.fair_increase * packet_bytes * scale
        self._eta = profile.eta * packet_bytes * scale
        self._fast = profile.fast_increase_scale * scale
        self._fast_delay_s = profile.fast_increase_rtts * base_rtt_s
        self._weight = profile.delay_weight / self.bdp
        self._adjust_bytes = profile.adjust_packets * packet_bytes
        self._adjust_s = profile.adjust_rtts * base_rtt_s
        self._qa_delay_s = profile.quick_adapt_targets * self._target_s
        self.max_cwnd = max(profile.max_cwnd_bdp * self.bdp, packet_bytes)
        self.cwnd = self.max_cwnd
        self.inflight = 0
        self.average_delay_s = 0.0
        self._increase = 0.0
        self._since_adjust = 0
        self._adjusted_at = float("-inf")
        self._decreased_at = float("-inf")
        self._fast_count = 0
        self._achieved = 0
        self._qa_end = 0.0
        self._bytes_to_ignore = 0
        self._bytes_ignored = 0

    def on_ack(self, now: float, size: int, delay_s: float, marked: bool) -> None:
        """`size` bytes were acknowledged; `delay_s` is the queueing on the way there, of the worst plane."""
        profile = self._profile
        target = self._target_s
        late = delay_s >= target
        if late and profile.delay_stands_for_ecn:
            marked = True
        pull = profile.unmarked_delay * self._base_rtt_s if late and not marked else delay_s
        self.average_delay_s += min(self._weight * size, 1.0) * (pull - self.average_delay_s)
        self._achieved += size
        self._bytes_ignored += size
        self._since_adjust += size
        if self._quick_adapt(now, marked, delay_s):
            return
        if not marked:
            if late:
                self._increase += self._fair * size
            elif not self._fast_increase(size, delay_s):
                self._increase += self._alpha * size * (target - delay_s)
        elif late and self.average_delay_s > target and now - self._decreased_at > self._base_rtt_s:
            excess = (self.average_delay_s - target) / self.average_delay_s
            self.cwnd *= max(1.0 - profile.gamma * excess, profile.max_md_jump)
            self._decreased_at = now
        if self._since_adjust > self._adjust_bytes or now - self._adjusted_at > self._adjust_s:
            self.cwnd += self._increase / self.cwnd
            self._increase = 0.0
            self._since_adjust = 0
            if now - self._adjusted_at > self._adjust_s:
                self.cwnd += self._eta
                self._adjusted_at = now
        self._clamp()

    def on_inferred_loss(self, size: int) -> None:
        """A packet of `size` bytes was lost without trim; the caller has taken it out of `inflight`."""
        self.cwnd -= size
        self._clamp()

    def _fast_increase(self, size: int, delay_s: float) -> bool:
        """Grows the window at once when a whole window has seen no delay; True while in that mode."""
        if delay_s >= self._fast_delay_s:
            self._fast_count = 0
            return False
        self._fast_count += size
        if self._fast_count <= self.cwnd:
            return False
        self.cwnd += size * self._fast
        return True

    def _quick_adapt(self, now: float, marked: bool, delay_s: float) -> bool:
        """Sets the window to what got through in the last period, when far too little did."""
        if not self._profile.quick_adapt:
            return False
        if self._bytes_ignored < self._bytes_to_ignore and marked:
            return True
        if now <= self._qa_end:
            return False
        adapted = False
        late = delay_s > self._qa_delay_s
        if self._qa_end and late and self._achieved < self.max_cwnd / (1 << self._profile.quick_adapt_gate):
            self.cwnd = float(self._achieved)
            self._bytes_to_ignore = self.inflight
            self._bytes_ignored = 0
            adapted = True
            self._clamp()
        self._achieved = 0
        self._qa_end = now + self._base_rtt_s + self._target_s
        return adapted

    def _clamp(self) -> None:
        self.cwnd = min(max(self.cwnd, float(self._packet)), self.max_cwnd)
