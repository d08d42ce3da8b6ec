"""Two agents on real sockets: two network namespaces joined by a veth pair for each plane."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="this machine lacks iproute2"),
]

ROOT = Path(__file__).resolve().parents[3]
HELPER = Path(__file__).with_name("agent_process.py")
PLANES = (1, 2)
DEADLINE_S = 60.0
"""After this the agents are killed, and whoever waits for their words fails."""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Wire:
    """Namespaces of hosts a and b, with a veth pair a-eth<plane> to b-eth<plane> for each plane."""

    def __init__(self, mtu: int) -> None:
        self.names = {host: f"mrctest{os.getpid()}{host}" for host in "ab"}
        self.processes: list[subprocess.Popen[str]] = []
        for name in self.names.values():
            ip("netns", "add", name)
        for plane in PLANES:
            a, b = (f"{host}-eth{plane}" for host in "ab")
            ip("link", "add", a, "mtu", str(mtu), "netns", self.names["a"], "type", "veth", "peer", "name", b,
               "mtu", str(mtu), "netns", self.names["b"])  # fmt: skip
            for host, interface, mac in (("a", a, "02:00:00:00:00:01"), ("b", b, "02:00:00:00:00:02")):
                self.ip(host, "link", "set", interface, "address", mac)
                self.ip(host, "addr", "add", self.address(host, plane) + "/64", "dev", interface, "nodad")
                self.ip(host, "link", "set", interface, "up")
            for host, interface, other, mac in (("a", a, "b", "02:00:00:00:00:02"), ("b", b, "a", "02:00:00:00:00:01")):
                self.ip(host, "neigh", "replace", self.address(other, plane), "lladdr", mac, "dev", interface)

    @staticmethod
    def address(host: str, plane: int) -> str:
        return f"fd00:{plane}::{'ab'.index(host) + 1}"

    def ip(self, host: str, *arguments: str) -> None:
        ip("-n", self.names[host], *arguments)

    def start(self, host: str, **options: Any) -> subprocess.Popen[str]:
        """Starts an agent process and reads its parameters, or its error."""
        other = "b" if host == "a" else "a"
        config = {
            "host": host,
            "seed": 1,
            "planes": [(plane, f"{host}-eth{plane}", self.address(host, plane)) for plane in PLANES],
            "peer": {
                "name": other,
                "addresses": {plane: self.address(other, plane) for plane in PLANES},
                "evs": {plane: [plane << 28 | 0xABC << 16 | 0xC000 | n << 6 for n in range(8)] for plane in PLANES},
            },
            "base_rtt_s": 0.010,
            "rate_bps": 50_000_000,
            "size": 1_000_003,
            "messages": 0,
            **options,
        }
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[host], sys.executable, str(HELPER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.processes.append(process)
        self.tell(process, config)
        return process

    @staticmethod
    def tell(process: subprocess.Popen[str], what: Any) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()

    @staticmethod
    def hear(process: subprocess.Popen[str], key: str) -> dict[str, Any]:
        """The next line that has `key`."""
        assert process.stdout is not None
        for line in process.stdout:
            said: dict[str, Any] = json.loads(line)
            if key in said:
                return said
        raise AssertionError(f"the agent ended without saying {key!r}")

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def close(self) -> None:
        self.kill()
        for process in self.processes:
            process.wait()
        for name in self.names.values():
            ip("netns", "del", name)


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire(4200)
    watchdog = threading.Timer(DEADLINE_S, made.kill)
    watchdog.start()
    try:
        yield made
    finally:
        watchdog.cancel()
        made.close()


def connect(wire: Wire, **options: Any) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """Starts both agents; only a sends, unless the options of b say otherwise."""
    a, b = wire.start("a", **options), wire.start("b", **{**options, "messages": options.get("back", 0)})
    infos = wire.hear(a, "info")["info"], wire.hear(b, "info")["info"]
    wire.tell(b, infos[0])
    wire.tell(a, infos[1])
    return a, b


def stop(wire: Wire, process: subprocess.Popen[str]) -> dict[str, Any]:
    wire.tell(process, "stop")
    return wire.hear(process, "counters")


def test_messages_cross_both_planes_intact_and_evs_survive_the_trip(wire: Wire) -> None:
    messages = 20
    a, b = connect(wire, messages=messages, back=messages)
    for process in (a, b):
        for _ in range(messages):
            wire.hear(process, "completed")
    sums = stop(wire, a), stop(wire, b)
    for here, there in itertools.permutations(sums):
        assert here["statuses"] == ["success"] * messages
        assert there["hashes"] == [here["sent"]] * messages
        assert set(here["counters"]["delivered_bytes"]) == {"b" if here is sums[0] else "a"}
        dropped = {name: n for name, n in here["counters"].items() if name.startswith("dropped") and n}
        assert dropped == {}
        # Every EV in use carried packets and was reflected: source port and flow label arrived as they were sent.
        used = [row for row in here["evs"] if row["sent_packets"]]
        assert len(used) >= 12
        assert all(row["acked_packets"] for row in used)
        by_plane = [sum(row["sent_packets"] for row in here["evs"] if row["plane"] == plane) for plane in PLANES]
        assert abs(by_plane[0] - by_plane[1]) <= 1


def test_a_plane_that_goes_down_in_mid_transfer_loses_no_message(wire: Wire) -> None:
    messages = 60
    a, b = connect(wire, messages=messages)
    for _ in range(10):
        wire.hear(a, "completed")
    wire.ip("b", "link", "set", "b-eth2", "down")
    for _ in range(messages - 10):
        assert wire.hear(a, "completed")["status"] == "success"
    sums = stop(wire, a), stop(wire, b)
    assert sums[1]["hashes"] == [sums[0]["sent"]] * messages
    assert {plane for plane, _, after, _ in sums[0]["ev_events"] if after == "ASSUMED_BAD"} == {2}
    states = {row["state"] for row in sums[0]["evs"] if row["plane"] == 2}
    assert states == {"ASSUMED_BAD"}


def test_an_interface_whose_mtu_is_too_small_is_refused_by_name(wire: Wire) -> None:
    wire.ip("a", "link", "set", "a-eth2", "mtu", "1500")
    error = wire.hear(wire.start("a"), "error")["error"]
    assert "a-eth2" in error
    assert "1500" in error
