"""Hostile, broken and stale packets: counted by name and dropped; no traceback, no write, no change of state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_agent.core.queue_pair import QpState, QueuePair
from mrc_agent.lab.fabric import Fabric, Plan
from mrc_agent.lab.network import LabHost
from mrc_agent.profile import Profile, WireProfile
from mrc_agent.wire.data import DATA
from mrc_agent.wire.headers import AETH, BTH, EETH, ERTH, NETH, PETH, SETH
from mrc_agent.wire.icrc import ICRC, icrc
from mrc_agent.wire.opcodes import ENDPOINT_QP, Opcode

SIZE = 8192


class Victim:
    """Host h2 of a connected pair, with one region, and ways to throw packets at it."""

    def __init__(self, with_icrc: bool = True) -> None:
        self.fabric = Fabric(Plan(planes=2, leaves=1, hosts_per_leaf=3), 1, Profile(WireProfile(icrc=with_icrc)))
        self.host: LabHost = self.fabric.hosts["h2"]
        self.around = bytearray(3 * SIZE)
        self.memory = memoryview(self.around)[SIZE : 2 * SIZE]
        self.region = self.host.endpoint.register(self.memory)
        attacker, self.qp = self.fabric.connect("h1", "h2")
        self.first_psn = attacker.sender.outstanding.next
        self.ev = attacker.evs.values[0]
        self.source = self.fabric.hosts["h1"].addresses[0]

    def write(self, **changes: Any) -> bytes:
        """A packet that would be taken, but for the changes."""
        fields: dict[str, Any] = {
            "opcode": int(Opcode.WRITE_ONLY),
            "flags": 0,
            "pkey": 0xFFFF,
            "qp": self.qp.qpn,
            "psn": self.first_psn & 0xFFFFFF,
            "bits": 0x90,
            "address": self.region.address,
            "rkey": self.region.rkey,
            "length": 4,
            "payload": b"\xff" * 4,
            **changes,
        }
        header = DATA.pack(
            fields["opcode"],
            fields["flags"],
            fields["pkey"],
            fields["qp"],
            fields["bits"] << 24 | fields["psn"],
            0,
            fields.get("msn", 0),
            0,
            0x8001,
            fields["address"],
            fields["rkey"],
            fields["length"],
        )
        return seal(header + fields["payload"])

    def control(self, opcode: Opcode, *headers: Any, qp: int | None = None) -> bytes:
        buffer = bytearray(128)
        at = BTH(opcode, self.qp.qpn if qp is None else qp, 0).pack_into(buffer)
        for header in headers:
            at += header.pack_into(buffer, at)
        return seal(bytes(buffer[:at]))

    def throw(self, packet: bytes, source: bytes | None = None, plane: int = 0) -> None:
        datagram = (memoryview(packet), self.ev, plane, 1.0, source or self.source, False)
        self.host.endpoint.receive([datagram], 1.0)

    def counted(self) -> dict[str, int]:
        return {name: n for name, n in self.host.endpoint.counters.items() if n and name.startswith("dropped")}


def seal(packet: bytes) -> bytes:
    return packet + ICRC.pack(icrc(packet))


def state(qp: QueuePair) -> tuple[Any, ...]:
    out, receiver = qp.sender.outstanding, qp.receiver
    return (
        qp.state,
        out.una,
        out.next,
        receiver.cack,
        receiver.received_packets,
        tuple(receiver.delivered),
        tuple(qp.evs.state),
        qp.destination.nscc.cwnd,
        qp.destination.nscc.inflight,
    )


def test_the_packet_of_these_tests_would_be_taken() -> None:
    victim = Victim()
    victim.throw(victim.write())
    assert victim.counted() == {}
    assert victim.memory[:4] == b"\xff" * 4


CASES: dict[str, tuple[str, Callable[[Victim], bytes]]] = {
    "empty": ("dropped_truncated", lambda v: b""),
    "header cut": ("dropped_truncated", lambda v: seal(v.write()[:30])),
    "padding longer than payload": ("dropped_truncated", lambda v: v.write(payload=b"", length=0, flags=0x30)),
    "bad check": ("dropped_bad_icrc", lambda v: v.write()[:-1] + b"\0"),
    "unknown opcode": ("dropped_unknown_opcode", lambda v: v.control(Opcode(0xC6) - 1)),  # type: ignore[arg-type]
    "unknown QP": ("dropped_unknown_qp", lambda v: v.write(qp=0x999)),
    "wrong rkey": ("dropped_bad_rkey", lambda v: v.write(rkey=v.region.rkey ^ 1)),
    "below the region": ("dropped_out_of_region", lambda v: v.write(address=v.region.address - 1)),
    "beyond the region": ("dropped_out_of_region", lambda v: v.write(address=v.region.address + SIZE - 3)),
    "address wraps": ("dropped_out_of_region", lambda v: v.write(address=(1 << 64) - 2)),
    "PSN beyond the window": (
        "dropped_psn_out_of_window",
        lambda v: v.write(psn=(v.first_psn + 1023) & 0xFFFFFF),
    ),
    "payload longer than message": ("dropped_length_mismatch", lambda v: v.write(length=3)),
    "empty middle packet": (
        "dropped_length_mismatch",
        lambda v: v.write(opcode=int(Opcode.WRITE_MIDDLE), payload=b""),
    ),
    "SACK cut": ("dropped_truncated", lambda v: v.control(Opcode.SACK)),
    "SACK of what was never sent": (
        "dropped_bad_sack",
        lambda v: v.control(
            Opcode.SACK, SETH(0, v.qp.evs.values[0], v.qp.sender.outstanding.next + 5, 8, 1, 0), AETH(0, 0), AETH(0, 0)
        ),
    ),
    "SACK bit of what was never sent": (
        "dropped_bad_sack",
        lambda v: v.control(
            Opcode.SACK,
            SETH(0, v.qp.evs.values[0], v.qp.sender.outstanding.next - 1, 8, 1, 2),
            AETH(0, 0),
            AETH(0, 0),
        ),
    ),
    "SACK with a foreign EV": (
        "dropped_bad_sack",
        lambda v: v.control(
            Opcode.SACK, SETH(0, 0xDEAD, v.qp.sender.outstanding.next - 1, 8, 1, 0), AETH(0, 0), AETH(0, 0)
        ),
    ),
    "acknowledgement of what was never sent": (
        "dropped_bad_ack",
        lambda v: v.control(Opcode.ACKNOWLEDGE, AETH(0x1F, 3)),
    ),
    "NACK cut": ("dropped_truncated", lambda v: v.control(Opcode.NACK)),
    "answer nobody waits for": (
        "dropped_unknown_probe",
        lambda v: v.control(Opcode.ENDPOINT_RESPONSE, EETH(1), qp=ENDPOINT_QP),
    ),
    "endpoint request cut": ("dropped_truncated", lambda v: v.control(Opcode.ENDPOINT_REQUEST, qp=ENDPOINT_QP)),
    "data to the endpoint QP": ("dropped_unknown_opcode", lambda v: v.write(qp=ENDPOINT_QP)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_packet_is_counted_by_name_and_changes_nothing(name: str) -> None:
    counter, make = CASES[name]
    victim = Victim()
    before = state(victim.qp)
    victim.throw(make(victim))
    assert victim.counted() == {counter: 1}
    assert not any(victim.memory)
    assert state(victim.qp) == before


@pytest.mark.parametrize("kind", ["write", "sack", "ack", "nack", "probe", "request"])
def test_packets_from_a_host_that_is_not_the_peer_are_dropped(kind: str) -> None:
    victim = Victim()
    before = state(victim.qp)
    out = victim.qp.sender.outstanding
    packets = {
        "write": victim.write(),
        "sack": victim.control(
            Opcode.SACK, SETH(0, victim.qp.evs.values[0], out.next - 1, 8, 1, 0), AETH(0, 0), AETH(0, 0)
        ),
        "ack": victim.control(Opcode.ACKNOWLEDGE, AETH(0x1F, 0)),
        "nack": victim.control(Opcode.NACK, NETH(0x19, 0, 0, 0)),
        "probe": victim.control(Opcode.PROBE_REQUEST, PETH(1, 0)),
        "request": victim.control(Opcode.ENDPOINT_REQUEST, ERTH(1), qp=ENDPOINT_QP),
    }
    victim.throw(packets[kind], source=victim.fabric.hosts["h3"].addresses[0])
    victim.throw(packets[kind], plane=1)
    assert victim.counted() == {"dropped_unknown_peer": 2 if kind != "request" else 1}
    assert not any(victim.memory)
    assert state(victim.qp) == before


def test_a_replayed_packet_writes_once() -> None:
    victim = Victim()
    packet = victim.write()
    victim.throw(packet)
    victim.memory[:4] = b"mine"
    before = state(victim.qp)
    victim.throw(packet)
    assert victim.memory[:4] == b"mine"
    assert victim.host.endpoint.counters["duplicate_packets"] == 1
    assert state(victim.qp) == before


def test_a_queue_pair_in_error_takes_nothing() -> None:
    victim = Victim()
    victim.qp.fail("flushed", 0.0)
    victim.throw(victim.write())
    assert victim.counted() == {"dropped_qp_not_ready": 1}
    assert victim.qp.state is QpState.ERROR
    assert not any(victim.memory)


def test_deregistered_memory_is_not_written() -> None:
    victim = Victim()
    victim.host.endpoint.memory.deregister(victim.region)
    victim.throw(victim.write())
    assert victim.counted() == {"dropped_bad_rkey": 1}
    assert not any(victim.memory)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=120), min_size=1, max_size=20), st.integers(0, 1))
def test_random_bytes_never_raise_and_never_write(packets: list[bytes], plane: int) -> None:
    victim = Victim(with_icrc=False)
    for packet in packets:
        victim.throw(packet, victim.fabric.hosts["h1"].addresses[plane], plane)
    assert not any(victim.memory)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_packets_of_every_kind_never_raise_and_write_only_inside_the_region(data: st.DataObject) -> None:
    victim = Victim(with_icrc=False)
    out = victim.qp.sender.outstanding
    kinds = [
        victim.write(),
        victim.control(Opcode.SACK, SETH(0, victim.qp.evs.values[0], out.next, 8, 1, 0), AETH(0, 0), AETH(0, 0)),
        victim.control(Opcode.ACKNOWLEDGE, AETH(0x1F, 0)),
        victim.control(Opcode.NACK, NETH(1, 0, 0, 0)),
        victim.control(Opcode.PROBE_REQUEST, PETH(1, 0)),
        victim.control(Opcode.ENDPOINT_REQUEST, ERTH(1), qp=ENDPOINT_QP),
        victim.control(Opcode.ENDPOINT_RESPONSE, EETH(1), qp=ENDPOINT_QP),
    ]
    for _ in range(data.draw(st.integers(1, 10))):
        packet = bytearray(data.draw(st.sampled_from(kinds)))
        for _ in range(data.draw(st.integers(0, 6))):
            packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
        victim.throw(bytes(packet[: data.draw(st.integers(0, len(packet)))]))
    assert not any(victim.around[:SIZE])
    assert not any(victim.around[2 * SIZE :])
    victim.host.endpoint.on_timer(1.0)
    victim.host.wake()
    victim.fabric.lab.run(1.0)
