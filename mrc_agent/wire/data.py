"""Combined codecs of the hot path: a WRITE's headers in one call, and a SACK's."""

from __future__ import annotations

import struct

from mrc_agent.wire.headers import TIMESTAMP_TYPE
from mrc_agent.wire.icrc import ICRC_BYTES

DATA = struct.Struct(">BBHIIHHHHQII")
"""opcode, flags, pkey, destination QP, A/rtx/ts bits and PSN, RQMSN, MSN, timestamp, tsr and ftype, address, rkey,
length of the message: 36 bytes."""

DATA_WITHOUT_TIMESTAMP = struct.Struct(">BBHIIHHQII")
"""The same without the TSETH: 32 bytes."""

TIMESTAMP_TAIL = 1 << 15 | TIMESTAMP_TYPE
"""Second half of a TSETH whose unit is the implementation's own."""

SACK_BITS = 64
"""Width of the bitmap of a SACK."""
SACK_BODY = struct.Struct(">BBhIHHIBBhQHHI")
"""SETH and CC_STATE: 36 bytes."""
SACK = struct.Struct(">BBHIIHH" + SACK_BODY.format[1:])
"""BTH, TSETH, SETH and CC_STATE: 52 bytes."""
IMMEDIATE_BYTES = 4
UDP_IPV6_BYTES = 48
DATA_OVERHEAD_BYTES = DATA.size + ICRC_BYTES + UDP_IPV6_BYTES
"""Bytes that a data packet carries besides its payload, IPv6 header included: 88."""
