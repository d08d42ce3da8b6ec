"""The host agent: the core on real sockets, single-threaded. This is what an application uses.

    agent = Agent(AgentConfig("h1", planes))
    region = agent.register(bytearray(1 << 20))          # tell the peer address and rkey
    qp = agent.create_qp(peer)
    qp.connect(remote_info)                              # what qp.local_info() gave at the other end
    qp.post_write(payload, remote_address, remote_rkey, wr_id=1)
    while ...:
        for event in agent.step(0.1):                    # WorkCompletion, MessageArrived
            ...

Between the return of a ``step`` and the next call nothing is received, so memory that a ``MessageArrived`` names stays
as it is until then.
"""

from __future__ import annotations

import select
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import Any

from mrc_agent.core.datagram import Datagram
from mrc_agent.core.destination import Peer
from mrc_agent.core.endpoint import Endpoint
from mrc_agent.core.errors import MrcError
from mrc_agent.core.events import EvChanged, Event, MessageArrived, WorkCompletion
from mrc_agent.core.evs import EvState
from mrc_agent.core.memory import MemoryRegion
from mrc_agent.core.queue_pair import QpState, QueuePair
from mrc_agent.edge.sockets import EDGE_COUNTERS, PlaneInterface, PlaneSockets
from mrc_agent.profile import Profile

__all__ = [
    "Agent",
    "AgentConfig",
    "EvChanged",
    "Event",
    "MemoryRegion",
    "MessageArrived",
    "MrcError",
    "Peer",
    "PlaneInterface",
    "Profile",
    "QpState",
    "QueuePair",
    "Sample",
    "WorkCompletion",
]


@dataclass(frozen=True)
class AgentConfig:
    """What an agent needs to know of its host.

    Attributes:
        host: name of the host, as peers know it.
        planes: its ports.
        udp_port: destination port of all packets; None takes the profile's.
        profile: constants of the transport.
        seed: of everything random (PSNs, rkeys, order of EVs); the host's name is mixed in.
    """

    host: str
    planes: tuple[PlaneInterface, ...]
    udp_port: int | None = None
    profile: Profile = field(default_factory=Profile)
    seed: int = 0


@dataclass(frozen=True)
class Sample:
    """A moment of the host's congestion control, over all destinations that it sends to.

    Attributes:
        cwnd_bytes, inflight_bytes: sums, headers included.
        rtt_s: mean of the smoothed round trips; NaN when there is none.
    """

    cwnd_bytes: int
    rtt_s: float
    inflight_bytes: int


