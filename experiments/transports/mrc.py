"""MRC: one queue pair for each channel; each message is one RDMA write into a slot of the receiver's memory.

A channel has as many slots as it may have messages under way. The receiver looks at a message before it lets the
agent go on, so a slot is free again as soon as its message is acknowledged.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.transports.base import (
    ChannelSpec,
    Delivered,
    Event,
    Failed,
    HostSpec,
    Note,
    Sent,
    Transport,
    UnsupportedTransport,
)
from mrc_agent.agent import (
    Agent,
    AgentConfig,
    MemoryRegion,
    MessageArrived,
    MrcError,
    Peer,
    PlaneInterface,
    Profile,
    QueuePair,
    WorkCompletion,
)


@dataclass
class _Outgoing:
    """The sending end of a channel. ``waiting`` holds messages for which no slot is free."""

    pair: QueuePair
    slot_bytes: int
    free: deque[int]
    base: int = 0
    rkey: int = 0
    waiting: deque[tuple[int, memoryview]] = field(default_factory=deque)
    slot_of: dict[int, int] = field(default_factory=dict)


@dataclass
class _Incoming:
    """The receiving end of a channel, with its memory."""

    pair: QueuePair
    channel: ChannelSpec
    buffer: bytearray
    region: MemoryRegion


class MrcTransport(Transport):
    """All queue pairs of one host.

    Options:
        udp_port: destination port of all packets.
        evs_per_path: how many EVs name each path (read by the runner, which makes the EV sets).
    """

    def __init__(self, host: HostSpec) -> None:
        self._host = host
        profile = Profile()
        profile = replace(profile, wire=replace(profile.wire, payload_bytes=host.payload_bytes))
        planes = tuple(PlaneInterface(port.plane, port.interface, port.ipv6) for port in host.ports)
        port = host.options.get("udp_port")
        try:
            self._agent = Agent(AgentConfig(host.name, planes, udp_port=port, profile=profile, seed=host.seed))
        except MrcError as error:
            raise UnsupportedTransport(str(error)) from error
        self._outgoing: dict[int, _Outgoing] = {}
        self._incoming: dict[int, _Incoming] = {}
        for channel in host.sends:
            pair = self._agent.create_qp(self._peer(channel.dst))
            slots: deque[int] = deque(range(channel.outstanding))
            self._outgoing[channel.id] = _Outgoing(pair, channel.largest, slots)
        for channel in host.receives:
            buffer = bytearray(channel.largest * channel.outstanding)
            region = self._agent.register(buffer)
            pair = self._agent.create_qp(self._peer(channel.src))
            self._incoming[channel.id] = _Incoming(pair, channel, buffer, region)
        self._by_qpn: dict[int, _Outgoing | _Incoming] = {}
        self._by_qpn.update((out.pair.qpn, out) for out in self._outgoing.values())
        self._by_qpn.update((end.pair.qpn, end) for end in self._incoming.values())
        self._connected = False

    def _peer(self, name: str) -> Peer:
        spec = self._host.peers[name]
        rates = {port.plane: port.rate_bps for port in self._host.ports if port.plane in spec.addresses}
        return Peer(
            name=name,
            addresses=dict(spec.addresses),
            evs=dict(spec.evs),
            base_rtt_s=spec.base_rtt_s,
            rates_bps=rates,
        )

    def offers(self) -> dict[int, dict[str, Any]]:
        offers = {channel: {"qp": end.pair.local_info()} for channel, end in self._outgoing.items()}
        for channel, end in self._incoming.items():
            memory = {"address": end.region.address, "rkey": end.region.rkey}
            offers[channel] = {"qp": end.pair.local_info(), "memory": memory}
        return offers

    def accept(self, offers: Mapping[int, dict[str, Any]]) -> None:
        for channel, end in self._incoming.items():
            end.pair.connect(offers[channel]["qp"])
        for channel, out in self._outgoing.items():
            memory = offers[channel]["memory"]
            out.base, out.rkey = int(memory["address"]), int(memory["rkey"])
            out.pair.connect(offers[channel]["qp"])
        self._connected = True

    def ready(self) -> bool:
        return self._connected

    def post(self, channel: int, message: int, data: memoryview) -> None:
        out = self._outgoing[channel]
        out.waiting.append((message, data))
        self._post_waiting(out)

    def _post_waiting(self, out: _Outgoing) -> None:
        while out.waiting and out.free:
            message, data = out.waiting.popleft()
            slot = out.free.popleft()
            out.slot_of[message] = slot
            out.pair.post_write(data, out.base + slot * out.slot_bytes, out.rkey, message)

    def step(self, timeout_s: float) -> list[Event]:
        events: list[Event] = []
        for event in self._agent.step(max(0.0, timeout_s)):
            if isinstance(event, MessageArrived):
                end = self._by_qpn[event.qpn]
                assert isinstance(end, _Incoming)
                start = event.address - end.region.address
                data = memoryview(end.buffer)[start : start + event.length]
                events.append(Delivered(end.channel.id, data, event.time_s))
            else:
                events += self._completed(event)
        for change in self._agent.take_ev_events():
            if "ASSUMED_BAD" in (change.before, change.after):
                name = f"EV {change.ev:#010x} to {change.peer} in plane {change.plane}"
                told = f"{change.before} > {change.after} by {change.cause}"
                events.append(Note("ev_state", name, told, change.time_s))
        return events

    def _completed(self, event: WorkCompletion) -> list[Event]:
        out = self._by_qpn[event.qpn]
        assert isinstance(out, _Outgoing)
        if event.status != "success":
            return [Failed(event.wr_id, event.status)]
        out.free.append(out.slot_of.pop(event.wr_id))
        self._post_waiting(out)
        return [Sent(event.wr_id, event.time_s)]

    def delivered_bytes(self) -> dict[tuple[str, int], int]:
        return self._agent.delivered_bytes()

    def sample(self) -> dict[str, float]:
        if not self._outgoing:
            return {}
        sample = self._agent.sample()
        values = {"cwnd_bytes": float(sample.cwnd_bytes), "inflight_bytes": float(sample.inflight_bytes)}
        return values if math.isnan(sample.rtt_s) else {**values, "rtt_s": sample.rtt_s}

    def ev_rows(self) -> list[dict[str, Any]]:
        return self._agent.ev_table()

    def counters(self) -> dict[str, Any]:
        return self._agent.counters()

    def close(self) -> None:
        self._agent.close()
