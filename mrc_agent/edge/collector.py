"""Receiving on one plane: a UDP socket with flow label, traffic class and the kernel's time of arrival."""

from __future__ import annotations

import errno
import socket
import struct
from time import clock_gettime, monotonic

from mrc_agent.core.datagram import Datagram
from mrc_agent.edge import libc

SLOTS = 256
_ROOM = 256  # bytes in a slot beyond the payload: headers, and enough to see that a packet is too long
_CONTROL_BYTES = 64
_CONTROL = struct.Struct("=QiiqqQii4s")
"""Control messages as Linux writes them: length, level, type, seconds, nanoseconds; length, level, type, flow word."""
_TIME_ONLY = 32  # control bytes when flow label and traffic class are zero: Linux leaves them out
_RESULT = struct.Struct("=Qi4xI")
_RESULT_AT = 40
_CLOCK_REALTIME = 0


class Collector:
    """Incoming half of a plane."""

    def __init__(
        self, interface: str, address: bytes, port: int, payload_bytes: int, plane: int, counters: dict[str, int]
    ) -> None:
        """`address`: packed local address; `plane`: position of the plane. Raises OSError."""
        self._plane = plane
        self._counters = counters
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket = sock
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
            sock.setsockopt(socket.SOL_SOCKET, libc.SO_TIMESTAMPNS, 1)
            sock.setsockopt(socket.IPPROTO_IPV6, libc.IPV6_FLOWINFO, 1)
            sock.setsockopt(socket.IPPROTO_UDP, libc.UDP_NO_CHECK6_RX, 1)
            libc.enlarge(sock, libc.SO_RCVBUFFORCE, socket.SO_RCVBUF, 16 << 20)
            sock.bind((socket.inet_ntop(socket.AF_INET6, address), port))
        except OSError:
            sock.close()
            raise
        self._fd = sock.fileno()
        self._stride = payload_bytes + _ROOM
        self._data = bytearray(SLOTS * self._stride)
        self._view = memoryview(self._data)
        self._names = bytearray(SLOTS * libc.SOCKADDR_BYTES)
        self._controls = bytearray(SLOTS * _CONTROL_BYTES)
        self._messages = bytearray(SLOTS * libc.MMSGHDR_BYTES)
        self._iovecs = bytearray(SLOTS * libc.IOVEC_BYTES)
        self._message_address = libc.address_of(self._messages)
        data, names, controls, iovecs = map(libc.address_of, (self._data, self._names, self._controls, self._iovecs))
        for slot in range(SLOTS):
            struct.pack_into("=QQ", self._iovecs, slot * libc.IOVEC_BYTES, data + slot * self._stride, self._stride)
            libc.MMSGHDR.pack_into(
                self._messages,
                slot * libc.MMSGHDR_BYTES,
                names + slot * libc.SOCKADDR_BYTES,
                libc.SOCKADDR_BYTES,
                iovecs + slot * libc.IOVEC_BYTES,
                1,
                controls + slot * _CONTROL_BYTES,
                _CONTROL_BYTES,
                0,
                0,
            )
        self._template = bytes(self._messages)

    def collect(self, into: list[Datagram]) -> bool:
        """Appends what has arrived; True when there may be more.

        The datagrams lie in this object's memory and are valid until the next call.
        """
        count = libc.receive_messages(self._fd, self._message_address, SLOTS)
        if count <= 0:
            if count not in (0, -errno.EAGAIN, -errno.EINTR):
                self._counters["edge_receive_errors"] += 1
            return False
        # The kernel stamps arrivals by the wall clock; the core's clock is monotonic.
        now = monotonic()
        offset = now - clock_gettime(_CLOCK_REALTIME)
        for slot in range(count):
            control_bytes, flags, length = _RESULT.unpack_from(self._messages, slot * libc.MMSGHDR_BYTES + _RESULT_AT)
            if flags & libc.MSG_TRUNC:
                self._counters["edge_too_long"] += 1
                continue
            _, _, _, seconds, nanoseconds, _, _, _, flow = _CONTROL.unpack_from(self._controls, slot * _CONTROL_BYTES)
            word = int.from_bytes(flow, "big") if control_bytes > _TIME_ONLY else 0
            name = slot * libc.SOCKADDR_BYTES
            names = self._names
            arrival = seconds + nanoseconds * 1e-9 + offset
            start = slot * self._stride
            into.append(
                (
                    self._view[start : start + length],
                    (word & 0xFFFF) << 16 | names[name + 2] << 8 | names[name + 3],
                    self._plane,
                    arrival if arrival < now else now,
                    bytes(names[name + 8 : name + 24]),
                    word >> 20 & 3 == 3,
                )
            )
        self._messages[: count * libc.MMSGHDR_BYTES] = self._template[: count * libc.MMSGHDR_BYTES]
        return count == SLOTS
