"""One reliable connection: its states, its two halves, its EVs (MRC 1.0 chapter 10; states of the verbs interface)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from mrc_agent.core.destination import Destination
from mrc_agent.core.errors import MrcError
from mrc_agent.core.events import EvChanged, Event, Status
from mrc_agent.core.evs import EvSet, EvState
from mrc_agent.core.memory import MemoryTable
from mrc_agent.core.ports import Ports
from mrc_agent.core.prober import Prober
from mrc_agent.core.receiver import Receiver
from mrc_agent.core.reverse import ReversePath
from mrc_agent.core.sender import Sender
from mrc_agent.profile import Profile
from mrc_agent.wire.headers import BTH, BTH_STRUCT, EETH, EETH_STRUCT
from mrc_agent.wire.opcodes import ENDPOINT_QP, EndpointOperation, NackReason, Opcode
from mrc_agent.wire.sequence import PSN_MASK

Outgoing = tuple[bytes, int, int, int, bytes]
"""Header of a control packet, plane (from 0), EV, DSCP, packed destination address."""


class QpState(Enum):
    """States of the verbs interface. A new queue pair has its EVs and its window already: INIT."""

    RESET = "RESET"
    INIT = "INIT"
    RTR = "RTR"
    RTS = "RTS"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Host:
    """What all queue pairs of one host share."""

    name: str
    planes: tuple[int, ...]
    profile: Profile
    memory: MemoryTable
    counters: dict[str, int]
    events: list[Event]
    ev_events: list[EvChanged]
    outbox: list[Outgoing]
    ports: Ports
    new_probe_id: Callable[[int], int]


class Context:
    """What the parts of one queue pair see of it and of the host."""

    def __init__(self, host: Host, destination: Destination, qpn: int, rng: Random) -> None:
        self.host = host
        self.profile = host.profile
        self.memory = host.memory
        self.counters = host.counters
        self.events = host.events
        self.ports = host.ports
        self.destination = destination
        self.qpn = qpn
        self.evs = EvSet(destination.evs, host.profile.evs, rng, self._on_ev_change)
        planes = len(host.planes)
        profile = host.profile.evs
        round_s = profile.reverse_probe_rtts * destination.base_rtt_s * planes
        self.reverse = ReversePath(self.evs, planes, profile.reverse_stale_rounds * round_s, rng)
        self.prober = Prober(self, self.reverse, rng)

    def new_probe_id(self) -> int:
        """A probe id whose answer will reach this queue pair."""
        return self.host.new_probe_id(self.qpn)

    def answer(self, header: bytes, plane: int) -> None:
        """Queues a control packet that answers what came over `plane`."""
        self.send_control(header, self.reverse.pick(plane), self.profile.wire.dscp_control)

    def send_control(self, header: bytes, index: int, dscp: int) -> None:
        """Queues a packet without payload on an EV given by index."""
        plane = self.evs.plane_of[index]
        self.host.outbox.append((header, plane, self.evs.values[index], dscp, self.destination.addresses[plane]))

    def _on_ev_change(self, now: float, index: int, before: EvState, after: EvState, cause: str) -> None:
        if after == EvState.ASSUMED_BAD:
            self.prober.watch(index, now)
            self.reverse.replace(index)
        elif before == EvState.ASSUMED_BAD:
            self.prober.forget(index)
        plane = self.host.planes[self.evs.plane_of[index]]
        ev = self.evs.values[index]
        self.host.ev_events.append(
            EvChanged(now, self.qpn, self.destination.name, plane, ev, before.name, after.name, cause)
        )


class QueuePair:
    """One end of a connection.

    Attributes:
        qpn: local number.
        state: see QpState.
        destination: the peer, shared by all queue pairs to it.
        evs, sender, receiver, prober, reverse: its parts.
    """

    def __init__(self, host: Host, destination: Destination, qpn: int, rng: Random) -> None:
        self._context = Context(host, destination, qpn, rng)
        self._host = host
        self.qpn = qpn
        self.destination = destination
        self.addresses = destination.addresses
        self.evs = self._context.evs
        self.reverse = self._context.reverse
        self.prober = self._context.prober
        self._first_psn = rng.getrandbits(24)
        self.sender = Sender(self._context, self._first_psn, rng)
        self.receiver = Receiver(self._context)
        self.state = QpState.INIT
        destination.queue_pairs += 1

    @property
    def peer(self) -> str:
        """Name of the other host."""
        return self.destination.name

    def local_info(self) -> dict[str, Any]:
        """What the other end must know to connect, out of band; JSON-able (MRC 1.0 table 10-1).

        ``regions`` lists the memory that the peer may write to at this moment.
        """
        return {
            "host": self._host.name,
            "qpn": self.qpn,
            "psn": self._first_psn,
            "mpr": self._host.profile.reliability.mpr,
            "payload_bytes": self._host.profile.wire.payload_bytes,
            "icrc": self._host.profile.wire.icrc,
            "regions": [
                {"address": region.address, "rkey": region.rkey, "length": region.length}
                for region in self._host.memory.by_rkey.values()
            ],
        }

    def connect(self, remote: Mapping[str, Any]) -> None:
        """Takes the other end's `local_info` and goes from INIT through RTR to RTS.

        Raises MrcError when the queue pair is not in INIT or the parameters do not fit.
        """
        if self.state is not QpState.INIT:
            raise MrcError(f"queue pair {self.qpn} is in {self.state.value}, not in INIT")
        missing = {"host", "qpn", "psn", "mpr", "payload_bytes", "icrc"} - set(remote)
        if missing:
            raise MrcError(f"the remote parameters lack {', '.join(sorted(missing))}")
        if remote["host"] != self.peer:
            raise MrcError(f"queue pair {self.qpn} is for {self.peer}, the parameters are of {remote['host']}")
        wire = self._host.profile.wire
        for key, ours in (("payload_bytes", wire.payload_bytes), ("icrc", wire.icrc)):
            if remote[key] != ours:
                raise MrcError(f"{key} differs: {ours} here, {remote[key]} at {self.peer}")
        if not 1 <= int(remote["mpr"]) <= 255:
            raise MrcError(f"mpr must be 1 to 255, not {remote['mpr']}")
        self.receiver.connect(int(remote["qpn"]), int(remote["psn"]) & PSN_MASK)
        self.state = QpState.RTR
        self.sender.connect(int(remote["qpn"]), int(remote["mpr"]))
        self.state = QpState.RTS

    def post_write(self, payload: Any, remote_address: int, rkey: int, wr_id: int) -> None:
        """Posts an RDMA write of a buffer to the peer's memory; a WorkCompletion with `wr_id` will follow.

        The buffer must stay unchanged until then: packets are sent, and sent again, from where it lies.
        Raises MrcError when the queue pair is not in RTS or the message is 2 GB or longer.
        """
        if self.state is not QpState.RTS:
            raise MrcError(f"queue pair {self.qpn} to {self.peer} is in {self.state.value}, not in RTS")
        self.sender.post(memoryview(payload).cast("B"), remote_address, rkey, wr_id)

    def on_nack(self, reason: int, now: float) -> None:
        """A packet was refused. Without trimming in the fabric only refusals for good and full windows occur."""
        if reason == NackReason.UNEXPECTED_EVENT:
            self.fail("remote_access_error", now)

    def answer_probe(self, probe_id: int, timestamp: int, plane: int) -> None:
        """Answers an EV probe of the peer, always on the control class."""
        wire = self._host.profile.wire
        header = bytearray(BTH_STRUCT.size + EETH_STRUCT.size)
        at = BTH(Opcode.ENDPOINT_RESPONSE, ENDPOINT_QP, probe_id, pkey=wire.pkey).pack_into(header)
        EETH(EndpointOperation.EV_PROBE, timestamp).pack_into(header, at)
        self._context.answer(bytes(header), plane)

    def on_timer(self, now: float) -> None:
        """Runs what is due in all parts."""
        if self.state is not QpState.RTS:
            return
        failure = self.sender.on_timer(now)
        if failure is not None:
            self.fail(failure, now)
            return
        self.prober.on_timer(now, self.receiver.received_packets, self.sender.sent_packets)

    def next_timer(self, now: float) -> float:
        """When `on_timer` must run; infinite when nothing is pending."""
        if self.state is not QpState.RTS:
            return float("inf")
        return min(self.sender.next_timer(now), self.prober.next_timer())

    def fail(self, status: Status, now: float) -> None:
        """Goes to ERROR; every operation completes, so nothing hangs."""
        if self.state is QpState.ERROR:
            return
        self.state = QpState.ERROR
        self.sender.fail(status, now)
        self.destination.queue_pairs -= 1
