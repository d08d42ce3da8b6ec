"""A cell from inside its namespaces: network, proof, traffic and failures. Run as ``python -m experiments.cell SPEC``.

Everything that is measured leaves at once as JSON lines on standard output, so that whatever ends the cell, the
caller already has what was measured. Requests (``stop``) come on standard input.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

from controller.packet import host_packet
from controller.process import ControllerError, ControllerProcess
from controller.routes import compile as compile_routes
from controller.walk import Walker
from experiments.cell_spec import CellSpec, cell_spec
from experiments.hosts import Hosts, TransportUnsupported, driver_specs
from testbed import links
from testbed.errors import MachineLacks, TestbedError
from testbed.monitor import Canary, CpuMonitor, LinkMonitor, ProcessCpu
from testbed.network import Network, loopback_up
from testbed.proof import Proof, ProofError, prove_pairs
from topologies.graph import Fabric
from topologies.load import build, load_topology

CONTROLLER_PORT = 6653
READY_DEADLINE_S = 30.0
LEAD_S = 0.3
MACHINE_SAMPLE_S = 1.0
LINK_SAMPLE_S = 0.2
SAMPLING_SHARE = 0.03
"""Most of the time that reading link counters may take; large fabrics are sampled less often."""


def tell(event: str, **fields: Any) -> None:
    """Send one event to the caller."""
    data = json.dumps({"event": event, **fields}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


class Stopped(Exception):
    """The caller asked the cell to stop, or has gone."""


class Cell:
    """One cell."""

    def __init__(self, spec: CellSpec) -> None:
        self._spec = spec
        self._logs = Path(spec.logs)
        self._fabric: Fabric = build(load_topology(spec.topology))
        self._network = Network(
            self._fabric,
            logs=self._logs,
            controller_port=CONTROLLER_PORT,
            datapath=spec.datapath,
        )
        self._controller = ControllerProcess(
            Path(spec.topology),
            mode=spec.routing,
            framework=spec.framework,
            host="0.0.0.0",
            port=CONTROLLER_PORT,
            convergence_s=spec.convergence_s,
            seed=spec.seed,
            log=self._logs / "controller.log",
        )
        self._hosts: Hosts | None = None
        self._links: LinkMonitor | None = None
        self._cpu = CpuMonitor()
        self._switch_cpu: ProcessCpu | None = None
        self._canary: Canary | None = None
        self._start = 0.0
        self._stop = False

    def run(self) -> None:
        """The whole cell. Raises TestbedError, Stopped."""
        tell("phase", name="network")
        loopback_up()
        self._controller.start()  # first, since it takes as long to start as the network takes to build
        self._network.start()
        self._controller.wait_ready(READY_DEADLINE_S)
        self._check()
        tell("phase", name="proof")
        proof = self._prove()
        self._network.enlarge_buffers()
        tell("network", datapath=self._network.datapath, pairs=proof.pairs, proof_s=proof.seconds)
        tell("phase", name="connecting")
        self._hosts = Hosts(self._network, driver_specs(self._fabric, self._spec), self._logs)
        self._hosts.connect(self._check)
        self._links = LinkMonitor(self._network)
        self._canary = Canary()
        self._traffic(self._hosts, self._links)

    def _prove(self) -> Proof:
        """Every pair reaches each other. Raises TestbedError with the way that the first missing pair should go."""
        try:
            return prove_pairs(self._network)
        except ProofError as error:
            source, target, plane = error.missing[0]
            walker = Walker(self._fabric, compile_routes(self._fabric, self._spec.routing, seed=self._spec.seed))
            walk = walker.walk(host_packet(self._fabric, source, target, plane, "icmp"), source, plane)
            ways = "; or ".join(" > ".join((source, *(hop.into.node for hop in d.hops))) for d in walk.deliveries)
            raise TestbedError(f"{error}; the way from {source} should be {ways}") from error

    def _check(self) -> None:
        """Look after everything that is not traffic. Raises Stopped, TestbedError."""
        while select.select([0], [], [], 0)[0]:
            data = os.read(0, 65536)
            if not data or b'"stop"' in data:
                self._stop = True
                raise Stopped
        dead = self._network.dead()
        if dead:
            raise TestbedError(dead)
        for event in self._controller.events():
            detail = event.get("detail")
            tell("note", at=event["t_mono"], source="controller", kind=event["kind"], name=event["name"], detail=detail)
        if not self._controller.alive():
            tell("note", at=time.monotonic(), source="controller", kind="died", name="controller", detail=None)
            self._controller.restart()
            tell("note", at=time.monotonic(), source="controller", kind="restarted", name="controller", detail=None)

    def _traffic(self, hosts: Hosts, monitor: LinkMonitor) -> None:
        self._start = time.monotonic() + LEAD_S
        hosts.tell_all("start", at=self._start)
        tell("phase", name="traffic")
        tell("start", mono=self._start, unix=time.time() + self._start - time.monotonic())
        self._cpu.idle_share()
        hosts.cpu_shares()
        if self._canary is not None:
            self._canary.lateness_s()
        forwarders = [daemons.forwarder for daemons in self._network.switches.values()]
        self._switch_cpu = ProcessCpu(*(pid for pid in forwarders if pid is not None))
        try:
            self._until_the_end(hosts, monitor)
        except Stopped:
            tell("phase", name="stopping")
        hosts.tell_all("stop")
        self._drain(hosts)
        self._sample_links(monitor)
        hosts.tell_all("quit")
        self._results(hosts)

    def _until_the_end(self, hosts: Hosts, monitor: LinkMonitor) -> None:
        """Failures at their times, samples at theirs, until the duration is over or every host has nothing left."""
        actions = [*self._spec.actions]
        end = self._start + self._spec.duration_s
        next_links = self._start
        next_machine = self._start + MACHINE_SAMPLE_S
        drained: set[str] = set()
        while (now := time.monotonic()) < end and len(drained) < len(hosts):
            action_at = self._start + actions[0].at_s if actions else end
            if actions and now >= action_at:
                self._inject(actions.pop(0))
                continue
            wake = min(action_at, next_links, next_machine, end)
            drained |= self._forward(hosts, max(0.0, min(0.05, wake - now)))
            now = time.monotonic()
            if now >= next_links and (not actions or action_at - now > 0.05):
                cost = self._sample_links(monitor)
                next_links = time.monotonic() + max(LINK_SAMPLE_S, cost / SAMPLING_SHARE)
            if now >= next_machine:
                self._sample_machine(hosts)
                next_machine = now + MACHINE_SAMPLE_S
            self._check()
        if len(drained) == len(hosts):
            tell("finished_early")

    def _forward(self, hosts: Hosts, timeout_s: float) -> set[str]:
        """Pass on what the hosts tell; returns the hosts that have nothing left to send."""
        drained = set()
        for host, event in hosts.poll(timeout_s):
            if event["event"] == "drained":
                drained.add(host)
            else:
                tell("host", host=host, kind=event.pop("event"), **event)
        return drained

    def _inject(self, action: Any) -> None:
        link = self._fabric.link[action.link]
        change = links.change(self._network, link, action.up)
        tell(
            "failure",
            failure=action.failure,
            link=action.link,
            up=action.up,
            planned_s=action.at_s,
            applied=change.applied_mono,
            carrier=list(change.carrier),
        )
        states = links.switch_port_states(self._network, link)
        tell("note", at=time.monotonic(), source="ovs", kind="port_state", name=action.link, detail=states)

    def _sample_links(self, monitor: LinkMonitor) -> float:
        began = time.monotonic()
        rows = [[s.link, s.direction, s.bytes, s.packets, s.drops, s.backlog_bytes] for s in monitor.sample()]
        tell("links", at=began, rows=rows)
        return time.monotonic() - began

    def _sample_machine(self, hosts: Hosts) -> None:
        tell(
            "machine",
            at=time.monotonic(),
            idle=self._cpu.idle_share(),
            hosts=hosts.cpu_shares(),
            switches=self._switch_cpu.share() if self._switch_cpu else 0.0,
            late=self._canary.lateness_s() if self._canary else None,
        )

    def _drain(self, hosts: Hosts) -> None:
        """Wait for messages under way, at most the drain time."""
        tell("phase", name="draining")
        deadline = time.monotonic() + self._spec.drain_s
        drained: set[str] = set()
        while len(drained) < len(hosts) and time.monotonic() < deadline and not self._stop:
            drained |= self._forward(hosts, 0.1)
            self._look_after()

    def _look_after(self) -> None:
        try:
            self._check()
        except Stopped:
            self._stop = True

    def _results(self, hosts: Hosts) -> None:
        have = 0
        deadline = time.monotonic() + 10.0
        while have < len(hosts) and time.monotonic() < deadline:
            for host, event in hosts.poll(0.1):
                kind = event.pop("event")
                have += kind == "result"
                if kind != "drained":
                    tell("host", host=host, kind=kind, **event)
        if have < len(hosts):
            raise TestbedError(f"results from {have} of {len(hosts)} hosts only")

    def close(self) -> None:
        """Stop the controller; the rest goes with the namespaces."""
        self._controller.stop()

    @property
    def stopped(self) -> bool:
        """Whether the caller asked to stop."""
        return self._stop


def main(path: str) -> int:
    """Run the cell; the last event is ``done``, with the status and, unless done, the reason."""
    spec = cell_spec(json.loads(Path(path).read_text()))
    try:
        cell = Cell(spec)
        cell.run()
        tell("done", status="interrupted" if cell.stopped else "done", reason=None)
    except Stopped:
        tell("done", status="interrupted", reason="stopped by the user")
    except TransportUnsupported as error:
        tell("done", status="unsupported", reason=str(error))
    except MachineLacks as error:
        tell("done", status="machine_lacks", reason=str(error))
    except (TestbedError, ControllerError) as error:
        tell("done", status="failed", reason=str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
