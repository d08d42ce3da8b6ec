"""Read the counters of all root queues of a network namespace: one request, a few tens of microseconds.

A run reads them several times a second in every namespace; the general netlink library takes ten times longer
(bench/queue_counters.py), which would delay what else the cell has to do.

Formats: <linux/rtnetlink.h>, <linux/pkt_sched.h>, <linux/gen_stats.h>.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.errors import TestbedError

NETLINK_ROUTE = 0
RTM_GETQDISC = 38
RTM_NEWQDISC = 36
NLMSG_ERROR = 2
NLMSG_DONE = 3
NLM_F_REQUEST_DUMP = 0x301
TC_H_ROOT = 0xFFFFFFFF
TCA_STATS2 = 7
TCA_STATS_BASIC = 1
TCA_STATS_QUEUE = 3
RECEIVE_BYTES = 1 << 16

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_TCMSG = struct.Struct("=BxxxiIII")  # family, ifindex, handle, parent, info
_ATTRIBUTE = struct.Struct("=HH")  # length, type


@dataclass(frozen=True)
class QueueCounters:
    """Cumulative counters of a root queue; ``backlog_bytes`` is what waits now."""

    ifindex: int
    bytes: int
    packets: int
    drops: int
    backlog_bytes: int


class QdiscReader:
    """A socket in the network namespace that it was made in."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE)
        self._sequence = 0

    def read(self) -> list[QueueCounters]:
        """Counters of every interface's root queue. Raises TestbedError."""
        self._sequence += 1
        request = _TCMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        length = _HEADER.size + len(request)
        self._socket.send(_HEADER.pack(length, RTM_GETQDISC, NLM_F_REQUEST_DUMP, self._sequence, 0) + request)
        found: list[QueueCounters] = []
        while True:
            data = self._socket.recv(RECEIVE_BYTES)
            if self._take(data, found):
                return found

    def _take(self, data: bytes, found: list[QueueCounters]) -> bool:
        """Add what a datagram holds to ``found``; whether it was the last one."""
        offset = 0
        while offset < len(data):
            length, kind, _, sequence, _ = _HEADER.unpack_from(data, offset)
            if sequence == self._sequence:
                if kind == NLMSG_DONE:
                    return True
                if kind == NLMSG_ERROR:
                    raise TestbedError("the kernel refused to list the queues")
                if kind == RTM_NEWQDISC:
                    counters = parse_qdisc(data[offset + _HEADER.size : offset + length])
                    if counters is not None:
                        found.append(counters)
            offset += (length + 3) & ~3
        return False

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def parse_qdisc(message: bytes) -> QueueCounters | None:
    """Counters out of an RTM_NEWQDISC message without its netlink header; None unless it is a root queue's."""
    _, ifindex, _, parent, _ = _TCMSG.unpack_from(message)
    if parent != TC_H_ROOT:
        return None
    for kind, value in _attributes(message[_TCMSG.size :]):
        if kind == TCA_STATS2:
            stats = dict(_attributes(value))
            if TCA_STATS_BASIC not in stats or TCA_STATS_QUEUE not in stats:
                return None
            count, packets = struct.unpack_from("=QI", stats[TCA_STATS_BASIC])
            _, backlog, drops = struct.unpack_from("=III", stats[TCA_STATS_QUEUE])
            return QueueCounters(ifindex, count, packets, drops, backlog)
    return None


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
