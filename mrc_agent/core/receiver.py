"""The receiving half of a queue pair: place, remember, acknowledge (MRC 1.0 sections 6.3.1, 7.4 and 7.5.2).

Each packet says where its payload goes, so it is placed on arrival in any order. What must be remembered is one bitmap
of the window and, for each message under way, how many bytes it still lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrc_agent.core.events import MessageArrived
from mrc_agent.wire.data import SACK, SACK_BITS, TIMESTAMP_TAIL
from mrc_agent.wire.headers import AETH, BTH, NETH, TIMESTAMP_BIT
from mrc_agent.wire.opcodes import AETH_ACKNOWLEDGE, FIRST_WRITE, Mark, NackReason, Opcode
from mrc_agent.wire.sequence import MSN_MASK, PSN_HALF, PSN_MASK, unwrap

if TYPE_CHECKING:
    from mrc_agent.core.queue_pair import Context

_BITMAP_MASK = (1 << SACK_BITS) - 1
_SACK_OPCODE = int(Opcode.SACK)
_SKIP_ONCE = Mark.SKIP_ONCE << 5
_PROBE = 2
_SMALLEST_COUNT = 1024  # bytes that a packet counts at least towards the next SACK (MRC 1.0 section 7.5.2)
_MIDDLE_WRITE = FIRST_WRITE + 1


class Receiver:
    """State of the receiving half.

    Attributes:
        cack: all PSNs up to and including this one have arrived (24 bits).
        delivered: payload bytes placed by plane (from 0), each byte once.
        received_packets: data packets placed.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._counters = context.counters
        self._regions = context.memory.by_rkey
        self._mpr = context.profile.reliability.mpr
        self._reach = self._mpr * 128
        self._threshold = context.profile.reliability.sack_threshold_bytes
        self._unit_s = context.profile.wire.timestamp_unit_s
        self._pkey = context.profile.wire.pkey
        self._peer_qpn = 0
        self.cack = 0
        self._arrived = 0  # bitmap: bit n stands for cack + 1 + n
        self._lacking: dict[int, list[int]] = {}  # by MSN on the wire: bytes still lacking, lowest address so far
        self._completed = 0  # messages complete without a gap
        self._completed_ahead: set[int] = set()
        self._unsacked = 0
        self._received_bytes = 0
        self.delivered = [0] * len(context.destination.addresses)
        self.received_packets = 0

    def connect(self, peer_qpn: int, first_psn: int) -> None:
        """`first_psn`: PSN of the first packet that the peer will send."""
        self._peer_qpn = peer_qpn
        self.cack = (first_psn - 1) & PSN_MASK

    def on_data(
        self,
        opcode: int,
        psn: int,
        ack_request: bool,
        retransmission: bool,
        msn: int,
        timestamp: int,
        address: int,
        rkey: int,
        message_length: int,
        payload: memoryview,
        ev: int,
        plane: int,
        arrival: float,
        marked: bool,
        now: float,
    ) -> None:
        """Takes a data packet, or drops and counts it without a trace."""
        distance = (psn - self.cack) & PSN_MASK
        length = len(payload)
        if distance == 0 or distance >= PSN_HALF or (distance < self._reach and self._arrived >> (distance - 1) & 1):
            self._counters["duplicate_packets"] += 1
            if retransmission or ack_request:
                self._send_sack(psn, ev, plane, timestamp, marked, arrival, now)
                self._send_ack(plane)
            return
        if distance >= self._reach:
            self._counters["dropped_psn_out_of_window"] += 1
            self._send_nack(NackReason.PSN_OUT_OF_WINDOW, psn, ev, plane, timestamp)
            return
        message = self._lacking.get(msn)
        lacking = message_length if message is None else message[0]
        ends = opcode > _MIDDLE_WRITE
        if length > lacking or (length == 0 and not ends):
            self._counters["dropped_length_mismatch"] += 1
            return
        region = self._regions.get(rkey)
        if region is None:
            if length:
                self._counters["dropped_bad_rkey"] += 1
                self._send_nack(NackReason.UNEXPECTED_EVENT, psn, ev, plane, timestamp)
                return
        else:
            offset = address - region.address
            if offset < 0 or offset + length > region.length:
                self._counters["dropped_out_of_region"] += 1
                self._send_nack(NackReason.UNEXPECTED_EVENT, psn, ev, plane, timestamp)
                return
            region.view[offset : offset + length] = payload
        arrived = self._arrived | 1 << (distance - 1)
        if arrived & 1:
            run = (~arrived & (arrived + 1)).bit_length() - 1
            self.cack = (self.cack + run) & PSN_MASK
            arrived >>= run
        self._arrived = arrived
        self.delivered[plane] += length
        self.received_packets += 1
        self._received_bytes += length
        self._counters["received_packets"] += 1
        if marked:
            self._counters["received_marked_packets"] += 1
        lacking -= length
        if lacking:
            if message is None:
                self._lacking[msn] = [lacking, address]
            else:
                message[0] = lacking
                if address < message[1]:
                    message[1] = address
        else:
            if message is not None:
                del self._lacking[msn]
                address = min(address, message[1])
            self._complete(msn, address, message_length, arrival)
        self._unsacked += max(length, _SMALLEST_COUNT)
        if ack_request or retransmission or marked or self._unsacked >= self._threshold:
            self._send_sack(psn, ev, plane, timestamp, marked, arrival, now)
        if not lacking:
            self._send_ack(plane)

    def on_probe(self, probe_id: int, timestamp: int, ev: int, plane: int, arrival: float, now: float) -> None:
        """A reliability probe asks for what we know: as many SACKs as the bitmap needs, and the transport
        acknowledgement in case it was lost."""
        span = max(self._arrived.bit_length(), 1)
        for distance in range(SACK_BITS, span + SACK_BITS, SACK_BITS):
            self._send_sack(self.cack + distance & PSN_MASK, ev, plane, timestamp, False, arrival, now, probe_id)
        self._send_ack(plane)

    def _complete(self, msn: int, address: int, length: int, arrival: float) -> None:
        number = unwrap(msn, self._completed, MSN_MASK)
        context = self._context
        context.events.append(MessageArrived(context.qpn, context.destination.name, number, address, length, arrival))
        self._completed_ahead.add(number)
        while self._completed in self._completed_ahead:
            self._completed_ahead.remove(self._completed)
            self._completed += 1

    def _send_sack(
        self,
        psn: int,
        ev: int,
        plane: int,
        timestamp: int,
        marked: bool,
        arrival: float,
        now: float,
        probe_id: int = -1,
    ) -> None:
        """SACK whose bitmap covers the packet that triggered it (MRC 1.0 section 7.5.2).

        The reflected timestamp is advanced by the time the packet waited here, so that the peer measures the network
        and not our scheduling (our reading of the SVC_TIME capability). A TSETH, announced in the BTH, tells our time
        of sending, so that the peer can tell its way there from our way back; that is our own addition.
        """
        self._unsacked = 0
        distance = (psn - self.cack) & PSN_MASK
        if distance >= PSN_HALF:
            distance -= PSN_MASK + 1
        if distance <= SACK_BITS:
            offset = 1
            bitmap = self._arrived & _BITMAP_MASK
        else:
            offset = distance - SACK_BITS + 1
            bitmap = self._arrived >> (offset - 1) & _BITMAP_MASK
        unit_s = self._unit_s
        header = SACK.pack(
            _SACK_OPCODE,
            0,
            self._pkey,
            self._peer_qpn,
            TIMESTAMP_BIT << 24 | self.cack,
            int(now / unit_s) & 0xFFFF,
            TIMESTAMP_TAIL,
            0,
            (_SKIP_ONCE if marked else 0) | (_PROBE if probe_id >= 0 else 0),
            probe_id if probe_id >= 0 else max(distance, -0x8000),
            ev,
            0,
            0,
            self.cack,
            0,
            self._mpr,
            offset,
            bitmap,
            timestamp + (int((now - arrival) / unit_s) if now > arrival else 0) & 0xFFFF,
            self._arrived.bit_count() & 0x7FFF,
            (self._received_bytes + 255 >> 8) & PSN_MASK,
        )
        self._counters["sacks_sent"] += 1
        self._context.answer(header, plane)

    def _send_ack(self, plane: int) -> None:
        """Transport acknowledgement: all messages up to here are in memory."""
        header = bytearray(16)
        at = BTH(Opcode.ACKNOWLEDGE, self._peer_qpn, self.cack, pkey=self._pkey).pack_into(header)
        AETH(AETH_ACKNOWLEDGE, self._completed).pack_into(header, at)
        self._context.answer(bytes(header), plane)

    def _send_nack(self, reason: NackReason, psn: int, ev: int, plane: int, timestamp: int) -> None:
        header = bytearray(32)
        at = BTH(Opcode.NACK, self._peer_qpn, psn, pkey=self._pkey).pack_into(header)
        NETH(reason, ev, psn, timestamp).pack_into(header, at)
        self._counters["nacks_sent"] += 1
        self._context.answer(bytes(header), plane)
