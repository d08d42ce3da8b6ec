"""The integrity check of a datagram.

CRC32 (the polynomial of the IB ICRC) over BTH to the end of the padded payload, as four big-endian bytes at the end.
Unlike the ICRC of RoCEv2 it covers no pseudo header: the addresses change on the way in an SRv6 fabric. With the check
switched off the four bytes are zero and nobody looks at them.
"""

from __future__ import annotations

import struct
from zlib import crc32

ICRC_BYTES = 4
ICRC = struct.Struct(">I")
PADDING = (b"", b"\0", b"\0\0", b"\0\0\0")


def icrc(header: bytes | bytearray | memoryview, payload: bytes | memoryview = b"", padding: int = 0) -> int:
    """The check value of a datagram given in parts; `padding` is the number of zero bytes after the payload."""
    value = crc32(payload, crc32(header))
    return crc32(PADDING[padding], value) if padding else value


def icrc_holds(datagram: memoryview) -> bool:
    """Whether the last four bytes of the datagram are the check value of what precedes them."""
    (stated,) = ICRC.unpack_from(datagram, len(datagram) - ICRC_BYTES)
    return bool(crc32(datagram[:-ICRC_BYTES]) == stated)
