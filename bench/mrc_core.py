"""Packets per second of the MRC core in memory: sender side and receiver side, each alone on one core.

    PYTHONPATH=. .venv/bin/python bench/mrc_core.py [--packets N] [--profile sender|receiver]

Two endpoints exchange datagrams in memory. Only CPU time inside the side that is measured counts; moving datagrams from
one side's batches to the other's inbox does not. The sender's time includes its SACKs and acknowledgements, the
receiver's includes copying 4 KB of payload into place and building SACKs. A plain memory copy of the same packets runs
beside it, as a yardstick for the machine.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from time import thread_time

from mrc_agent.core.datagram import Datagram, TxBatch
from mrc_agent.core.destination import Peer
from mrc_agent.core.endpoint import Endpoint
from mrc_agent.profile import Profile, WireProfile

PLANES = (1, 2, 3, 4)
MESSAGE_BYTES = 4 << 20
BATCH = 64
TURN_S = 0.001


def peer(name: str, host: int) -> Peer:
    """Host number `host` of a fabric whose window is 1,023 packets."""
    return Peer(
        name,
        {plane: f"fd00:{plane}::{host}" for plane in PLANES},
        {plane: tuple(plane << 28 | 0xC000 | number << 6 for number in range(32)) for plane in PLANES},
        0.010,
        dict.fromkeys(PLANES, 1_000_000_000),
    )


class Side:
    """An endpoint with a stopwatch."""

    def __init__(self, name: str, profile: Profile) -> None:
        self.endpoint = Endpoint(name, PLANES, profile, 1)
        self.batches = [TxBatch(BATCH) for _ in PLANES]
        self.seconds = 0.0
        self.profiler: cProfile.Profile | None = None

    def turn(self, inbox: list[Datagram], now: float) -> list[tuple[int, bytes, int]]:
        """Takes an inbox, sends what it may, returns the datagrams as (plane, bytes, EV)."""
        out: list[tuple[int, bytes, int]] = []
        if self.profiler:
            self.profiler.enable()
        begin = thread_time()
        self.endpoint.receive(inbox, now)
        self.endpoint.on_timer(now)
        self.endpoint.take_events()
        more = self.endpoint.transmit(now, self.batches)
        self.seconds += thread_time() - begin
        while more:
            if self.profiler:
                self.profiler.disable()
            for plane, batch in enumerate(self.batches):
                out.extend((plane, batch.datagram(slot), entry[4]) for slot, entry in enumerate(batch.entries))
                batch.entries.clear()
            if self.profiler:
                self.profiler.enable()
            begin = thread_time()
            more = self.endpoint.transmit(now, self.batches)
            self.seconds += thread_time() - begin
        if self.profiler:
            self.profiler.disable()
        return out


def run(packets: int, icrc: bool, profiled: str = "") -> dict[str, float]:
    """Packets per second of both sides; raises RuntimeError when the exchange was not clean."""
    profile = Profile(WireProfile(icrc=icrc))
    sides = {"sender": Side("h1", profile), "receiver": Side("h2", profile)}
    if profiled:
        sides[profiled].profiler = cProfile.Profile()
    here, there = sides["sender"], sides["receiver"]
    region = there.endpoint.register(bytearray(MESSAGE_BYTES))
    qp = here.endpoint.create_qp(peer("h2", 2))
    other = there.endpoint.create_qp(peer("h1", 1))
    qp.connect(other.local_info())
    other.connect(qp.local_info())
    payload = bytes(MESSAGE_BYTES)
    for number in range(packets * 4096 // MESSAGE_BYTES):
        qp.post_write(payload, region.address, region.rkey, number)
    total = packets * 4096 // MESSAGE_BYTES * (MESSAGE_BYTES // 4096)
    addresses = {"sender": other.addresses, "receiver": qp.addresses}
    now = 1.0
    inbox: list[Datagram] = []
    while there.endpoint.counters["received_packets"] < total:
        now += TURN_S
        sent = here.turn(inbox, now)
        if not sent:
            raise RuntimeError("the sender is stuck")
        now += TURN_S
        inbox = [(memoryview(data), ev, plane, now, addresses["sender"][plane], False) for plane, data, ev in sent]
        back = there.turn(inbox, now)
        inbox = [(memoryview(data), ev, plane, now, addresses["receiver"][plane], False) for plane, data, ev in back]
    if here.endpoint.counters["retransmitted_packets"]:
        raise RuntimeError("packets were lost in memory")
    for side in sides.values():
        if side.profiler:
            pstats.Stats(side.profiler).sort_stats("tottime").print_stats(14)
    return {name: total / side.seconds for name, side in sides.items()}


def copies_per_second(count: int) -> float:
    """4 KB slices copied between two buffers in a second."""
    source, sink = memoryview(bytes(4096)), memoryview(bytearray(4 << 20))
    begin = thread_time()
    for number in range(count):
        at = number % 1024 * 4096
        sink[at : at + 4096] = source
    return count / (thread_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--profile", choices=["sender", "receiver"], default="")
    arguments = parser.parse_args()
    yardstick = copies_per_second(arguments.packets)
    print(f"{'':26}{'packets/s':>12}{'us/packet':>11}{'share of plain copies':>24}")
    print(f"{'copy of 4 KB':26}{yardstick:12,.0f}{1e6 / yardstick:11.2f}{1:24.3f}")
    for icrc in (False, True):
        for name, rate in run(arguments.packets, icrc, arguments.profile).items():
            label = f"{name}, ICRC {'on' if icrc else 'off'}"
            print(f"{label:26}{rate:12,.0f}{1e6 / rate:11.2f}{rate / yardstick:24.3f}")


if __name__ == "__main__":
    main()
