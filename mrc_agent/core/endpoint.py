"""The core of one host: batches of datagrams in, batches of datagrams out, no I/O and no clock of its own.

The caller's loop is always the same: ``receive`` what has arrived, in the order of arrival over all planes;
``on_timer``; ``transmit`` until it has nothing more; sleep until ``next_timer`` or the next datagram. Losses are
inferred after a whole batch, so whoever drains the sockets first never sees a stall as a loss.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from mrc_agent.core.counters import new_counters
from mrc_agent.core.datagram import Datagram, TxBatch
from mrc_agent.core.destination import Destination, Peer
from mrc_agent.core.errors import MrcError
from mrc_agent.core.events import EvChanged, Event
from mrc_agent.core.memory import MemoryRegion, MemoryTable
from mrc_agent.core.ports import Ports
from mrc_agent.core.queue_pair import Host, Outgoing, QpState, QueuePair
from mrc_agent.profile import Profile
from mrc_agent.wire.data import DATA, DATA_WITHOUT_TIMESTAMP, IMMEDIATE_BYTES, SACK_BODY, UDP_IPV6_BYTES
from mrc_agent.wire.headers import (
    AETH,
    BTH,
    BTH_STRUCT,
    EETH_STRUCT,
    ERTH,
    ERTH_STRUCT,
    NETH,
    NETH_STRUCT,
    PETH,
    PETH_STRUCT,
    TIMESTAMP_BIT,
    TSETH_STRUCT,
    WORD_STRUCT,
)
from mrc_agent.wire.icrc import ICRC_BYTES, icrc_holds
from mrc_agent.wire.opcodes import (
    ENDPOINT_QP,
    FIRST_WRITE,
    IMMEDIATE_WRITES,
    LAST_WRITE,
    EndpointOperation,
    Opcode,
)
from mrc_agent.wire.sequence import PSN_MASK

_LEAST_BYTES = BTH_STRUCT.size + ICRC_BYTES
_QUANTUM = 16  # packets that one queue pair may send before the next has its turn
_FIRST_QPN = 0x10  # below are well-known numbers


class Endpoint:
    """All queue pairs and memory of one host.

    Attributes:
        counters: see ``counters.py``.
        queue_pairs: by local number.
        destinations: by name of the peer.
    """

    def __init__(self, name: str, planes: Sequence[int], profile: Profile, seed: int) -> None:
        """`planes`: numbers of the local planes; their positions are what the core counts planes by."""
        self._rng = Random(f"{name}/{seed}")
        self._events: list[Event] = []
        self._ev_events: list[EvChanged] = []
        self._outbox: list[Outgoing] = []
        self._timer_at = float("-inf")
        self._probe_id = 0
        self._probes: dict[int, int] = {}  # probe id -> local queue pair
        self.profile = profile
        self.memory = MemoryTable(self._rng)
        self.counters = new_counters()
        self._ports = Ports(len(planes), profile.wire)
        self._host = Host(
            name,
            tuple(planes),
            profile,
            self.memory,
            self.counters,
            self._events,
            self._ev_events,
            self._outbox,
            self._ports,
            self._new_probe_id,
        )
        self.queue_pairs: dict[int, QueuePair] = {}
        self.destinations: dict[str, Destination] = {}
        self._by_address: dict[bytes, QueuePair] = {}
        self._round: list[QueuePair] = []
        self._controls: dict[int, tuple[int, Callable[[QueuePair, memoryview, int, int, float, float], None]]] = {
            Opcode.SACK: (SACK_BODY.size, self._on_sack),
            Opcode.ACKNOWLEDGE: (WORD_STRUCT.size, self._on_ack),
            Opcode.NACK: (NETH_STRUCT.size, self._on_nack),
            Opcode.PROBE_REQUEST: (PETH_STRUCT.size, self._on_probe),
        }

    def register(self, buffer: Any) -> MemoryRegion:
        """Registers a writable buffer that peers may write to."""
        return self.memory.register(buffer)

    def create_qp(self, peer: Peer) -> QueuePair:
        """A queue pair to a peer, in INIT. All queue pairs to one peer share its congestion window."""
        destination = self.destinations.get(peer.name)
        if destination is None:
            for position, plane in enumerate(self._host.planes):
                self._ports.learn_rate(position, peer.rates_bps.get(plane, 0))
            destination = Destination(peer, self._host.planes, self.profile, self._ports.allowance_s)
            self.destinations[peer.name] = destination
        elif destination.peer != peer:
            raise MrcError(f"peer {peer.name} was described differently before")
        qpn = _FIRST_QPN + len(self.queue_pairs)
        pair = self.queue_pairs[qpn] = QueuePair(self._host, destination, qpn, Random(self._rng.getrandbits(64)))
        self._round.append(pair)
        for address in destination.addresses:
            if address:
                self._by_address.setdefault(address, pair)
        return pair

    def take_events(self) -> list[Event]:
        """Completions and arrivals since the last call."""
        events = self._events[:]
        self._events.clear()
        return events

    def take_ev_events(self) -> list[EvChanged]:
        """Changes of EV states since the last call."""
        events = self._ev_events[:]
        self._ev_events.clear()
        return events

    def receive(self, batch: Sequence[Datagram], now: float) -> None:
        """Takes datagrams in the order of their arrival over all planes. Never raises because of what they contain."""
        counters = self.counters
        pairs = self.queue_pairs
        with_icrc = self.profile.wire.icrc
        acknowledged: set[QueuePair] = set()
        for data, ev, plane, arrival, source, marked in batch:
            length = len(data)
            if length < _LEAST_BYTES:
                counters["dropped_truncated"] += 1
                continue
            if with_icrc and not icrc_holds(data):
                counters["dropped_bad_icrc"] += 1
                continue
            opcode = data[0]
            pair = pairs.get(int.from_bytes(data[5:8], "big"))
            if pair is None:
                self._on_endpoint_packet(opcode, data, length, plane, arrival, source)
                continue
            if source != pair.addresses[plane]:
                counters["dropped_unknown_peer"] += 1
                continue
            if pair.state is not QpState.RTS:
                counters["dropped_qp_not_ready"] += 1
                continue
            if FIRST_WRITE <= opcode <= LAST_WRITE:
                self._on_data(pair, opcode, data, length, ev, plane, arrival, marked, now)
                continue
            size, handler = self._controls.get(opcode, (0, None))
            if handler is None:
                counters["dropped_unknown_opcode"] += 1
            elif length < _LEAST_BYTES + size:
                counters["dropped_truncated"] += 1
            else:
                handler(pair, data, ev, plane, arrival, now)
                if opcode == Opcode.SACK:
                    acknowledged.add(pair)
        for pair in acknowledged:
            if pair.state is QpState.RTS:
                pair.sender.infer_losses(now)

    def transmit(self, now: float, batches: list[TxBatch]) -> int:
        """Fills the planes' batches with what may be sent now; returns the number of datagrams added.

        Zero means that nothing more can be sent until something arrives, a timer runs out or a batch is emptied.
        """
        self._ports.wake_at = float("inf")
        added = self._transmit_control(now, batches)
        busy = True
        while busy:
            busy = False
            for pair in self._round:
                if pair.state is QpState.RTS:
                    sent = pair.sender.pump(now, batches, _QUANTUM)
                    added += sent
                    busy = busy or sent == _QUANTUM
        if self._round:
            self._round.append(self._round.pop(0))  # another one starts next time
        return added

    def on_timer(self, now: float) -> None:
        """Runs what is due at `now`, as far as the last `next_timer` knew."""
        if now < self._timer_at:
            return
        for pair in self.queue_pairs.values():
            if pair.next_timer(now) <= now:
                pair.on_timer(now)

    def next_timer(self, now: float) -> float:
        """When to call `on_timer`, and `transmit` after it; infinite when nothing is pending."""
        self._timer_at = min([pair.next_timer(now) for pair in self.queue_pairs.values()], default=float("inf"))
        return min(self._timer_at, self._ports.wake_at)

    def _transmit_control(self, now: float, batches: list[TxBatch]) -> int:
        outbox = self._outbox
        held = []
        with_icrc = self.profile.wire.icrc
        for outgoing in outbox:
            header, plane, ev, dscp, address = outgoing
            batch = batches[plane]
            if len(batch.entries) < batch.capacity:
                batch.add_control(header, ev, dscp, address, with_icrc)
                self._ports.charge(plane, len(header) + UDP_IPV6_BYTES + ICRC_BYTES, now)
            else:
                held.append(outgoing)
        added = len(outbox) - len(held)
        outbox[:] = held
        return added

    def _on_data(
        self,
        pair: QueuePair,
        opcode: int,
        data: memoryview,
        length: int,
        ev: int,
        plane: int,
        arrival: float,
        marked: bool,
        now: float,
    ) -> None:
        timestamp = 0
        try:
            if data[8] & TIMESTAMP_BIT:
                _, flags, _, _, tail, _, msn, timestamp, _, address, rkey, total = DATA.unpack_from(data)
                start = DATA.size
            else:
                _, flags, _, _, tail, _, msn, address, rkey, total = DATA_WITHOUT_TIMESTAMP.unpack_from(data)
                start = DATA_WITHOUT_TIMESTAMP.size
        except struct.error:
            self.counters["dropped_truncated"] += 1
            return
        if opcode in IMMEDIATE_WRITES:
            start += IMMEDIATE_BYTES
        end = length - ICRC_BYTES - (flags >> 4 & 3)
        if start > end:
            self.counters["dropped_truncated"] += 1
            return
        pair.prober.start_reverse(now)
        pair.receiver.on_data(
            opcode,
            tail & PSN_MASK,
            bool(tail & 0x80000000),
            bool(tail & 0x20000000),
            msn,
            timestamp,
            address,
            rkey,
            total,
            data[start:end],
            ev,
            plane,
            arrival,
            marked,
            now,
        )

    def _on_sack(self, pair: QueuePair, data: memoryview, ev: int, plane: int, arrival: float, now: float) -> None:
        start, peer_time = BTH_STRUCT.size, -1
        if data[8] & TIMESTAMP_BIT:
            peer_time = data[start] << 8 | data[start + 1]
            start += TSETH_STRUCT.size
            if len(data) < start + SACK_BODY.size + ICRC_BYTES:
                self.counters["dropped_truncated"] += 1
                return
        _, second, ack, entropy, _, _, cack, _, _, offset, bitmap, timestamp, _, _ = SACK_BODY.unpack_from(data, start)
        index = pair.sender.on_sack(
            cack & PSN_MASK,
            offset,
            bitmap,
            ack,
            entropy,
            second >> 5 & 3,
            bool(second & 2),
            timestamp,
            peer_time,
            arrival,
        )
        if index < 0:
            self.counters["dropped_bad_sack"] += 1
            return
        self.counters["sacks_received"] += 1
        pair.reverse.confirm(index, arrival)

    def _on_ack(self, pair: QueuePair, data: memoryview, ev: int, plane: int, arrival: float, now: float) -> None:
        taken = pair.sender.on_ack(AETH.unpack(data, BTH_STRUCT.size).msn, arrival)
        self.counters["acks_received" if taken else "dropped_bad_ack"] += 1

    def _on_nack(self, pair: QueuePair, data: memoryview, ev: int, plane: int, arrival: float, now: float) -> None:
        self.counters["nacks_received"] += 1
        pair.on_nack(NETH.unpack(data, BTH_STRUCT.size).reason, arrival)

    def _on_probe(self, pair: QueuePair, data: memoryview, ev: int, plane: int, arrival: float, now: float) -> None:
        probe = PETH.unpack(data, BTH_STRUCT.size)
        pair.receiver.on_probe(probe.probe_id & 0x7FFF, probe.timestamp, ev, plane, arrival, now)

    def _on_endpoint_packet(
        self, opcode: int, data: memoryview, length: int, plane: int, now: float, source: bytes
    ) -> None:
        """Requests and responses go to the well-known queue pair; the sender's address tells whose they are."""
        bth = BTH.unpack(data)
        if bth.destination_qp != ENDPOINT_QP:
            self.counters["dropped_unknown_qp"] += 1
            return
        pair = self._by_address.get(source)
        if pair is None:
            self.counters["dropped_unknown_peer"] += 1
        elif opcode == Opcode.ENDPOINT_REQUEST:
            if length < _LEAST_BYTES + ERTH_STRUCT.size:
                self.counters["dropped_truncated"] += 1
            elif (request := ERTH.unpack(data, BTH_STRUCT.size)).operation != EndpointOperation.EV_PROBE:
                self.counters["dropped_unknown_opcode"] += 1
            else:
                pair.answer_probe(bth.psn, request.timestamp, plane)
        elif opcode == Opcode.ENDPOINT_RESPONSE:
            asking = self.queue_pairs.get(self._probes.pop(bth.psn & 0xFFFF, -1))
            if length < _LEAST_BYTES + EETH_STRUCT.size:
                self.counters["dropped_truncated"] += 1
            elif asking is None or source not in asking.addresses or not asking.prober.on_answer(bth.psn & 0xFFFF, now):
                self.counters["dropped_unknown_probe"] += 1
        else:
            self.counters["dropped_unknown_opcode"] += 1

    def _new_probe_id(self, qpn: int) -> int:
        self._probe_id = (self._probe_id + 1) & 0xFFFF
        self._probes[self._probe_id] = qpn
        return self._probe_id
