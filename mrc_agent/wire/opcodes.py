"""Opcodes, traffic classes, NACK reasons and SACK marks (MRC 1.0 sections 6.2.2, 7.5.5 and 7.5.6)."""

from __future__ import annotations

from enum import IntEnum


class Opcode(IntEnum):
    """First byte of the BTH; the top three bits 0b110 set MRC apart from the RoCEv2 transports."""

    WRITE_FIRST = 0xC6
    WRITE_MIDDLE = 0xC7
    WRITE_LAST = 0xC8
    WRITE_LAST_IMMEDIATE = 0xC9
    WRITE_ONLY = 0xCA
    WRITE_ONLY_IMMEDIATE = 0xCB
    ACKNOWLEDGE = 0xD1
    ENDPOINT_REQUEST = 0xD8
    ENDPOINT_RESPONSE = 0xD9
    SACK = 0xDC
    NACK = 0xDD
    PROBE_REQUEST = 0xDE


FIRST_WRITE = int(Opcode.WRITE_FIRST)
LAST_WRITE = int(Opcode.WRITE_ONLY_IMMEDIATE)
IMMEDIATE_WRITES = frozenset({int(Opcode.WRITE_LAST_IMMEDIATE), int(Opcode.WRITE_ONLY_IMMEDIATE)})


class Mark(IntEnum):
    """The M field of a SACK: what the receiver says about the path of the packet that triggered it."""

    NONE = 0
    SKIP_ONCE = 1  # the packet carried ECN CE
    ALWAYS_SKIP = 2


class NackReason(IntEnum):
    """Why a packet was not taken."""

    TRIMMED = 0x01
    TRIMMED_LAST_HOP = 0x02
    NO_BITMAP = 0x06
    NO_PACKET_BUFFER = 0x07
    NO_RESOURCE = 0x0A
    PSN_OUT_OF_WINDOW = 0x0B
    UNEXPECTED_EVENT = 0x19


class EndpointOperation(IntEnum):
    """What an endpoint request asks for."""

    PORT_STATUS_UPDATE = 0
    EV_PROBE = 1


ENDPOINT_QP = 0x2
"""Well-known destination QP of endpoint requests and responses."""

AETH_ACKNOWLEDGE = 0x1F
"""AETH syndrome: an acknowledgement with the credit code that means "no credits" (the only one MRC uses)."""
