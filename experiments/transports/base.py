"""The contract between the driver on a host and a transport.

A transport carries messages over channels. The driver calls `step` in a loop, in one thread; a transport has no thread
of its own. Before traffic, each host makes an *offer* for every channel that it has an end of (a port, a queue pair
and a key), and the runner hands it to the channel's other end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class UnsupportedTransport(RuntimeError):
    """This machine or this fabric cannot run the transport; the cell is reported as unsupported, with the reason."""


@dataclass(frozen=True)
class ChannelSpec:
    """One channel as a host sees it. ``largest`` bytes is its largest message, ``outstanding`` how many at once."""

    id: int
    src: str
    dst: str
    largest: int
    outstanding: int


@dataclass(frozen=True)
class PlanePort:
    """A host's interface in a plane."""

    plane: int
    interface: str
    ipv6: str
    rate_bps: int


@dataclass(frozen=True)
class PeerSpec:
    """What a host knows of another one.

    Attributes:
        addresses: IPv6 address by plane.
        evs: EVs by plane that reach it over all paths.
        base_rtt_s: round-trip time over the idle fabric, in seconds.
    """

    name: str
    addresses: Mapping[int, str]
    evs: Mapping[int, tuple[int, ...]]
    base_rtt_s: float


@dataclass(frozen=True)
class HostSpec:
    """Everything a transport may know of the host that it runs on.

    Attributes:
        payload_bytes: payload of a full packet for a transport that makes its own packets.
    """

    name: str
    seed: int
    ports: tuple[PlanePort, ...]
    peers: Mapping[str, PeerSpec]
    sends: tuple[ChannelSpec, ...]
    receives: tuple[ChannelSpec, ...]
    payload_bytes: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sent:
    """A message was confirmed: its receiver has all of it. ``at_s`` is CLOCK_MONOTONIC in seconds."""

    message: int
    at_s: float


@dataclass(frozen=True)
class Delivered:
    """A whole message has arrived. ``data`` is valid until the next `step`."""

    channel: int
    data: memoryview
    at_s: float


@dataclass(frozen=True)
class Failed:
    """The transport has given a message up."""

    message: int
    reason: str


@dataclass(frozen=True)
class Note:
    """Something worth a line in the run's events, such as an EV that changed its state."""

    kind: str
    name: str
    detail: str
    at_s: float


Event = Sent | Delivered | Failed | Note


class Transport(ABC):
    """One host's end of all its channels."""

    @abstractmethod
    def offers(self) -> dict[int, dict[str, Any]]:
        """For each channel this host has an end of, what the other end must know; JSON-able."""

    @abstractmethod
    def accept(self, offers: Mapping[int, dict[str, Any]]) -> None:
        """Take the other ends' offers, by channel, and start connecting."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether every channel is connected. `step` is called until it is."""

    @abstractmethod
    def post(self, channel: int, message: int, data: memoryview) -> None:
        """Begin to send a message. ``data`` stays unchanged until the message is Sent or Failed."""

    @abstractmethod
    def step(self, timeout_s: float) -> list[Event]:
        """Send and receive what can be; wait at most ``timeout_s`` seconds for something to happen."""

    @abstractmethod
    def delivered_bytes(self) -> dict[tuple[str, int], int]:
        """Payload bytes delivered here so far, each once, by (source host, plane); plane 0 where it cannot be told."""

    def sample(self) -> dict[str, float]:
        """Window, round-trip time and bytes in flight: any of ``cwnd_bytes``, ``rtt_s``, ``inflight_bytes``."""
        return {}

    def ev_rows(self) -> list[dict[str, Any]]:
        """Per-EV counters, as in the results' ``evs`` table; empty for a transport without EVs."""
        return []

    def counters(self) -> dict[str, Any]:
        """Named counters of this host, such as ``retransmitted_packets``."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Release what is held. Called once, last."""
