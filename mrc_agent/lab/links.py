"""One direction of a link: rate, delay, a queue in bytes with a strict-priority control class, and impairments."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrc_agent.lab.network import Lab

FRAME_BYTES = 62
"""Ethernet (14), IPv6 (40) and UDP (8) around what the core hands over: what a shaper charges."""


@dataclass(slots=True)
class Packet:
    """A datagram under way along `route`; `hop` counts the links behind it."""

    data: bytes
    ev: int
    plane: int
    control: bool
    source: bytes
    destination: bytes
    route: tuple[Link, ...]
    hop: int = 0


class Link:
    """A store-and-forward link.

    Attributes:
        rate_bps, delay_s, queue_bytes: bits per second, seconds, bytes (a control class of the same size on top).
        loss, duplicate, reorder: probability for each packet; a reordered one takes `reorder_s` longer.
        up: False drops everything, also what is queued.
        control_class: whether acknowledgements and probes overtake data.
        packets, dropped, largest_backlog: counters (packets, packets, bytes).
    """

    def __init__(self, lab: Lab, name: str, rate_bps: float, delay_s: float, queue_bytes: int) -> None:
        self._lab = lab
        self.name = name
        self.rate_bps = rate_bps
        self.delay_s = delay_s
        self.queue_bytes = queue_bytes
        self.loss = 0.0
        self.duplicate = 0.0
        self.reorder = 0.0
        self.reorder_s = 0.0
        self.up = True
        self.control_class = True
        self.packets = 0
        self.dropped = 0
        self.largest_backlog = 0
        self._queues: tuple[deque[Packet], deque[Packet]] = (deque(), deque())  # control, data
        self._backlog = [0, 0]
        self._busy = False

    def enqueue(self, packet: Packet) -> None:
        """A packet arrives at the queue."""
        size = len(packet.data) + FRAME_BYTES
        lane = 0 if packet.control and self.control_class else 1
        if not self.up or self._backlog[lane] + size > self.queue_bytes:
            self.dropped += 1
            return
        self._queues[lane].append(packet)
        self._backlog[lane] += size
        self.largest_backlog = max(self.largest_backlog, self._backlog[1])
        if not self._busy:
            self._busy = True
            self._serve()

    def _serve(self) -> None:
        """Begins to send the next packet; control goes first."""
        lane = 0 if self._queues[0] else 1
        if not self._queues[lane]:
            self._busy = False
            return
        packet = self._queues[lane].popleft()
        size = len(packet.data) + FRAME_BYTES
        self._lab.after(size * 8 / self.rate_bps, self._finish, (packet, lane, size))

    def _finish(self, job: tuple[Packet, int, int]) -> None:
        packet, lane, size = job
        self._backlog[lane] -= size
        self.packets += 1
        self._serve()
        chance = self._lab.rng.random
        if not self.up or (self.loss and chance() < self.loss):
            self.dropped += 1
            return
        delay = self.delay_s + (self.reorder_s if self.reorder and chance() < self.reorder else 0.0)
        self._lab.after(delay, self._lab.forward, packet)
        if self.duplicate and chance() < self.duplicate:
            copy = Packet(
                packet.data,
                packet.ev,
                packet.plane,
                packet.control,
                packet.source,
                packet.destination,
                packet.route,
                packet.hop,
            )
            self._lab.after(delay, self._lab.forward, copy)
