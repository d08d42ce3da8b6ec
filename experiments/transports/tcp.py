"""The kernel's TCP: one connection for each channel, in one plane, routed by the fabric.

The plane is drawn by hash, as a bonded host would place a connection, and so is the source port, by which the
switches' hashes then choose the path: a seed decides all of it, and the same seed takes the same paths.

A message is confirmed by the receiving application (eight bytes on the same connection), so that "delivered" means the
same as for every other transport.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.transports.base import (
    ChannelSpec,
    Delivered,
    Event,
    HostSpec,
    PlanePort,
    Sent,
    Transport,
    UnsupportedTransport,
)

CONFIRMATION = struct.Struct("!Q")
LENGTH = struct.Struct("!Q")
TCP_CONGESTION = 13
TCP_INFO = 11
READ_BYTES = 1 << 18
LISTEN_PORT = 10_000
FIRST_SOURCE_PORT = 20_000
SOURCE_PORTS = 30_000


def plane_of(channel: ChannelSpec, planes: Sequence[int], seed: int) -> int:
    """The plane of ``planes`` that a channel's connection is placed in."""
    return planes[_hash(channel, seed, "plane") % len(planes)]


def ports_of(channel: ChannelSpec, seed: int) -> tuple[int, int]:
    """(source port, destination port) of a channel's connection."""
    return FIRST_SOURCE_PORT + _hash(channel, seed, "port") % SOURCE_PORTS, LISTEN_PORT + channel.id


def _hash(channel: ChannelSpec, seed: int, what: str) -> int:
    return zlib.crc32(f"{what} {channel.src}>{channel.dst}#{channel.id}@{seed}".encode())


class _Sender:
    """The sending end of a channel: messages queue up, are written as the kernel takes them, and await confirmation."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.connected = False
        self.queue: deque[memoryview] = deque()
        self.unconfirmed: deque[int] = deque()
        self.confirmation = bytearray()

    def write(self) -> None:
        """Write until the kernel's buffer is full."""
        while self.queue:
            try:
                written = self.link.send(self.queue[0])
            except BlockingIOError:
                return
            if written == len(self.queue[0]):
                self.queue.popleft()
            else:
                self.queue[0] = self.queue[0][written:]

    def read(self) -> list[int]:
        """Ids of the messages confirmed meanwhile."""
        with contextlib.suppress(BlockingIOError):
            self.confirmation += self.link.recv(4096)
        done = []
        while len(self.confirmation) >= CONFIRMATION.size:
            del self.confirmation[: CONFIRMATION.size]
            done.append(self.unconfirmed.popleft())
        return done


class _Receiver:
    """The receiving end of a channel: a length, then that many bytes, over and over."""

    def __init__(self, link: socket.socket, channel: ChannelSpec, plane: int) -> None:
        self.link = link
        self.channel = channel
        self.plane = plane
        self.header = bytearray()
        self.buffer = bytearray(channel.largest)
        self.expected = 0
        self.have = 0
        self.received = 0

    def read(self) -> list[memoryview]:
        """Whole messages read meanwhile; at most one, since its buffer is used again. Raises ConnectionError."""
        try:
            if not self.expected:
                self._read_header()
            if not self.expected:
                return []
            view = memoryview(self.buffer)[self.have : min(self.expected, self.have + READ_BYTES)]
            count = self.link.recv_into(view)
        except BlockingIOError:
            return []
        if count == 0:
            raise ConnectionError(f"{self.channel.src} closed the connection")
        self.have += count
        self.received += count
        if self.have < self.expected:
            return []
        whole = memoryview(self.buffer)[: self.expected]
        self.expected = self.have = 0
        return [whole]

    def _read_header(self) -> None:
        part = self.link.recv(LENGTH.size - len(self.header))
        if not part:
            raise ConnectionError(f"{self.channel.src} closed the connection")
        self.header += part
        if len(self.header) == LENGTH.size:
            (self.expected,) = LENGTH.unpack(self.header)
            self.header.clear()


