"""Ready-made fabrics of several leaf-spine planes, and transfers that check every byte."""

from __future__ import annotations

import ipaddress
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from mrc_agent.core.destination import Peer
from mrc_agent.core.events import EvChanged, Event, MessageArrived, WorkCompletion
from mrc_agent.core.queue_pair import QpState, QueuePair
from mrc_agent.lab.links import Link
from mrc_agent.lab.network import Lab, LabHost
from mrc_agent.profile import Profile

BIN_S = 0.05
"""Width of the bins of delivered bytes, in seconds."""


@dataclass(frozen=True)
class Plan:
    """A fabric: `planes` times `leaves` x `spines`, every host with one port in each plane."""

    planes: int = 4
    leaves: int = 2
    spines: int = 3
    hosts_per_leaf: int = 2
    rate_bps: float = 10e6
    delay_s: float = 0.0
    queue_bytes: int = 100_000
    evs_per_plane: int = 12
    control_class: bool = False
    """Whether acknowledgements and probes overtake data in the queues."""
    base_rtt_s: float = 0.0
    """0: computed for a full packet across a spine and a SACK back."""

    def round_trip_s(self) -> float:
        """Round trip of a full packet through idle links, and of its SACK."""
        if self.base_rtt_s:
            return self.base_rtt_s
        return 4 * ((4198 + 114) * 8 / self.rate_bps + 2 * self.delay_s)


class Fabric:
    """Hosts h1, h2, ... of a plan, connected in virtual time.

    An EV is plane in bits 31 to 28, spine in bits 13 to 6, salt in bits 5 to 0. Links are named ``h1-p1.leaf1`` and
    ``p1.leaf1-p1.spine2`` in the direction of travel, first the end where a packet comes from.
    """

    def __init__(self, plan: Plan, seed: int, profile: Profile | None = None) -> None:
        self.plan = plan
        self.lab = Lab(seed)
        self.profile = profile or Profile()
        self.links: dict[str, Link] = {}
        self.hosts: dict[str, LabHost] = {}
        self._leaf_of: dict[bytes, int] = {}
        self._name_of: dict[bytes, str] = {}
        count = plan.leaves * plan.hosts_per_leaf
        for number in range(1, count + 1):
            leaf = (number - 1) // plan.hosts_per_leaf + 1
            addresses = [
                ipaddress.IPv6Address(f"fd00:{plane}:{leaf:x}::{number:x}").packed
                for plane in range(1, plan.planes + 1)
            ]
            name = f"h{number}"
            self.hosts[name] = LabHost(self.lab, name, addresses, self.profile, seed)
            for plane, address in enumerate(addresses, 1):
                self._leaf_of[address] = leaf
                self._name_of[address] = name
                self._add(name, f"p{plane}.leaf{leaf}")
        for plane in range(1, plan.planes + 1):
            for leaf in range(1, plan.leaves + 1):
                for spine in range(1, plan.spines + 1):
                    self._add(f"p{plane}.leaf{leaf}", f"p{plane}.spine{spine}")
        self.lab.route = self._route

    def _add(self, one: str, other: str) -> None:
        plan = self.plan
        for a, b in ((one, other), (other, one)):
            self.links[f"{a}-{b}"] = Link(self.lab, f"{a}-{b}", plan.rate_bps, plan.delay_s, plan.queue_bytes)
            self.links[f"{a}-{b}"].control_class = plan.control_class

    def _route(self, source: bytes, destination: bytes, plane: int, ev: int) -> tuple[Link, ...] | None:
        leaves = f"p{plane + 1}.leaf{self._leaf_of[source]}", f"p{plane + 1}.leaf{self._leaf_of[destination]}"
        names = [self._name_of[source], leaves[0]]
        if leaves[0] != leaves[1]:
            names += [f"p{plane + 1}.spine{self.spine(ev)}", leaves[1]]
        names.append(self._name_of[destination])
        return tuple(self.links[f"{a}-{b}"] for a, b in itertools.pairwise(names))

    def spine(self, ev: int) -> int:
        """Number of the spine that an EV leads over, from 1."""
        return (ev >> 6 & 0xFF) % self.plan.spines + 1

    def set_link(self, one: str, other: str, up: bool) -> None:
        """Cuts or mends a link in both directions."""
        self.links[f"{one}-{other}"].up = self.links[f"{other}-{one}"].up = up

    def peer(self, name: str) -> Peer:
        """How other hosts know this one."""
        plan = self.plan
        planes = range(1, plan.planes + 1)
        host = self.hosts[name]
        return Peer(
            name,
            {plane: str(ipaddress.IPv6Address(host.addresses[plane - 1])) for plane in planes},
            {
                plane: tuple(
                    plane << 28 | 0xC000 | (number % plan.spines) << 6 | number // plan.spines
                    for number in range(plan.evs_per_plane)
                )
                for plane in planes
            },
            plan.round_trip_s(),
            {plane: int(plan.rate_bps) for plane in planes},
        )

    def connect(self, one: str, other: str) -> tuple[QueuePair, QueuePair]:
        """Connected queue pairs of two hosts."""
        first = self.hosts[one].endpoint.create_qp(self.peer(other))
        second = self.hosts[other].endpoint.create_qp(self.peer(one))
        first.connect(second.local_info())
        second.connect(first.local_info())
        return first, second

    def send(self, one: str, other: str, *, size: int, count: int | None = None, outstanding: int = 2) -> Transfer:
        """Starts a transfer of `count` messages (without end when None) of `size` bytes."""
        return Transfer(self, one, other, size, count, outstanding)

    def ev_events(self, *causes: str) -> list[EvChanged]:
        """Changes of EV states on all hosts, with one of the given causes, by time."""
        events = [event for host in self.hosts.values() for event in host.ev_events if event.cause in causes]
        return sorted(events, key=lambda event: event.time_s)


