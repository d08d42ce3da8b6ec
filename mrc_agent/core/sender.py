"""The sending half of a queue pair: messages become packets, acknowledgements become completions.

MRC 1.0 sections 7.3 to 7.5. What is in flight or lost is in ``outstanding.py``.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop
from random import Random
from typing import TYPE_CHECKING

from mrc_agent.core.datagram import HEADER_AT, ICRC_AT, SLOT_BYTES, SendMessage, TxBatch
from mrc_agent.core.errors import MrcError
from mrc_agent.core.events import Status, WorkCompletion
from mrc_agent.core.outstanding import ATTEMPT_BITS, Outstanding, Packet
from mrc_agent.core.ports import ETHERNET_BYTES
from mrc_agent.wire.data import DATA, DATA_OVERHEAD_BYTES, TIMESTAMP_TAIL
from mrc_agent.wire.headers import BTH, BTH_STRUCT, PETH, PETH_STRUCT
from mrc_agent.wire.icrc import ICRC, icrc
from mrc_agent.wire.opcodes import Mark, Opcode
from mrc_agent.wire.sequence import MSN_MASK, PSN_MASK, unwrap

if TYPE_CHECKING:
    from mrc_agent.core.queue_pair import Context

_FIRST, _MIDDLE, _LAST, _ONLY = (
    int(opcode) for opcode in (Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY)
)
_TIMESTAMP = 0x10
_RETRANSMISSION = 0x20
_ACK_REQUEST = 0x80
_EARLY = 0xE000  # a round trip this long is a negative one: the port was faster than we knew
_GRACES = 3  # timeouts in a row that may be put off because this process was not running
_LONGEST_BACKOFF = 6  # doublings of the wait between reliability probes


class Sender:
    """State of the sending half; `outstanding` is its window."""

    def __init__(self, context: Context, first_psn: int, rng: Random) -> None:
        self._context = context
        self._wire = context.profile.wire
        self._evs = context.evs
        self._nscc = context.destination.nscc
        self._times = context.destination.times
        self._counters = context.counters
        self.outstanding = Outstanding(context, first_psn)
        self._peer_qpn = 0
        self._queue: deque[SendMessage] = deque()  # posted, not begun
        self._current: SendMessage | None = None  # being cut into packets
        self._offset = 0
        self._incomplete: deque[SendMessage] = deque()  # posted, not completed
        self._next_msn = 0
        self._completed = 0
        self._since_ack_request = 0
        reliability = context.profile.reliability
        self._quiet_s = reliability.probe_rtts * context.destination.base_rtt_s + reliability.jitter_s
        self._probe_budget = reliability.linear_retries + reliability.exponential_retries + _LONGEST_BACKOFF
        self._quiet_rtts = reliability.probe_smoothed_rtts
        self._jitter_s = reliability.jitter_s
        self._grace_until = 0.0  # no timeout before, because this process was not running
        self._graces = 0
        self._skip_s = context.profile.evs.skip_rtts * context.destination.base_rtt_s or float("inf")
        self._heard_at = 0.0
        self._clock_gap = 0  # of the first SACK: peer's clock minus ours plus one way, in units of the timestamp
        self._unanswered = 0
        self._probe_id = rng.getrandbits(15)
        self._probe_sent_at = 0.0
        self.sent_packets = 0

    def connect(self, peer_qpn: int, mpr: int) -> None:
        """`mpr`: what the peer accepts, in units of 128 PSNs: those between cack and cack + MPR x 128."""
        self._peer_qpn = peer_qpn
        self.outstanding.open(mpr * 128 - 1)

    def post(self, view: memoryview, remote_address: int, rkey: int, wr_id: int) -> None:
        """Queues a write. Raises MrcError when it is 2 GB or longer."""
        if view.nbytes >= 1 << 31:
            raise MrcError(f"a message of {view.nbytes} bytes is not below 2 GB")
        message = SendMessage(view, remote_address, rkey, wr_id, self._next_msn)
        self._next_msn += 1
        self._queue.append(message)
        self._incomplete.append(message)

    def pump(self, now: float, batches: list[TxBatch], quantum: int) -> int:
        """Sends up to `quantum` packets as far as windows, EVs and the planes' batches allow; returns how many.

        A plane whose batch or port is full holds the others back: equal shares on all planes (Araujo et al., section
        2.1). A packet's time of sending is when it leaves the port, as far as we know, not when it enters the queue.
        """
        nscc, evs, wire, out = self._nscc, self._evs, self._wire, self.outstanding
        mask, packets, resend = out.mask, out.packets, out.resend
        payload_bytes, with_icrc = wire.payload_bytes, wire.icrc
        addresses = self._context.destination.addresses
        unit_s = wire.timestamp_unit_s
        ask_after = nscc.cwnd / (4 * max(self._context.destination.queue_pairs, 1))
        ports = self._context.ports
        free_at, seconds_per_byte = ports.free_at, ports.seconds_per_byte
        sent_at, ev_of, attempts, fifos = out.sent_at, out.ev_of, out.attempts, out.fifos
        horizon = now + ports.allowance_s
        sent = 0
        while sent < quantum and nscc.inflight < nscc.cwnd:
            packet: Packet | None = None
            avoid = -1
            if resend:
                psn = resend[0]
                slot = psn & mask
                packet = packets[slot] if psn >= out.una else None
                if packet is None or not out.is_lost[slot]:
                    heappop(resend)  # acknowledged meanwhile
                    continue
                avoid = ev_of[slot]
            else:
                psn = out.next
                slot = psn & mask
                if psn - out.una >= out.window or (self._current is None and not self._queue):
                    break
            order = evs.order
            if not order:
                break  # every EV is denied
            position = evs.position if evs.position < len(order) else 0
            plane = order[position]
            if avoid < 0:
                index = evs.pick(plane)
            else:
                index = evs.pick_proven(position, avoid, sent_at[slot], out.newest)
                plane = evs.plane_of[index]
            batch = batches[plane]
            at = len(batch.entries)
            if at >= batch.capacity:
                break
            leaves_at = free_at[plane]
            if leaves_at > horizon:
                ports.busy(plane)
                break
            if leaves_at < now:
                leaves_at = now
            if plane == order[position]:
                evs.position = position + 1
            if packet is None:
                packet = packets[slot] = self._cut(psn, payload_bytes)
                bits = _TIMESTAMP
                dscp = wire.dscp_data
                attempt = 1
                out.timeouts[slot] = 0
                out.next = psn + 1
            else:
                heappop(resend)
                bits = _TIMESTAMP | _RETRANSMISSION
                dscp = wire.dscp_retransmission
                attempt = attempts[slot] + 1
                out.is_lost[slot] = 0
                evs.retransmitted[index] += 1
                self._counters["retransmitted_packets"] += 1
            message, offset, length, opcode = packet
            size = length + DATA_OVERHEAD_BYTES
            self._since_ack_request += size
            if opcode >= _LAST or self._since_ack_request >= ask_after:
                bits |= _ACK_REQUEST
                self._since_ack_request = 0
            start = at * SLOT_BYTES + HEADER_AT
            DATA.pack_into(
                batch.headers,
                start,
                opcode,
                (-length & 3) << 4,
                wire.pkey,
                self._peer_qpn,
                bits << 24 | psn & PSN_MASK,
                0,
                message.msn & MSN_MASK,
                int(leaves_at / unit_s) & 0xFFFF,
                TIMESTAMP_TAIL,
                message.remote_address + offset,
                message.rkey,
                message.length,
            )
            if with_icrc:
                value = icrc(batch.view[start : start + DATA.size], message.view[offset : offset + length], -length & 3)
                ICRC.pack_into(batch.headers, start - HEADER_AT + ICRC_AT, value)
            batch.entries.append((message, offset, length, DATA.size, evs.values[index], dscp, addresses[plane]))
            sent_at[slot] = leaves_at
            ev_of[slot] = index
            attempts[slot] = attempt
            fifos[plane].append(psn << ATTEMPT_BITS | attempt)
            evs.sent[index] += 1
            nscc.inflight += size
            free_at[plane] = leaves_at + (size + ETHERNET_BYTES) * seconds_per_byte[plane]
            sent += 1
        if sent:
            self._heard_at = now
            out.sent(now)
            self.sent_packets += sent
            self._counters["sent_packets"] += sent
        return sent

    def _cut(self, psn: int, payload_bytes: int) -> Packet:
        """The next packet of the message at the head of the queue."""
        message = self._current
        if message is None:
            message = self._current = self._queue.popleft()
            self._offset = 0
        offset = self._offset
        length = min(payload_bytes, message.length - offset)
        self._offset = offset + length
        if self._offset < message.length:
            return message, offset, length, _MIDDLE if offset else _FIRST
        self._current = None
        message.last_psn = psn
        return message, offset, length, _LAST if offset else _ONLY

    def on_sack(
        self,
        cack: int,
        sack_offset: int,
        bitmap: int,
        ack_psn_offset: int,
        entropy: int,
        mark: int,
        probe: bool,
        timestamp: int,
        peer_time: int,
        arrival: float,
    ) -> int:
        """Takes a SACK, fields as in SETH and CC_STATE. Returns the index of its EV, -1 when it makes no sense.

        `peer_time`: time of its sending by the peer's clock, 16 bits, or -1 when the SACK has no TSETH.
        """
        out, evs = self.outstanding, self._evs
        una = out.una
        cack = unwrap(cack, una - 1)
        covered = (1 << (cack + 1 - una)) - 1 if cack >= una else 0
        start = cack + sack_offset - una
        covered |= bitmap << start if start >= 0 else bitmap >> -start
        index = evs.index_of.get(entropy, -1)
        if index < 0 or not out.covers(covered):
            return -1
        plane = evs.plane_of[index]
        if not probe:
            packet = out.packets[(cack + ack_psn_offset) & out.mask]
            unit_s = self._wire.timestamp_unit_s
            ticks = (int(arrival / unit_s) - timestamp) & 0xFFFF
            rtt_s = one_way_s = (ticks if ticks < _EARLY else 0) * unit_s
            if peer_time >= 0:
                self._clock_gap = self._clock_gap or (peer_time - timestamp) & 0xFFFF
                gap = (peer_time - timestamp - self._clock_gap) & 0xFFFF
                one_way_s = (gap - 0x10000 if gap & 0x8000 else gap) * unit_s
            full = packet is not None and packet[2] == self._wire.payload_bytes
            detour_s = self._times.sample(plane, rtt_s, one_way_s, full)
            if mark == Mark.SKIP_ONCE or detour_s > self._skip_s:
                evs.skip(index)
            elif mark == Mark.ALWAYS_SKIP:
                evs.bad(index, arrival, "always_skip", arrival)
        size = out.acknowledge(covered, arrival)
        out.heard_sack(cack, cack + sack_offset)
        if probe and ack_psn_offset == self._probe_id:
            out.heard_probe(plane, self._probe_sent_at, cack + sack_offset, arrival)
        if size and not probe:
            # Equal shares make the worst plane the limit of all, so its queue is the one to control.
            queueing = self._times.queueing
            delay_s = max([queueing[other] for other in evs.order], default=0.0)
            self._nscc.on_ack(arrival, size, delay_s, mark == Mark.SKIP_ONCE)
        self._heard(arrival)
        return index

    def on_ack(self, msn: int, now: float) -> bool:
        """Takes a transport acknowledgement: `msn` messages are complete. False when it makes no sense."""
        completed = unwrap(msn, self._completed)
        if completed > self._next_msn:
            return False
        last_psn = -1
        while self._completed < completed:
            message = self._incomplete[0]
            if message.last_psn < 0:
                return False
            self._incomplete.popleft()
            self._completed += 1
            last_psn = message.last_psn
            self._report(message, "success", now)
        if last_psn >= self.outstanding.una:  # placed means arrived
            self.outstanding.acknowledge((1 << (last_psn + 1 - self.outstanding.una)) - 1, now)
        self._heard(now)
        return True

    def infer_losses(self, now: float) -> None:
        """To be called after all SACKs that have arrived were taken."""
        if self.outstanding.infer_losses(now) and now - self._probe_sent_at >= self._quiet_s:
            self._send_probes(now)

    def on_timer(self, now: float) -> Status | None:
        """Runs what is due; returns a status when the retry budget is used up and the queue pair must fail."""
        out = self.outstanding
        due = max(out.next_timeout(now), self._grace_until)
        if due <= now:
            if now - due > self._jitter_s and self._graces < _GRACES:
                # This process did not run for a while; answers may lie unread, or packets have only just left.
                self._graces += 1
                self._grace_until = now + self._quiet_s
            else:
                self._graces = 0
                out.expire(now)
        if self._incomplete and now >= self._probe_due():
            if self._unanswered >= self._probe_budget and out.una == out.next:
                return "retry_exceeded"
            self._send_probes(now)
        return out.failure

    def next_timer(self, now: float) -> float:
        """When `on_timer` must run."""
        if not self._incomplete:
            return float("inf")
        return min(max(self.outstanding.next_timeout(now), self._grace_until), self._probe_due())

    def fail(self, status: Status, now: float) -> None:
        """Ends every operation: the oldest with `status`, the others flushed."""
        self.outstanding.abandon()
        self._queue.clear()
        self._current = None
        while self._incomplete:
            self._report(self._incomplete.popleft(), status, now)
            status = "flushed"

    def _probe_due(self) -> float:
        """When to ask for a SACK: nothing sent and nothing heard for a while, though something is missing."""
        if self.outstanding.una == self.outstanding.next and (self._queue or self._current):
            return float("inf")  # held by a window or a socket, not by silence
        quiet_s = max(self._quiet_s, self._quiet_rtts * self._times.smoothed + self._jitter_s)
        return self._heard_at + quiet_s * float(1 << min(self._unanswered, _LONGEST_BACKOFF))

    def _send_probes(self, now: float) -> None:
        """Asks for a SACK on every plane at once: whichever works will answer."""
        evs = self._evs
        self._unanswered += 1
        self._heard_at = self._probe_sent_at = now
        self._probe_id = (self._probe_id + 1) & 0x7FFF
        header = bytearray(BTH_STRUCT.size + PETH_STRUCT.size)
        at = BTH(Opcode.PROBE_REQUEST, self._peer_qpn, 0, pkey=self._wire.pkey).pack_into(header)
        PETH(self._probe_id, int(now / self._wire.timestamp_unit_s) & 0xFFFF).pack_into(header, at)
        for plane in evs.order:
            self._counters["reliability_probes"] += 1
            self._context.send_control(bytes(header), evs.pick(plane), self._wire.dscp_data)

    def _heard(self, now: float) -> None:
        self._heard_at = now
        self._unanswered = 0

    def _report(self, message: SendMessage, status: Status, now: float) -> None:
        context = self._context
        context.events.append(WorkCompletion(context.qpn, context.destination.name, message.wr_id, status, now))
