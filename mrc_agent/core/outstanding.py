"""Packets sent and not acknowledged: who is in flight, who is lost (MRC 1.0 section 7.5; RFC 8985 for the inference).

PSNs are integers that never wrap. All state lies in arrays indexed by PSN modulo a power of two, so memory is bounded
by the window. Transmissions are also queued by plane in the order of sending: the order in which they get lost.
"""

from __future__ import annotations

from collections import deque
from heapq import heappush
from typing import TYPE_CHECKING

from mrc_agent.core.datagram import SendMessage
from mrc_agent.core.events import Status
from mrc_agent.wire.data import DATA_OVERHEAD_BYTES, SACK_BITS

if TYPE_CHECKING:
    from mrc_agent.core.queue_pair import Context

ATTEMPT_BITS = 6
"""Low bits of a queue entry: tell a retransmission from the transmission that it replaces."""
_ATTEMPT_MASK = (1 << ATTEMPT_BITS) - 1
_NEVER = float("-inf")
_PLAUSIBLE = 0.9  # of the base RTT: an acknowledgement sooner than that is of an earlier transmission

Packet = tuple[SendMessage, int, int, int]
"""Message, offset and length of the payload in it, opcode."""


class Outstanding:
    """The send window.

    Attributes:
        una, next: oldest PSN not acknowledged, next new PSN.
        window: most PSNs outstanding at once.
        packets, sent_at, ev_of, attempts, timeouts, is_lost: by slot, that is PSN & `mask`. A lost packet is not in
            flight until it is sent again.
        resend: heap of lost PSNs, oldest gap first; may hold some that were acknowledged since.
        fifos: by plane, transmissions in the order of sending as PSN << ATTEMPT_BITS | attempt.
        failure: completion status when the retry budget of a packet is used up.
    """

    def __init__(self, context: Context, first_psn: int) -> None:
        self._evs = context.evs
        self._nscc = context.destination.nscc
        self._times = context.destination.times
        self._counters = context.counters
        self._reliability = context.profile.reliability
        base_rtt_s = context.destination.base_rtt_s
        self._rto_s = max(self._reliability.rto_rtts * base_rtt_s, self._reliability.rto_min_s)
        self._retries = self._reliability.linear_retries + self._reliability.exponential_retries
        self.una = self.next = first_psn
        self._acked = 0  # bitmap: bit n stands for una + n
        self.resend: list[int] = []
        planes = len(context.destination.addresses)
        self.fifos: list[deque[int]] = [deque() for _ in range(planes)]
        self.newest = [_NEVER] * planes  # by plane, when the newest acknowledged packet was sent
        self._newest_any = _NEVER
        self._suspects: list[set[int]] = [set() for _ in range(planes)]  # EVs that lost since the plane last answered
        self._silent_since = [_NEVER] * planes
        self._silent_plane_evs = context.profile.evs.silent_plane_evs
        self._told: list[tuple[int, int, float]] = []  # SACKs since losses were last inferred, see `heard_sack`
        self._timeout_at = float("inf")
        self.failure: Status | None = None
        self.open(0)

    def open(self, window: int) -> None:
        """Sets the window and with it the size of the arrays; nothing may be outstanding."""
        self.window = window
        slots = 1 << window.bit_length()
        self.mask = slots - 1
        self.packets: list[Packet | None] = [None] * slots
        self.sent_at = [0.0] * slots
        self.ev_of = [0] * slots
        self.attempts = [0] * slots
        self.timeouts = [0] * slots
        self.is_lost = bytearray(slots)

    def covers(self, bitmap: int) -> bool:
        """Whether a bitmap relative to `una` speaks only of packets that were sent."""
        return not bitmap >> (self.next - self.una)

    def acknowledge(self, bitmap: int, now: float) -> int:
        """Takes packets out of the window: bit n of `bitmap` stands for una + n. Returns bytes newly acknowledged."""
        remaining = bitmap & ~self._acked
        if not remaining:
            return 0
        self._acked |= remaining
        mask, packets, evs, planes, newest = self.mask, self.packets, self._evs, self._evs.plane_of, self.newest
        una = self.una
        total = count = out_of_flight = 0
        while remaining:
            low = remaining & -remaining
            remaining ^= low
            slot = (una + low.bit_length() - 1) & mask
            packet = packets[slot]
            if packet is None:
                continue
            packets[slot] = None
            size = packet[2] + DATA_OVERHEAD_BYTES
            total += size
            count += 1
            index = self.ev_of[slot]
            if self.is_lost[slot]:
                self.is_lost[slot] = 0
                self._counters["spurious_losses"] += 1
                continue
            out_of_flight += size
            evs.acked[index] += 1
            sent_at = self.sent_at[slot]
            plane = planes[index]
            if self.attempts[slot] > 1 and now - sent_at < _PLAUSIBLE * self._times.shortest_rtt[plane]:
                self._counters["spurious_retransmissions"] += 1
            elif sent_at > newest[plane]:
                newest[plane] = sent_at
                evs.recent[plane] = index
                if sent_at > self._newest_any:
                    self._newest_any = sent_at
        self._nscc.inflight -= out_of_flight
        self._counters["acked_packets"] += count
        acked = self._acked
        if acked & 1:
            run = (~acked & (acked + 1)).bit_length() - 1
            self.una = una + run
            self._acked = acked >> run
        return total

    def heard_probe(self, probe_plane: int, sent_at: float, first_psn: int, now: float) -> None:
        """A reliability probe was answered: what was sent a reorder window before it and is missing is lost.

        `first_psn`: where the bitmap of the answer begins; it says nothing about what lies outside.
        """
        newest = [_NEVER] * len(self.newest)
        newest[probe_plane] = sent_at
        for plane in range(len(self.fifos)):
            cutoff = self._times.lost_before(plane, newest)
            while (slot := self._oldest(plane)) >= 0 and self.sent_at[slot] <= cutoff:
                if not 0 <= (self.fifos[plane][0] >> ATTEMPT_BITS) - first_psn < SACK_BITS:
                    break
                self._lose(plane, slot, now, "loss")

    def heard_sack(self, cack: int, first_psn: int) -> None:
        """Remembers what a SACK, just taken, could tell of: cack + 1, and the 64 PSNs from `first_psn`."""
        self._told.append((cack + 1, first_psn, self._newest_any))

    def infer_losses(self, now: float) -> bool:
        """Declares lost what the SACKs since the last call leave behind by more than the reorder window.

        Returns True when packets are that late of which no SACK told: they may have arrived, and a reliability probe
        should ask (MRC 1.0 section 7.5: rather that than a blind retransmission).
        """
        told, self._told = self._told, []
        suspicious = self._newest_any - self._times.floor_s
        unknown = False
        for plane in range(len(self.fifos)):
            slot = self._oldest(plane)
            if slot < 0 or self.sent_at[slot] > suspicious:
                continue
            cutoff = self._times.lost_before(plane, self.newest)
            while slot >= 0 and self.sent_at[slot] <= cutoff:
                psn = self.fifos[plane][0] >> ATTEMPT_BITS
                least = self.sent_at[slot] + self._times.floor_s
                if not any(
                    newest >= least and (psn == hole or 0 <= psn - first < SACK_BITS) for hole, first, newest in told
                ):
                    unknown = True
                    break
                self._lose(plane, slot, now, "loss")
                slot = self._oldest(plane)
        return unknown

    def expire(self, now: float) -> None:
        """Declares lost what was not acknowledged within its retransmission timeout."""
        for plane in range(len(self.fifos)):
            slot = self._oldest(plane)
            while slot >= 0 and self.sent_at[slot] + self._timeout_s(slot) <= now:
                self._counters["timeouts"] += 1
                self.timeouts[slot] += 1
                if self.timeouts[slot] > self._retries:
                    self.failure = "retry_exceeded"
                self._lose(plane, slot, now, "timeout")
                slot = self._oldest(plane)

    def next_timeout(self, now: float) -> float:
        """When `expire` must run, or look again; infinite when nothing is in flight.

        What is sent later times out later, so the answer holds until its time has come: looking is rare.
        """
        if now < self._timeout_at:
            return self._timeout_at
        when = float("inf")
        for plane in range(len(self.fifos)):
            slot = self._oldest(plane)
            if slot >= 0:
                when = min(when, self.sent_at[slot] + self._timeout_s(slot))
        self._timeout_at = when
        return when

    def sent(self, now: float) -> None:
        """Packets were sent at `now`: there is a timeout to come."""
        self._timeout_at = min(self._timeout_at, now + self._rto_s)

    def abandon(self) -> None:
        """Forgets everything outstanding; its share of the destination's window becomes free."""
        for packet, lost in zip(self.packets, self.is_lost, strict=True):
            if packet is not None and not lost:
                self._nscc.inflight -= packet[2] + DATA_OVERHEAD_BYTES
        self.una = self.next
        self._acked = 0
        self.resend.clear()
        for fifo in self.fifos:
            fifo.clear()
        self.open(0)

    def _timeout_s(self, slot: int) -> float:
        """First linear, then exponential (MRC 1.0: at most 7 timeouts of constant length)."""
        return self._rto_s * float(1 << max(0, self.timeouts[slot] - self._reliability.linear_retries))

    def _oldest(self, plane: int) -> int:
        """Slot of the oldest transmission in flight on a plane, -1 if there is none."""
        fifo = self.fifos[plane]
        while fifo:
            entry = fifo[0]
            psn = entry >> ATTEMPT_BITS
            slot = psn & self.mask
            if (
                psn >= self.una
                and self.packets[slot] is not None
                and not self.is_lost[slot]
                and self.attempts[slot] == entry & _ATTEMPT_MASK
            ):
                return slot
            fifo.popleft()
        return -1

    def _lose(self, plane: int, slot: int, now: float, cause: str) -> None:
        """The oldest transmission of a plane is lost, and its EV with it."""
        psn = self.fifos[plane].popleft() >> ATTEMPT_BITS
        packet = self.packets[slot]
        assert packet is not None
        size = packet[2] + DATA_OVERHEAD_BYTES
        self.is_lost[slot] = 1
        heappush(self.resend, psn)
        self._nscc.inflight -= size
        self._nscc.on_inferred_loss(size)
        self._counters["lost_packets"] += 1
        index = self.ev_of[slot]
        self._evs.lost[index] += 1
        sent_at = self.sent_at[slot]
        if not self._evs.bad(index, now, cause, sent_at):
            self._counters["evictions_refused"] += 1
        self._suspect(plane, index, sent_at, now)
        if self.attempts[slot] >= self._reliability.max_transmissions:
            self.failure = "retry_exceeded"

    def _suspect(self, plane: int, index: int, sent_at: float, now: float) -> None:
        """A plane that lost packets on several EVs, and brought nothing since the first of them, is dead as a whole.

        Without this its backups would have to lose a packet each, one reorder window after the other.
        """
        evs = self._evs
        if self.newest[plane] >= self._silent_since[plane]:
            self._suspects[plane].clear()
            self._silent_since[plane] = sent_at
        self._suspects[plane].add(index)
        if len(self._suspects[plane]) >= self._silent_plane_evs and len(evs.order) > 1:
            for other, where in enumerate(evs.plane_of):
                if where == plane:
                    evs.bad(other, now, "silent_plane", now)