class Agent:
    """The transport of one host. Not thread-safe."""

    def __init__(self, config: AgentConfig) -> None:
        """Opens the sockets of all planes. Raises MrcError when an interface cannot be used."""
        if not config.planes:
            raise MrcError(f"{config.host}: an agent needs at least one plane")
        numbers = [port.plane for port in config.planes]
        if len(set(numbers)) != len(numbers):
            raise MrcError(f"{config.host}: a plane is listed twice")
        profile = config.profile
        if config.udp_port is not None:
            profile = replace(profile, wire=replace(profile.wire, udp_port=config.udp_port))
        self.host = config.host
        self._edge_counters = dict.fromkeys(EDGE_COUNTERS, 0)
        self._plane_numbers = tuple(numbers)
        self._endpoint = Endpoint(config.host, numbers, profile, config.seed)
        self._planes: list[PlaneSockets] = []
        self._poll = select.epoll()
        try:
            for position, port in enumerate(config.planes):
                self._planes.append(PlaneSockets(port, position, profile.wire, self._edge_counters))
        except MrcError:
            self.close()
            raise
        self._batches = [plane.transmitter.batch for plane in self._planes]
        self._coalesce_s = profile.wire.coalesce_s
        self._ran_at = 0.0
        self._extra: set[int] = set()
        self._writable: set[int] = set()  # file descriptors watched for room to send
        for plane in self._planes:
            self._poll.register(plane.collector.socket, select.EPOLLIN)

    def close(self) -> None:
        """Closes all sockets."""
        for plane in self._planes:
            plane.close()
        self._poll.close()

    def register(self, buffer: Any) -> MemoryRegion:
        """Registers a writable buffer that peers may write to; tell them its address and rkey."""
        return self._endpoint.register(buffer)

    def deregister(self, region: MemoryRegion) -> None:
        """From now on nobody can write to the region."""
        self._endpoint.memory.deregister(region)

    def create_qp(self, peer: Peer) -> QueuePair:
        """A queue pair to a peer, in INIT; `connect` it with what the other end's `local_info` gave."""
        return self._endpoint.create_qp(peer)

    def step(self, timeout_s: float, extra_fds: Iterable[int] = ()) -> list[Event]:
        """Lets the transport work until it has something to report, at most for `timeout_s` seconds.

        Also returns, perhaps with nothing, when one of `extra_fds` becomes readable. Sleeps while nothing happens.
        """
        self._watch(set(extra_fds))
        deadline = monotonic() + timeout_s
        endpoint = self._endpoint
        wait = 0.0
        while True:
            ready = {fd for fd, _ in self._poll.poll(wait)}
            pause = self._ran_at + self._coalesce_s - monotonic()
            if ready and pause > 0.0:
                sleep(pause)  # arrivals of the next moment share this pass
                ready.update(fd for fd, _ in self._poll.poll(0))
            self._ran_at = monotonic()
            self._receive(ready)
            endpoint.on_timer(monotonic())
            self._transmit()
            events = endpoint.take_events()
            now = monotonic()
            if events or now >= deadline or ready & self._extra:
                return events
            retry = min(plane.transmitter.retry_at for plane in self._planes)
            wait = max(min(deadline, endpoint.next_timer(now), retry) - now, 0.0)

    def counters(self) -> dict[str, Any]:
        """Totals of the host by name (see ``core/counters.py`` and ``edge/sockets.py``), and under
        ``delivered_bytes`` the payload bytes received, each once, as {peer: {plane: bytes}}."""
        delivered: dict[str, dict[str, int]] = defaultdict(dict)
        for (peer, plane), size in self.delivered_bytes().items():
            delivered[peer][str(plane)] = size
        return {**self._endpoint.counters, **self._edge_counters, "delivered_bytes": dict(delivered)}

    def delivered_bytes(self) -> dict[tuple[str, int], int]:
        """Payload bytes received so far, each once, by peer and plane. Cheap."""
        totals: dict[tuple[str, int], int] = {}
        for pair in self._endpoint.queue_pairs.values():
            for plane, size in zip(self._plane_numbers, pair.receiver.delivered, strict=True):
                key = pair.peer, plane
                totals[key] = totals.get(key, 0) + size
        return totals

    def ev_table(self) -> list[dict[str, Any]]:
        """One row for each peer and EV; counters are summed over queue pairs, the state is the worst of them."""
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        worst: dict[tuple[str, int], EvState] = {}
        for pair in self._endpoint.queue_pairs.values():
            evs = pair.evs
            for index, ev in enumerate(evs.values):
                key = pair.peer, ev
                worst[key] = max(worst.get(key, EvState.GOOD), evs.state[index])
                row = rows.setdefault(
                    key,
                    {
                        "host": self.host,
                        "peer": pair.peer,
                        "plane": self._plane_numbers[evs.plane_of[index]],
                        "ev": ev,
                        "state": "",
                        "sent_packets": 0,
                        "retransmitted_packets": 0,
                        "acked_packets": 0,
                        "lost_packets": 0,
                        "state_changes": 0,
                    },
                )
                row["state"] = worst[key].name
                row["sent_packets"] += evs.sent[index]
                row["retransmitted_packets"] += evs.retransmitted[index]
                row["acked_packets"] += evs.acked[index]
                row["lost_packets"] += evs.lost[index]
                row["state_changes"] += evs.changes[index]
        return list(rows.values())

    def take_ev_events(self) -> list[EvChanged]:
        """Changes of EV states since the last call, with time and cause."""
        return self._endpoint.take_ev_events()

    def sample(self) -> Sample:
        """Window, round trip and bytes in flight at this moment."""
        sending = {pair.peer for pair in self._endpoint.queue_pairs.values() if pair.sender.sent_packets}
        active = [self._endpoint.destinations[name] for name in sorted(sending)]
        rtt_s = sum(d.times.smoothed for d in active) / len(active) if active else float("nan")
        return Sample(int(sum(d.nscc.cwnd for d in active)), rtt_s, sum(d.nscc.inflight for d in active))

    def _receive(self, ready: set[int]) -> None:
        """Drains the sockets, then gives the core everything in the order of arrival over all planes."""
        more = True
        while more:
            more = False
            batch: list[Datagram] = []
            for plane in self._planes:
                if plane.collector.socket.fileno() in ready:
                    more = plane.collector.collect(batch) or more
            if batch:
                batch.sort(key=_arrival)
                self._endpoint.receive(batch, monotonic())

    def _transmit(self) -> None:
        """Sends until the core has nothing more or every plane that it needs is full."""
        held = [plane for plane in self._planes if plane.transmitter.batch.entries]
        for plane in held:
            plane.transmitter.flush()
        full = True
        while full and self._endpoint.transmit(monotonic(), self._batches):
            full = any(len(batch.entries) == batch.capacity for batch in self._batches)  # there may be more to send
            flushed = False
            for plane in self._planes:
                if plane.transmitter.batch.entries:
                    flushed = plane.transmitter.flush() or flushed
            full = full and flushed
        for plane in self._planes:
            self._watch_writable(plane.transmitter.socket.fileno(), plane.transmitter.waits_for_socket)

    def _watch_writable(self, fd: int, wanted: bool) -> None:
        if wanted and fd not in self._writable:
            self._poll.register(fd, select.EPOLLOUT)
            self._writable.add(fd)
        elif not wanted and fd in self._writable:
            self._poll.unregister(fd)
            self._writable.remove(fd)

    def _watch(self, wanted: set[int]) -> None:
        for fd in self._extra - wanted:
            try:
                self._poll.unregister(fd)
            except OSError:  # the caller has closed it
                continue
        for fd in wanted - self._extra:
            self._poll.register(fd, select.EPOLLIN)
        self._extra = wanted


def _arrival(datagram: Datagram) -> float:
    return datagram[3]
