"""How datagrams cross the border of the core, without an object per packet.

In: a ``Datagram`` tuple. Out: a ``TxBatch`` per plane, whose header slots lie in one buffer so that a socket edge can
point its scatter lists at them once and for all. One slot:

| bytes | content |
|---|---|
| 0-7 | UDP header, filled in by the edge |
| 8-67 | MRC headers, written by the core |
| 69-71 | zeros: padding of the payload, as many as needed |
| 72-75 | ICRC |
"""

from __future__ import annotations

from typing import Any

from mrc_agent.wire.icrc import ICRC, ICRC_BYTES, icrc

SLOT_BYTES = 80
HEADER_AT = 8
ICRC_AT = 72

Datagram = tuple[memoryview, int, int, float, bytes, bool]
"""Bytes from the BTH to the ICRC; EV; plane (from 0); arrival in seconds; packed source address; ECN CE seen."""


class SendMessage:
    """A posted write, from ``post_write`` to its completion.

    Attributes:
        view: the payload in the application's memory; must not change before the completion.
        edge_address: machine address of the payload; 0 until a socket edge needs it.
        last_psn: PSN of its last packet; -1 until that was sent.
    """

    __slots__ = ("edge_address", "last_psn", "length", "msn", "remote_address", "rkey", "view", "wr_id")

    def __init__(self, view: memoryview, remote_address: int, rkey: int, wr_id: int, msn: int) -> None:
        self.view = view
        self.length = view.nbytes
        self.remote_address = remote_address
        self.rkey = rkey
        self.wr_id = wr_id
        self.msn = msn
        self.last_psn = -1
        self.edge_address = 0


Entry = tuple[SendMessage | None, int, int, int, int, int, bytes]
"""Message, offset and length of the payload; bytes of header; EV; DSCP; packed destination address."""


class TxBatch:
    """Outgoing datagrams of one plane; entry n has its headers in slot n."""

    __slots__ = ("capacity", "entries", "headers", "view")

    def __init__(self, capacity: int, headers: Any = None) -> None:
        self.capacity = capacity
        self.headers: Any = bytearray(capacity * SLOT_BYTES) if headers is None else headers
        self.view = memoryview(self.headers)
        self.entries: list[Entry] = []

    def add_control(self, header: bytes, ev: int, dscp: int, address: bytes, with_icrc: bool) -> None:
        """Appends a datagram without payload. The batch must not be full."""
        slot = len(self.entries) * SLOT_BYTES
        at = slot + HEADER_AT
        self.headers[at : at + len(header)] = header
        ICRC.pack_into(self.headers, slot + ICRC_AT, icrc(header) if with_icrc else 0)
        self.entries.append((None, 0, 0, len(header), ev, dscp, address))

    def datagram(self, index: int) -> bytes:
        """The bytes of one entry from the BTH to the ICRC, copied: for networks in memory."""
        message, offset, length, header_bytes, _, _, _ = self.entries[index]
        slot = index * SLOT_BYTES
        payload = b"" if message is None else message.view[offset : offset + length]
        tail = self.view[slot + ICRC_AT - (-length & 3) : slot + ICRC_AT + ICRC_BYTES]
        return b"".join((self.view[slot + HEADER_AT : slot + HEADER_AT + header_bytes], payload, tail))
