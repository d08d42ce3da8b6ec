"""Sending on one plane: a raw IPv6 socket, so that source port and flow label can differ in each packet.

The EV is striped over the UDP source port (low 16 bits) and the flow label (high 16 bits). Headers lie in the slots of
the core's ``TxBatch``, payloads in the application's memory; the kernel gathers both, nothing is copied here. The UDP
checksum is zero, because an SRv6 fabric changes the destination address that it would cover; the ICRC protects.
"""

from __future__ import annotations

import errno
import socket
import struct
from time import monotonic

from mrc_agent.core.datagram import HEADER_AT, ICRC_AT, SLOT_BYTES, TxBatch
from mrc_agent.edge import libc
from mrc_agent.wire.icrc import ICRC_BYTES

CAPACITY = 64
_RETRY_S = 0.001  # after ENOBUFS: the queue of the interface is full and tells nobody when it is not
_HOLD_S = 0.020  # then it is not a full queue but, for example, a veth whose other end is down
_IOVECS = 3
_UDP = struct.Struct(">HHHH")
_FLOW = struct.Struct(">I16s")
_LENGTHS = struct.Struct("=QQQQQ")
_TCLASS = struct.Struct("=I")
_TCLASS_AT = 16


class Transmitter:
    """Outgoing half of a plane.

    Attributes:
        batch: to be filled by the core, then flushed.
        retry_at: when to flush again after the interface's queue was full; infinite otherwise.
        waits_for_socket: whether the socket's buffer was full; it becomes writable later.
    """

    def __init__(self, interface: str, address: bytes, port: int, counters: dict[str, int]) -> None:
        """`address`: packed source address. Raises OSError."""
        self._port = port
        self._counters = counters
        sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_UDP)
        self.socket = sock
        try:
            libc.ignore_input(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
            for option, value in (
                (libc.IPV6_FLOWINFO_SEND, 1),
                (libc.IPV6_AUTOFLOWLABEL, 0),
                (libc.IPV6_MTU_DISCOVER, libc.IPV6_PMTUDISC_PROBE),
            ):
                sock.setsockopt(socket.IPPROTO_IPV6, option, value)
            libc.enlarge(sock, libc.SO_SNDBUFFORCE, socket.SO_SNDBUF, 8 << 20)
            sock.bind((socket.inet_ntop(socket.AF_INET6, address), 0))
        except OSError:
            sock.close()
            raise
        self._fd = sock.fileno()
        self._headers = bytearray(CAPACITY * SLOT_BYTES)
        self._names = bytearray(CAPACITY * libc.SOCKADDR_BYTES)
        self._iovecs = bytearray(CAPACITY * _IOVECS * libc.IOVEC_BYTES)
        self._controls = bytearray(CAPACITY * libc.TCLASS_CMSG.size)
        self._messages = bytearray(CAPACITY * libc.MMSGHDR_BYTES)
        self._header_address = libc.address_of(self._headers)
        self._message_address = libc.address_of(self._messages)
        self.batch = TxBatch(CAPACITY, self._headers)
        self.retry_at = float("inf")
        self.waits_for_socket = False
        self._prepared = self._sent = 0
        self._full_since = 0.0  # 0: the interface's queue took the last packet
        self._lay_out()

    def _lay_out(self) -> None:
        """Writes everything that stays the same for every packet."""
        names, iovecs, controls = map(libc.address_of, (self._names, self._iovecs, self._controls))
        size = libc.TCLASS_CMSG.size
        for slot in range(CAPACITY):
            libc.SOCKADDR.pack_into(self._names, slot * libc.SOCKADDR_BYTES, socket.AF_INET6, 0, bytes(4), bytes(16), 0)
            iovec = slot * _IOVECS * libc.IOVEC_BYTES
            struct.pack_into("=Q", self._iovecs, iovec, self._header_address + slot * SLOT_BYTES)
            libc.TCLASS_CMSG.pack_into(self._controls, slot * size, 20, socket.IPPROTO_IPV6, libc.IPV6_TCLASS, 0)
            libc.MMSGHDR.pack_into(
                self._messages,
                slot * libc.MMSGHDR_BYTES,
                names + slot * libc.SOCKADDR_BYTES,
                libc.SOCKADDR_BYTES,
                iovecs + iovec,
                _IOVECS,
                controls + slot * size,
                size,
                0,
                0,
            )

    def _prepare(self) -> None:
        """Fills in what differs from packet to packet, for the entries that are new."""
        port = self._port
        entries = self.batch.entries
        for slot in range(self._prepared, len(entries)):
            message, offset, length, header_bytes, ev, dscp, address = entries[slot]
            padding = -length & 3
            header = slot * SLOT_BYTES
            size = HEADER_AT + header_bytes + length + padding + ICRC_BYTES
            _UDP.pack_into(self._headers, header, ev & 0xFFFF, port, size, 0)
            _FLOW.pack_into(self._names, slot * libc.SOCKADDR_BYTES + 4, ev >> 16 & 0xFFFF, address)
            payload = 0
            if message is not None and length:
                if not message.edge_address:
                    message.edge_address = libc.address_of_view(message.view)
                payload = message.edge_address + offset
            _LENGTHS.pack_into(
                self._iovecs,
                slot * _IOVECS * libc.IOVEC_BYTES + 8,
                HEADER_AT + header_bytes,
                payload,
                length,
                self._header_address + header + ICRC_AT - padding,
                padding + ICRC_BYTES,
            )
            _TCLASS.pack_into(self._controls, slot * libc.TCLASS_CMSG.size + _TCLASS_AT, dscp << 2)
        self._prepared = len(entries)

    def flush(self) -> bool:
        """Sends the batch; True when it is empty afterwards, False when the rest must wait."""
        self._prepare()
        count = self._prepared
        self.retry_at = float("inf")
        self.waits_for_socket = False
        while self._sent < count:
            at = self._message_address + self._sent * libc.MMSGHDR_BYTES
            result = libc.send_messages(self._fd, at, count - self._sent)
            if result > 0:
                self._sent += result
                self._full_since = 0.0
            elif result == -errno.EAGAIN:
                self.waits_for_socket = True
                self._counters["edge_socket_full"] += 1
                return False
            elif result == -errno.ENOBUFS and self._may_hold(now := monotonic()):
                self.retry_at = now + _RETRY_S
                self._counters["edge_queue_full"] += 1
                return False
            elif result != -errno.EINTR:
                self._counters["edge_send_errors"] += 1  # link down, no route: lost like any other packet
                self._sent += 1
        self._sent = self._prepared = 0
        self.batch.entries.clear()
        return True

    def _may_hold(self, now: float) -> bool:
        """Whether a full queue is still worth waiting for."""
        self._full_since = self._full_since or now
        return now - self._full_since < _HOLD_S