class TcpTransport(Transport):
    """All TCP connections of one host.

    Options:
        congestion: the kernel's congestion control, ``cubic`` by default.
    """

    def __init__(self, host: HostSpec) -> None:
        self._host = host
        self._congestion = str(host.options.get("congestion", "cubic"))
        self._selector = selectors.DefaultSelector()
        self._listeners: dict[int, socket.socket] = {}
        self._senders: dict[int, _Sender] = {}
        self._receivers: dict[int, _Receiver] = {}
        for channel in host.receives:
            self._listen(channel)

    def _port_for(self, channel: ChannelSpec) -> PlanePort:
        """The plane that a hash of the connection's ends and the seed picks."""
        shared = {port.plane: port for port in self._host.ports}
        planes = sorted(shared.keys() & self._host.peers[self._other(channel)].addresses.keys())
        return shared[plane_of(channel, planes, self._host.seed)]

    def _other(self, channel: ChannelSpec) -> str:
        return channel.src if channel.dst == self._host.name else channel.dst

    def _new_socket(self) -> socket.socket:
        link = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        try:
            link.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self._congestion.encode())
        except OSError as error:
            raise UnsupportedTransport(
                f"this kernel has no congestion control {self._congestion!r}: {error.strerror}"
            ) from error
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def _listen(self, channel: ChannelSpec) -> None:
        listener = self._new_socket()
        listener.bind((self._port_for(channel).ipv6, ports_of(channel, self._host.seed)[1]))
        listener.listen(1)
        listener.setblocking(False)
        self._listeners[channel.id] = listener
        self._selector.register(listener, selectors.EVENT_READ, channel)

    def offers(self) -> dict[int, dict[str, Any]]:
        return {
            channel: {"port": listener.getsockname()[1], "plane": self._plane(channel)}
            for channel, listener in self._listeners.items()
        }

    def _plane(self, channel: int) -> int:
        return next(self._port_for(spec).plane for spec in self._host.receives if spec.id == channel)

    def accept(self, offers: Mapping[int, dict[str, Any]]) -> None:
        for channel in self._host.sends:
            offer = offers[channel.id]
            link = self._new_socket()
            link.setblocking(False)
            link.bind((self._port_for(channel).ipv6, ports_of(channel, self._host.seed)[0]))
            link.connect_ex((self._host.peers[channel.dst].addresses[int(offer["plane"])], int(offer["port"])))
            sender = _Sender(link)
            self._senders[channel.id] = sender
            self._selector.register(link, selectors.EVENT_READ | selectors.EVENT_WRITE, sender)

    def ready(self) -> bool:
        waiting = any(not sender.connected for sender in self._senders.values())
        return not waiting and len(self._receivers) == len(self._host.receives)

    def post(self, channel: int, message: int, data: memoryview) -> None:
        sender = self._senders[channel]
        sender.queue += [memoryview(LENGTH.pack(len(data))), data]
        sender.unconfirmed.append(message)
        self._send(sender)

    def _send(self, sender: _Sender) -> None:
        sender.write()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if sender.queue else 0)
        self._selector.modify(sender.link, wanted, sender)

    def step(self, timeout_s: float) -> list[Event]:
        events: list[Event] = []
        for key, mask in self._selector.select(max(0.0, timeout_s)):
            if isinstance(key.data, ChannelSpec):
                self._welcome(key.data)
            elif isinstance(key.data, _Sender):
                events += self._serve_sender(key.data, mask)
            else:
                events += self._serve_receiver(key.data)
        return events

    def _welcome(self, channel: ChannelSpec) -> None:
        listener = self._listeners[channel.id]
        link, _ = listener.accept()
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.unregister(listener)
        receiver = _Receiver(link, channel, self._plane(channel.id))
        self._receivers[channel.id] = receiver
        self._selector.register(link, selectors.EVENT_READ, receiver)

    def _serve_sender(self, sender: _Sender, mask: int) -> list[Event]:
        if mask & selectors.EVENT_WRITE:
            if not sender.connected:
                error = sender.link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise ConnectionError(error, f"connecting: {error}")
                sender.connected = True
            self._send(sender)
        if mask & selectors.EVENT_READ:
            now = time.monotonic()
            return [Sent(message, now) for message in sender.read()]
        return []

    def _serve_receiver(self, receiver: _Receiver) -> list[Event]:
        events: list[Event] = []
        for whole in receiver.read():
            events.append(Delivered(receiver.channel.id, whole, time.monotonic()))
            receiver.link.send(CONFIRMATION.pack(receiver.channel.id))
        return events

    def delivered_bytes(self) -> dict[tuple[str, int], int]:
        totals: dict[tuple[str, int], int] = {}
        for receiver in self._receivers.values():
            key = (receiver.channel.src, receiver.plane)
            totals[key] = totals.get(key, 0) + receiver.received
        return totals

    def _info(self, sender: _Sender) -> tuple[float, int, int]:
        """(round-trip time in seconds, segments retransmitted, window in bytes) out of the kernel's tcp_info."""
        data = sender.link.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 192)
        words = struct.unpack_from("=24I", data, 8)
        mss, rtt_us, cwnd, total_retrans = words[2], words[15], words[18], words[23]
        return rtt_us / 1e6, total_retrans, cwnd * mss

    def sample(self) -> dict[str, float]:
        infos = [self._info(sender) for sender in self._senders.values() if sender.connected]
        if not infos:
            return {}
        return {"rtt_s": max(info[0] for info in infos), "cwnd_bytes": float(sum(info[2] for info in infos))}

    def counters(self) -> dict[str, Any]:
        return {
            "retransmitted_packets": sum(self._info(sender)[1] for sender in self._senders.values()),
            "congestion": self._congestion,
            "planes": {str(channel.id): self._port_for(channel).plane for channel in self._host.sends},
        }

    def close(self) -> None:
        self._selector.close()
        for link in (
            *self._listeners.values(),
            *(sender.link for sender in self._senders.values()),
            *(receiver.link for receiver in self._receivers.values()),
        ):
            link.close()
