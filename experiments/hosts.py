"""The drivers of all hosts of a cell, seen from the cell: start them, introduce them, read what they tell."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from experiments.cell_spec import BIN_S, CellSpec
from experiments.driver.spec import DriverSpec
from experiments.transports.base import ChannelSpec, HostSpec, PeerSpec, PlanePort
from testbed.errors import TestbedError
from testbed.monitor import ProcessCpu
from testbed.network import Network
from topologies.capacity import mrc_payload_bytes
from topologies.ev import ev_set
from topologies.graph import Fabric
from topologies.rtt import base_rtt_s

CONNECT_DEADLINE_S = 20.0
EVS_PER_PATH = 4


class HostFailed(TestbedError):
    """A host's driver ended, or its transport failed."""


class TransportUnsupported(TestbedError):
    """A host's transport cannot run here; the message is its reason."""


def driver_specs(fabric: Fabric, spec: CellSpec) -> dict[str, DriverSpec]:
    """Each host's part of the cell, for the hosts that send or receive anything."""
    work = spec.workload
    channels = [ChannelSpec(c.id, c.src, c.dst, work.largest(c.id), work.outstanding(c.id)) for c in work.channels]
    specs = {}
    for host in dict.fromkeys(name for pair in work.pairs for name in pair):
        sends = tuple(channel for channel in channels if channel.src == host)
        receives = tuple(channel for channel in channels if channel.dst == host)
        own = {channel.id for channel in sends}
        peers = {channel.dst for channel in sends} | {channel.src for channel in receives}
        per_path = int(spec.options.get("evs_per_path", EVS_PER_PATH))
        specs[host] = DriverSpec(
            transport=spec.transport,
            host=HostSpec(
                name=host,
                seed=spec.seed,
                ports=_plane_ports(fabric, host),
                peers={peer: _peer(fabric, host, peer, per_path) for peer in sorted(peers)},
                sends=sends,
                receives=receives,
                payload_bytes=mrc_payload_bytes(fabric.mtu),
                options=spec.options,
            ),
            messages=tuple(message for message in work.messages if message.channel in own),
            streams=tuple(stream for stream in work.streams if stream.channel in own),
            bin_s=BIN_S,
            payload_seed=spec.seed,
        )
    return specs


def _plane_ports(fabric: Fabric, host: str) -> tuple[PlanePort, ...]:
    ports = []
    for link in fabric.links_of[host]:
        port = link.port_of(host)
        assert port.ipv6 is not None
        ports.append(PlanePort(port.plane, port.interface, port.ipv6, link.params.rate_bps))
    return tuple(ports)


def _peer(fabric: Fabric, host: str, peer: str, evs_per_path: int) -> PeerSpec:
    addresses = {}
    for link in fabric.links_of[peer]:
        port = link.port_of(peer)
        if (host, port.plane) in fabric.host_port and port.ipv6 is not None:
            addresses[port.plane] = port.ipv6
    evs = ev_set(fabric, host, peer, per_path_salts=evs_per_path)
    return PeerSpec(peer, addresses, evs, base_rtt_s(fabric, host, peer))


class _Driver:
    """One host's driver process."""

    def __init__(self, host: str, process: subprocess.Popen[bytes]) -> None:
        self.host = host
        self.process = process
        self.cpu = ProcessCpu(process.pid)
        self.finished = False
        self._pending = b""

    def tell(self, operation: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"op": operation, **fields}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise HostFailed(f"{self.host}: its driver has gone (exit code {self.process.wait()})") from error

    def read(self) -> list[dict[str, Any]]:
        """Events that have arrived. Raises HostFailed when the driver has ended without a result."""
        assert self.process.stdout is not None
        data = self.process.stdout.read1(1 << 20)  # type: ignore[attr-defined]
        if not data:
            code = self.process.wait()
            if not self.finished:
                raise HostFailed(f"{self.host}: its driver ended with code {code}")
            return []
        *lines, self._pending = (self._pending + data).split(b"\n")
        return [json.loads(line) for line in lines]


class Hosts:
    """All drivers of a cell.

    Args:
        selector: the cell's; each driver's pipe is registered with ``self`` handling it.
    """

    def __init__(self, network: Network, specs: dict[str, DriverSpec], logs: Path) -> None:
        self._selector = selectors.DefaultSelector()
        self._drivers: dict[str, _Driver] = {}
        self._specs = specs
        for host, spec in specs.items():
            file = logs / f"{host}.spec.json"
            file.write_text(json.dumps(spec.to_json()))
            log = (logs / f"{host}.log").open("wb")
            command = [sys.executable, "-m", "experiments.driver", str(file)]
            process = network.popen(
                host, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0x100000
            )
            log.close()
            driver = _Driver(host, process)
            self._drivers[host] = driver
            assert process.stdout is not None
            self._selector.register(process.stdout, selectors.EVENT_READ, driver)

    def fileno(self) -> int:
        """A descriptor that is readable when any driver has something to tell."""
        return self._selector.fileno()

    def poll(self, timeout_s: float = 0.0) -> Iterator[tuple[str, dict[str, Any]]]:
        """(host, event) for everything that has arrived; waits at most ``timeout_s`` seconds for the first.

        Raises:
            HostFailed, TransportUnsupported.
        """
        for key, _ in self._selector.select(timeout_s):
            driver: _Driver = key.data
            events = driver.read()
            if not events and driver.finished:
                self._selector.unregister(key.fileobj)
            for event in events:
                if event["event"] == "error":
                    raise HostFailed(f"{driver.host}: {event['reason']}")
                if event["event"] == "unsupported":
                    raise TransportUnsupported(event["reason"])
                driver.finished = driver.finished or event["event"] == "result"
                yield driver.host, event

    def connect(self, check: Callable[[], None]) -> None:
        """Exchange the offers and wait until every host is ready.

        Args:
            check: called often; raises to stop waiting.

        Raises:
            HostFailed: naming the hosts that are not ready after 20 s.
        """
        offers = self._gather("offer", check)
        ends = {
            channel.id: (channel.src, channel.dst)
            for spec in self._specs.values()
            for channel in (*spec.host.sends, *spec.host.receives)
        }
        for host, driver in self._drivers.items():
            theirs = {}
            for channel, (source, target) in ends.items():
                other = target if source == host else source if target == host else None
                offer = offers[other]["offers"].get(str(channel)) if other else None
                if offer is not None:
                    theirs[channel] = offer
            driver.tell("accept", offers=theirs)
        self._gather("ready", check)

    def _gather(self, wanted: str, check: Callable[[], None]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + CONNECT_DEADLINE_S
        while len(found) < len(self._drivers):
            for host, event in self.poll(0.1):
                if event["event"] == wanted:
                    found[host] = event
            check()
            if time.monotonic() > deadline:
                missing = ", ".join(sorted(set(self._drivers) - set(found)))
                raise HostFailed(f"no {wanted} within {CONNECT_DEADLINE_S:g} s from {missing}")
        return found

    def tell_all(self, operation: str, **fields: Any) -> None:
        """Send one request to every driver."""
        for driver in self._drivers.values():
            driver.tell(operation, **fields)

    def cpu_shares(self) -> dict[str, float]:
        """CPU seconds per second of each driver since the last call."""
        return {host: driver.cpu.share() for host, driver in self._drivers.items()}

    def __len__(self) -> int:
        return len(self._drivers)
