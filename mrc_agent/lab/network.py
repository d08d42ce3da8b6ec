"""Virtual time, and hosts that run the core in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any

from mrc_agent.core.datagram import Datagram, TxBatch
from mrc_agent.core.endpoint import Endpoint
from mrc_agent.core.events import EvChanged, Event
from mrc_agent.lab.links import Link, Packet
from mrc_agent.profile import Profile

Route = Callable[[bytes, bytes, int, int], tuple[Link, ...] | None]
"""Links from a source to a destination address (packed) on a plane (from 0) with an EV; None when there is no way."""


class Lab:
    """A clock, a queue of events, and hosts by address.

    Attributes:
        now: virtual seconds.
        rng: source of all chance outside the hosts.
        route: set by whoever builds the fabric.
        taps: called with each packet that reaches a host; returning False drops it.
        stalled_until: until then no switch forwards anything (a switch process that does not run).
    """

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = Random(seed)
        self.route: Route = lambda source, destination, plane, ev: None
        self.hosts: dict[bytes, LabHost] = {}
        self.taps: list[Callable[[Packet], bool]] = []
        self.stalled_until = 0.0
        self._queue: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._serial = 0

    def after(self, delay_s: float, action: Callable[[Any], None], argument: Any = None) -> None:
        """Calls `action(argument)` in `delay_s` seconds; equal times run in the order of asking."""
        self.at(self.now + delay_s, action, argument)

    def at(self, time_s: float, action: Callable[[Any], None], argument: Any = None) -> None:
        """Calls `action(argument)` at a time that is not before now."""
        self._serial += 1
        heappush(self._queue, (time_s, self._serial, action, argument))

    def run(self, until_s: float) -> None:
        """Lets time pass until `until_s`, or until nothing is left to happen."""
        queue = self._queue
        while queue and queue[0][0] <= until_s:
            self.now, _, action, argument = heappop(queue)
            action(argument)
        self.now = until_s

    def forward(self, packet: Packet) -> None:
        """A packet has left a link, or enters the network."""
        if self.now < self.stalled_until and 0 < packet.hop < len(packet.route):
            self.at(self.stalled_until, self.forward, packet)
            return
        if packet.hop < len(packet.route):
            link = packet.route[packet.hop]
            packet.hop += 1
            link.enqueue(packet)
            return
        host = self.hosts.get(packet.destination)
        if host is not None and all(tap(packet) for tap in self.taps):
            host.arrive(packet)


class LabHost:
    """A host: an endpoint with an inbox, woken by packets and timers.

    Attributes:
        wake_delay: seconds from the arrival of a packet until the process runs; the arrival itself is stamped exactly,
            as a kernel does. Called once for each wake-up.
        on_event: called with each completion and arrival.
        ev_events: all changes of EV states so far.
    """

    def __init__(
        self, lab: Lab, name: str, addresses: Sequence[bytes], profile: Profile, seed: int, batch: int = 64
    ) -> None:
        """`addresses`: packed, by plane (from 0)."""
        self._lab = lab
        self.name = name
        self.addresses = list(addresses)
        self.endpoint = Endpoint(name, range(1, len(addresses) + 1), profile, seed)
        self.wake_delay: Callable[[], float] = lambda: 0.0
        self.on_event: Callable[[Event], None] = lambda event: None
        self.ev_events: list[EvChanged] = []
        self._control_dscp = profile.wire.dscp_control
        self._batches = [TxBatch(batch) for _ in addresses]
        self._inbox: list[Datagram] = []
        self._woken = False
        self._timer = float("inf")
        for address in addresses:
            lab.hosts[address] = self

    def arrive(self, packet: Packet) -> None:
        """A packet reaches the host's socket."""
        self._inbox.append((memoryview(packet.data), packet.ev, packet.plane, self._lab.now, packet.source, False))
        self.wake()

    def wake(self) -> None:
        """The process becomes runnable, for example because something was posted."""
        if not self._woken:
            self._woken = True
            self._lab.after(self.wake_delay(), self._run)

    def _run(self, _: Any) -> None:
        self._woken = False
        now = self._lab.now
        endpoint = self.endpoint
        inbox, self._inbox = self._inbox, []
        endpoint.receive(inbox, now)
        endpoint.on_timer(now)
        while True:
            for event in endpoint.take_events():
                self.on_event(event)
            if not endpoint.transmit(now, self._batches):
                break
            for plane, batch in enumerate(self._batches):
                self._send(plane, batch)
        self.ev_events.extend(endpoint.take_ev_events())
        timer = endpoint.next_timer(now)
        if timer < self._timer or self._timer <= now:
            self._timer = timer
            if timer < float("inf"):
                self._lab.at(max(timer, now), self._tick, timer)

    def _tick(self, timer: float) -> None:
        if timer == self._timer:
            self._timer = float("inf")
            self.wake()

    def _send(self, plane: int, batch: TxBatch) -> None:
        source = self.addresses[plane]
        for index, (_, _, _, _, ev, dscp, destination) in enumerate(batch.entries):
            route = self._lab.route(source, destination, plane, ev)
            if route is not None:
                control = dscp == self._control_dscp
                self._lab.forward(Packet(batch.datagram(index), ev, plane, control, source, destination, route))
        batch.entries.clear()
