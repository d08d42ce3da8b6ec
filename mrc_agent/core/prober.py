"""Endpoint requests on single EVs: is a path that was assumed bad working again? (Araujo et al., section 2.1.)

Every EV in ASSUMED_BAD is probed at an interval; enough answers in a row make it GOOD. The same probes confirm reverse
EVs of a queue pair that receives and does not send (section 2.4).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from mrc_agent.core.evs import EvState
from mrc_agent.wire.headers import BTH, ERTH
from mrc_agent.wire.opcodes import ENDPOINT_QP, EndpointOperation, Opcode

if TYPE_CHECKING:
    from mrc_agent.core.queue_pair import Context
    from mrc_agent.core.reverse import ReversePath


class Prober:
    """The probes of one queue pair."""

    def __init__(self, context: Context, reverse: ReversePath, rng: Random) -> None:
        profile = context.profile.evs
        rtt_s = context.destination.base_rtt_s
        self._context = context
        self._reverse = reverse
        self._rng = rng
        self._interval_s = profile.probe_interval_rtts * rtt_s
        # Both hosts are scheduled once for the request and once for the answer, and so are the switches.
        self._timeout_s = profile.probe_timeout_rtts * rtt_s + 4 * context.profile.reliability.jitter_s
        self._reverse_interval_s = profile.reverse_probe_rtts * rtt_s
        self._needed = profile.probe_successes
        self._due: dict[int, float] = {}  # bad EV -> when to probe it next
        self._successes: dict[int, int] = {}
        self._waiting: dict[int, tuple[int, float]] = {}  # probe id -> EV, when it counts as lost
        self._reverse_due = float("inf")
        self._seen = (0, 0)  # packets received and sent when the reverse timer last ran

    def watch(self, index: int, now: float) -> None:
        """The EV has become bad: probe it, the first time after a random part of the interval."""
        self._successes[index] = 0
        self._due[index] = now + self._interval_s * (0.5 + 0.5 * self._rng.random())

    def forget(self, index: int) -> None:
        """The EV is no longer bad, or nobody wants to know."""
        self._due.pop(index, None)
        self._successes.pop(index, None)

    def start_reverse(self, now: float) -> None:
        """Data arrives: from now on look after the reverse EVs."""
        if self._reverse_due == float("inf"):
            self._reverse_due = now + self._reverse_interval_s * self._rng.random()

    def on_timer(self, now: float, received: int, sent: int) -> None:
        """Sends what is due; `received` and `sent` are the data packets of the queue pair so far."""
        for probe_id, (index, until) in list(self._waiting.items()):
            if until <= now:
                del self._waiting[probe_id]
                if index in self._successes:
                    self._successes[index] = 0
        for index, due in self._due.items():
            if due <= now:
                self._due[index] = now + self._interval_s
                self._send(index, now)
        if self._reverse_due <= now:
            before, self._seen = self._seen, (received, sent)
            if received == before[0]:
                self._reverse_due = float("inf")  # silence; the next data packet starts it again
                return
            self._reverse_due = now + self._reverse_interval_s
            if sent == before[1]:
                self._send(self._reverse.next_probe(), now)

    def next_timer(self) -> float:
        """When `on_timer` must run."""
        when = min(self._due.values(), default=self._reverse_due)
        waiting = min((until for _, until in self._waiting.values()), default=when)
        return min(when, waiting, self._reverse_due)

    def on_answer(self, probe_id: int, now: float) -> bool:
        """The peer has answered; False when nobody waited for it."""
        index, _ = self._waiting.pop(probe_id, (-1, 0.0))
        if index < 0:
            return False
        evs = self._context.evs
        if evs.state[index] == EvState.ASSUMED_BAD:
            self._successes[index] = self._successes.get(index, 0) + 1
            if self._successes[index] >= self._needed:
                evs.restore(index, now, "probes")
        self._reverse.confirm(index, now)
        self._context.counters["ev_probe_answers"] += 1
        return True

    def _send(self, index: int, now: float) -> None:
        context = self._context
        if index < 0 or context.evs.state[index] == EvState.DENIED:
            return
        probe_id = context.new_probe_id()
        self._waiting[probe_id] = (index, now + self._timeout_s)
        header = bytearray(28)
        at = BTH(Opcode.ENDPOINT_REQUEST, ENDPOINT_QP, probe_id, pkey=context.profile.wire.pkey).pack_into(header)
        stamp = int(now / context.profile.wire.timestamp_unit_s) & 0xFFFF
        ERTH(EndpointOperation.EV_PROBE, 0, stamp).pack_into(header, at)
        context.counters["ev_probes"] += 1
        context.send_control(bytes(header), index, context.profile.wire.dscp_control)