@dataclass
class Transfer:
    """Messages from one host to another over a queue pair of their own, some of them outstanding at a time.

    Each message goes to one of `outstanding` places in the receiver's memory and is compared there when it arrives.

    Attributes:
        arrived: how often each message has arrived intact.
        corrupt: messages whose bytes differed.
        completed: status of each message at the sender.
        bins: bytes delivered by bin of BIN_S seconds, and by plane (from 0) in `sender_evs`.
    """

    fabric: Fabric
    one: str
    other: str
    size: int
    count: int | None
    outstanding: int
    arrived: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    corrupt: list[int] = field(default_factory=list)
    completed: dict[int, str] = field(default_factory=dict)
    bins: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    posted: int = 0

    def __post_init__(self) -> None:
        source, sink = self.fabric.hosts[self.one], self.fabric.hosts[self.other]
        places = self.outstanding
        self._memory = bytearray(max(self.size, 1) * places)
        self._region = sink.endpoint.register(self._memory)
        self.qp, self.peer_qp = self.fabric.connect(self.one, self.other)
        self._pattern = Random(self.qp.qpn).randbytes(self.size + 256)
        self._payloads: dict[int, bytes] = {}
        self._chain(source, self._on_source)
        self._chain(sink, self._on_sink)
        for _ in range(places):
            self._post()
        source.wake()
        self._counted = 0
        self.fabric.lab.after(BIN_S, self._sample)

    @staticmethod
    def _chain(host: LabHost, handler: object) -> None:
        before = host.on_event

        def both(event: Event) -> None:
            before(event)
            handler(event)  # type: ignore[operator]

        host.on_event = both

    def _post(self) -> None:
        if (self.count is not None and self.posted >= self.count) or self.qp.state is not QpState.RTS:
            return
        number = self.posted
        self.posted += 1
        payload = self._pattern[number % 251 : number % 251 + self.size]
        self._payloads[number] = payload
        place = number % self.outstanding * self.size
        self.qp.post_write(payload, self._region.address + place, self._region.rkey, number)

    def _on_source(self, event: Event) -> None:
        if isinstance(event, WorkCompletion) and event.qpn == self.qp.qpn:
            self.completed[event.wr_id] = event.status
            self._post()

    def _on_sink(self, event: Event) -> None:
        if isinstance(event, MessageArrived) and event.qpn == self.peer_qp.qpn:
            place = event.msn % self.outstanding * self.size
            expected = self._payloads.pop(event.msn)
            intact = event.address == self._region.address + place and event.length == self.size
            if intact and self._memory[place : place + self.size] == expected:
                self.arrived[event.msn] += 1
            else:
                self.corrupt.append(event.msn)

    def _sample(self, _: object) -> None:
        delivered = sum(self.peer_qp.receiver.delivered)
        now = self.fabric.lab.now
        self.bins[round(now / BIN_S) - 1] += delivered - self._counted
        self._counted = delivered
        self.fabric.lab.after(BIN_S, self._sample)

    @property
    def done(self) -> bool:
        """Whether all messages have arrived once, intact, and completed with success at the sender."""
        return (
            self.count is not None
            and not self.corrupt
            and len(self.arrived) == self.count
            and set(self.arrived.values()) <= {1}
            and [self.completed.get(number) for number in range(self.count)] == ["success"] * self.count
        )

    def goodput_bps(self, begin_s: float, end_s: float) -> float:
        """Mean payload rate between two times, which should be multiples of BIN_S."""
        bins = range(round(begin_s / BIN_S), round(end_s / BIN_S))
        return sum(self.bins.get(index, 0) for index in bins) * 8 / (len(bins) * BIN_S)
