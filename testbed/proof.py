"""Prove, before an experiment, that every pair of hosts reaches each other in every plane they share.

Real ICMPv6 echo requests from every host to every other; the kernels of the hosts answer. One process sends and
receives for all hosts, through sockets opened inside their namespaces.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.netns import in_network_of
from testbed.network import Network

ECHO_REQUEST = 128
ECHO_REPLY = 129
IDENTIFIER = 0x4D52
ICMPV6_FILTER = 1
ROUND_S = 0.5
OUTSTANDING = 64
SO_BINDTODEVICE = 25
BASE_DEADLINE_S = 10.0
PAIR_DEADLINE_S = 0.005


class ProofError(TestbedError):
    """A pair of hosts does not reach each other. Attribute ``missing``: the pairs, as (source, destination, plane)."""

    def __init__(self, missing: list[tuple[str, str, int]]) -> None:
        shown = ", ".join(f"{source} -> {target} in plane {plane}" for source, target, plane in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        super().__init__(f"hosts do not reach each other: {shown}{more}")
        self.missing = missing


@dataclass(frozen=True)
class Proof:
    """Result of the pair matrix: how many ordered pairs were proven (each plane counts), and how long it took."""

    pairs: int
    seconds: float


def _open(pid: int, interface: str) -> socket.socket:
    with in_network_of(pid):
        echo = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    echo.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, interface.encode())
    passes = bytearray(b"\xff" * 32)
    passes[ECHO_REPLY // 8] &= ~(1 << (ECHO_REPLY % 8)) & 0xFF
    echo.setsockopt(socket.IPPROTO_ICMPV6, ICMPV6_FILTER, bytes(passes))
    echo.setblocking(False)
    return echo


def prove_pairs(network: Network, *, deadline_s: float | None = None) -> Proof:
    """Ping every ordered pair in every plane until each has answered.

    Args:
        deadline_s: by when, in seconds from now; None for one that grows with the number of pairs.

    Raises:
        ProofError: naming the pairs without an answer by then.
    """
    started = time.monotonic()
    ports = network.fabric.host_port
    pairs = [
        (source, target, plane)
        for (source, plane) in ports
        for (target, other_plane) in ports
        if plane == other_plane and source != target
    ]
    if deadline_s is None:
        deadline_s = BASE_DEADLINE_S + PAIR_DEADLINE_S * len(pairs)
    sockets = {key: _open(network.pid(key[0]), port.interface) for key, port in ports.items()}
    try:
        missing = _exchange(network, pairs, sockets, started + deadline_s)
    finally:
        for echo in sockets.values():
            echo.close()
    if missing:
        raise ProofError(missing)
    return Proof(len(pairs), time.monotonic() - started)


def _exchange(
    network: Network,
    pairs: list[tuple[str, str, int]],
    sockets: dict[tuple[str, int], socket.socket],
    deadline: float,
) -> list[tuple[str, str, int]]:
    """Send in rounds, a bounded number at a time, so that the proof itself does not overflow a queue."""
    waiting = dict(enumerate(pairs))
    with selectors.DefaultSelector() as selector:
        for echo in sockets.values():
            selector.register(echo, selectors.EVENT_READ)
        while waiting and time.monotonic() < deadline:
            for group in _groups([*waiting]):
                for number in group:
                    source, target, plane = waiting[number]
                    address = network.fabric.host_port[target, plane].ipv6
                    packet = struct.pack("!BBHHHI", ECHO_REQUEST, 0, 0, IDENTIFIER, 0, number)
                    sockets[source, plane].sendto(packet, (address, 0))
                _collect(selector, waiting, {*group}, min(deadline, time.monotonic() + ROUND_S))
    return [*waiting.values()]


def _groups(numbers: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(numbers), OUTSTANDING):
        yield numbers[start : start + OUTSTANDING]


def _collect(
    selector: selectors.BaseSelector, waiting: dict[int, tuple[str, str, int]], group: set[int], until: float
) -> None:
    while group and (left := until - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            assert isinstance(key.fileobj, socket.socket)
            packet = key.fileobj.recv(64)
            if len(packet) < 12:
                continue
            kind, _, _, identifier, _, number = struct.unpack_from("!BBHHHI", packet)
            if kind == ECHO_REPLY and identifier == IDENTIFIER:
                waiting.pop(number, None)
                group.discard(number)
