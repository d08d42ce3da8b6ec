"""The headers of MRC 1.0, one tuple each, with ``pack_into`` and ``unpack`` (MRC 1.0 tables 7-12 to 7-22).

Reserved bits are sent as zero and ignored. Where readers of the specification disagree: the operation of an EETH is in
bits 3:2 of byte 1. ``unpack`` raises ``struct.error`` when the buffer is too short; callers check lengths first.
Data packets, the hot path, have combined codecs in ``data.py``.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from mrc_agent.wire.sequence import PSN_MASK

Buffer = bytes | bytearray | memoryview

ACK_REQUEST_BIT = 0x80
RETRANSMISSION_BIT = 0x20
TIMESTAMP_BIT = 0x10
TIMESTAMP_TYPE = 1
"""ftype of a TSETH."""


class BTH(NamedTuple):
    """Base transport header, 12 bytes."""

    opcode: int
    destination_qp: int
    psn: int
    ack_request: bool = False
    retransmission: bool = False
    timestamp: bool = False  # a TSETH follows
    solicited: bool = False
    migration: bool = False
    pad: int = 0  # zero bytes between payload and ICRC, 0 to 3
    version: int = 0
    pkey: int = 0xFFFF

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        flags = self.solicited << 7 | self.migration << 6 | self.pad << 4 | self.version
        bits = self.ack_request << 7 | self.retransmission << 5 | self.timestamp << 4
        BTH_STRUCT.pack_into(
            buffer, offset, self.opcode, flags, self.pkey, self.destination_qp, bits << 24 | self.psn & PSN_MASK
        )
        return BTH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> BTH:
        opcode, flags, pkey, qp, tail = BTH_STRUCT.unpack_from(buffer, offset)
        bits = tail >> 24
        return cls(
            opcode,
            qp & PSN_MASK,
            tail & PSN_MASK,
            bool(bits & ACK_REQUEST_BIT),
            bool(bits & RETRANSMISSION_BIT),
            bool(bits & TIMESTAMP_BIT),
            bool(flags & 0x80),
            bool(flags & 0x40),
            flags >> 4 & 3,
            flags & 15,
            pkey,
        )


BTH_STRUCT = struct.Struct(">BBHII")


class METH(NamedTuple):
    """Message header, 4 bytes. MSN counts messages of the QP, RQMSN those with an immediate; 16 bits each."""

    rqmsn: int
    msn: int

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        METH_STRUCT.pack_into(buffer, offset, *self)
        return METH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> METH:
        return cls(*METH_STRUCT.unpack_from(buffer, offset))


METH_STRUCT = struct.Struct(">HH")


class TSETH(NamedTuple):
    """Timestamp header, 4 bytes. `coarse` (tsr) set: the unit is the implementation's own, else 128 ns."""

    timestamp: int
    coarse: bool = True
    ftype: int = TIMESTAMP_TYPE

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        TSETH_STRUCT.pack_into(buffer, offset, self.timestamp, self.coarse << 15 | self.ftype)
        return TSETH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> TSETH:
        timestamp, tail = TSETH_STRUCT.unpack_from(buffer, offset)
        return cls(timestamp, bool(tail >> 15), tail & 15)


TSETH_STRUCT = struct.Struct(">HH")


class RETH(NamedTuple):
    """Where this packet's payload goes, 16 bytes: an address that is already advanced; the length of the message."""

    address: int
    rkey: int
    length: int

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        RETH_STRUCT.pack_into(buffer, offset, *self)
        return RETH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> RETH:
        return cls(*RETH_STRUCT.unpack_from(buffer, offset))


RETH_STRUCT = struct.Struct(">QII")


class ImmDt(NamedTuple):
    """Immediate data, 4 bytes."""

    immediate: int

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        WORD_STRUCT.pack_into(buffer, offset, self.immediate)
        return WORD_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> ImmDt:
        return cls(*WORD_STRUCT.unpack_from(buffer, offset))


class AETH(NamedTuple):
    """Transport acknowledgement, 4 bytes. MSN: number of messages completed in order, 24 bits."""

    syndrome: int
    msn: int

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        WORD_STRUCT.pack_into(buffer, offset, self.syndrome << 24 | self.msn & PSN_MASK)
        return WORD_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> AETH:
        (word,) = WORD_STRUCT.unpack_from(buffer, offset)
        return cls(word >> 24, word & PSN_MASK)


WORD_STRUCT = struct.Struct(">I")


