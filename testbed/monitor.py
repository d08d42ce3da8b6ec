"""Watch a run: counters of every link end, CPU of the machine and of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.netns import in_network_of
from testbed.network import Network
from testbed.qdisc_counters import QdiscReader

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class LinkSample:
    """Cumulative counters of one direction of a link, taken from the queue at its sending end.

    Attributes:
        direction: ``a>b`` or ``b>a``.
        backlog_bytes: bytes waiting now.
    """

    link: str
    direction: str
    bytes: int
    packets: int
    drops: int
    backlog_bytes: int


class LinkMonitor:
    """Reads the queues of all link ends."""

    def __init__(self, network: Network) -> None:
        self._ends: dict[str, dict[int, tuple[str, str]]] = {}
        self._readers: dict[str, QdiscReader] = {}
        for node in network.fabric.nodes:
            routes = network.routes_of(node.name)
            for link in network.fabric.links_of[node.name]:
                port = link.port_of(node.name)
                (index,) = routes.link_lookup(ifname=port.interface)
                direction = "a>b" if port is link.a else "b>a"
                self._ends.setdefault(node.name, {})[index] = (link.name, direction)
            with in_network_of(network.pid(node.name)):
                self._readers[node.name] = QdiscReader()

    def sample(self) -> list[LinkSample]:
        """Counters of every link in both directions, now. Raises TestbedError."""
        samples = []
        for node, ends in self._ends.items():
            for queue in self._readers[node].read():
                end = ends.get(queue.ifindex)
                if end is not None:
                    samples.append(LinkSample(*end, queue.bytes, queue.packets, queue.drops, queue.backlog_bytes))
        return samples


class Canary:
    """How late a process that sleeps is woken, second by second; see `canary.py`."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "testbed.canary"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._pending = b""

    def lateness_s(self) -> tuple[float, float] | None:
        """(90th percentile, worst) lateness in seconds since the last call; None when there is no news."""
        assert self._process.stdout is not None
        self._pending += self._process.stdout.read() or b""
        *lines, self._pending = self._pending.split(b"\n")
        rows = [[float(word) for word in line.split()[1:]] for line in lines]
        if not rows:
            return None
        return max(row[0] for row in rows), max(row[1] for row in rows)


class CpuMonitor:
    """Idle share of the machine and CPU seconds of processes since the last look."""

    def __init__(self) -> None:
        self._last = self._read()

    @staticmethod
    def _read() -> tuple[int, int]:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return fields[3] + fields[4], sum(fields)

    def idle_share(self) -> float:
        """Share of all CPUs' time spent idle since the last call, 0 to 1. Time that a hypervisor stole is not idle."""
        idle, total = self._read()
        before_idle, before_total = self._last
        self._last = idle, total
        return (idle - before_idle) / max(1, total - before_total)


class ProcessCpu:
    """CPU share of processes together: seconds of CPU per second since the last call; 0 for those that have ended."""

    def __init__(self, *pids: int) -> None:
        self._paths = [Path(f"/proc/{pid}/stat") for pid in pids]
        self._last = self._seconds(), time.monotonic()

    def _seconds(self) -> float:
        total = 0
        for path in self._paths:
            try:
                after_name = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += int(after_name[11]) + int(after_name[12])
        return total / TICKS

    def share(self) -> float:
        """CPU seconds per second since the last call (1.0 = one core)."""
        now, seconds = time.monotonic(), self._seconds()
        before, at = self._last
        self._last = seconds, now
        return max(0.0, seconds - before) / max(1e-6, now - at)