class SETH(NamedTuple):
    """Selective acknowledgement, 28 bytes, followed by a CcState.

    Attributes:
        ack_psn_offset: PSN of the packet that triggered the SACK minus cack, signed; the probe id when `probe` is set.
        entropy: EV of that packet.
        cack: all PSNs up to and including this one have arrived.
        mpr: largest accepted distance of a PSN from cack, in units of 128.
        sack_offset: bit 0 of the bitmap stands for cack + sack_offset.
    """

    ack_psn_offset: int
    entropy: int
    cack: int
    mpr: int
    sack_offset: int
    bitmap: int
    mark: int = 0
    probe: bool = False
    type: int = 0
    next_header: int = 0
    source_pdc: int = 0
    destination_pdc: int = 0
    cc_type: int = 0
    cc_flags: int = 0

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        SETH_STRUCT.pack_into(
            buffer,
            offset,
            self.type << 4 | self.next_header >> 1,
            (self.next_header & 1) << 7 | self.mark << 5 | self.probe << 1,
            self.ack_psn_offset,
            self.entropy,
            self.source_pdc,
            self.destination_pdc,
            self.cack & PSN_MASK,
            self.cc_type << 4 | self.cc_flags,
            self.mpr,
            self.sack_offset,
            self.bitmap,
        )
        return SETH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> SETH:
        first, second, ack, entropy, spdc, dpdc, cack, cc, mpr, sack, bitmap = SETH_STRUCT.unpack_from(buffer, offset)
        return cls(
            ack,
            entropy,
            cack & PSN_MASK,
            mpr,
            sack,
            bitmap,
            second >> 5 & 3,
            bool(second & 2),
            first >> 4,
            (first & 15) << 1 | second >> 7,
            spdc,
            dpdc,
            cc >> 4,
            cc & 15,
        )


SETH_STRUCT = struct.Struct(">BBhIHHIBBhQ")


class CcState(NamedTuple):
    """Congestion state of the receiver, 8 bytes. `received_units` counts 256 bytes, modulo 2^24."""

    timestamp: int
    out_of_order: int
    restore_cwnd: bool
    cwnd_penalty: int
    received_units: int

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        tail = self.restore_cwnd << 31 | self.cwnd_penalty << 24 | self.received_units & PSN_MASK
        CC_STATE_STRUCT.pack_into(buffer, offset, self.timestamp, self.out_of_order & 0x7FFF, tail)
        return CC_STATE_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> CcState:
        timestamp, out_of_order, tail = CC_STATE_STRUCT.unpack_from(buffer, offset)
        return cls(timestamp, out_of_order & 0x7FFF, bool(tail >> 31), tail >> 24 & 127, tail & PSN_MASK)


CC_STATE_STRUCT = struct.Struct(">HHI")


class NETH(NamedTuple):
    """Negative acknowledgement of one packet, 20 bytes."""

    reason: int
    entropy: int
    psn: int
    timestamp: int
    vendor: int = 0
    source_pdc: int = 0
    destination_pdc: int = 0
    cc_type: int = 2
    cc_flags: int = 0
    type_and_next: int = 0

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        NETH_STRUCT.pack_into(
            buffer,
            offset,
            self.type_and_next,
            self.reason,
            self.vendor,
            self.entropy,
            self.source_pdc,
            self.destination_pdc,
            self.psn & PSN_MASK,
            self.cc_type << 4 | self.cc_flags,
            self.timestamp,
        )
        return NETH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> NETH:
        kind, reason, vendor, entropy, spdc, dpdc, psn, cc, timestamp = NETH_STRUCT.unpack_from(buffer, offset)
        return cls(reason, entropy, psn & PSN_MASK, timestamp, vendor, spdc, dpdc, cc >> 4, cc & 15, kind)


NETH_STRUCT = struct.Struct(">HBBIHHIBxH")


class PETH(NamedTuple):
    """Reliability probe, 16 bytes: asks for a fresh SACK, consumes no PSN."""

    probe_id: int
    timestamp: int
    coarse: bool = True
    vendor: int = 0
    source_pdc: int = 0
    destination_pdc: int = 0

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        tail = self.coarse << 15 | TIMESTAMP_TYPE
        PETH_STRUCT.pack_into(
            buffer, offset, self.vendor, self.probe_id, self.source_pdc, self.destination_pdc, self.timestamp, tail
        )
        return PETH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> PETH:
        vendor, probe_id, spdc, dpdc, timestamp, tail = PETH_STRUCT.unpack_from(buffer, offset)
        return cls(probe_id, timestamp, bool(tail >> 15), vendor, spdc, dpdc)


PETH_STRUCT = struct.Struct(">3xBH2xHHHH")


class ERTH(NamedTuple):
    """Endpoint request, 16 bytes. Bit n of the mask set: the sender's port n can be reached."""

    operation: int
    port_status_mask: int = 0
    timestamp: int = 0
    vendor: int = 0

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        ERTH_STRUCT.pack_into(buffer, offset, self.operation, self.vendor, self.port_status_mask, self.timestamp)
        return ERTH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> ERTH:
        operation, vendor, mask, timestamp = ERTH_STRUCT.unpack_from(buffer, offset)
        return cls(operation & 3, mask, timestamp, vendor)


ERTH_STRUCT = struct.Struct(">xBxBI4xH2x")


class EETH(NamedTuple):
    """Endpoint response, 36 bytes; the timestamp of the request is reflected."""

    operation: int
    timestamp: int = 0

    def pack_into(self, buffer: bytearray | memoryview, offset: int = 0) -> int:
        EETH_STRUCT.pack_into(buffer, offset, self.operation << 2, self.timestamp)
        return EETH_STRUCT.size

    @classmethod
    def unpack(cls, buffer: Buffer, offset: int = 0) -> EETH:
        operation, timestamp = EETH_STRUCT.unpack_from(buffer, offset)
        return cls(operation >> 2 & 3, timestamp)


EETH_STRUCT = struct.Struct(">xB26xH6x")
