"""A small fabric of real Open vSwitch bridges and hosts, and what to do with it. Runs inside namespaces of its own.

``python ovs_lab.py SCENARIO FRAMEWORK MODE FOLDER``; prints what it saw as one JSON document. Started by
``test_real_ovs.py``, which says what is expected.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controller.packet import Packet, host_packet
from controller.process import ControllerError, ControllerProcess
from controller.routes import compile
from controller.walk import Walker
from topologies.ev import EvLayout, path_of
from topologies.graph import Fabric, Link
from topologies.load import load_fabric

DEADLINE_S = 20.0
CONVERGENCE_S = 0.3
CONTROLLER_PORT = 6653
TRAFFIC_PORT = 4791
TOPOLOGY = "version: 1\nkind: leaf_spine\nleaves: 2\nspines: 2\nhosts_per_leaf: 1\n"
CLONE_NEWNET = 0x4000_0000


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE_S).stdout


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {DEADLINE_S:g} s: {what}")
        time.sleep(0.01)


@contextmanager
def inside(host: str) -> Iterator[None]:
    """Sockets made in here belong to the host's network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as ours, Path(f"/run/netns/{host}").open() as theirs:
        if libc.setns(theirs.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(ours.fileno(), CLONE_NEWNET)


class Stream:
    """Numbered packets from one host to another, one each millisecond, until stopped."""

    def __init__(self, lab: Lab, source: str, target: str, source_port: int) -> None:
        with inside(source):
            self._out = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        with inside(target):
            self._in = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self._in.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._out.bind(("::", source_port))
        self._in.bind(("::", TRAFFIC_PORT))
        self._address = (lab.fabric.host_port[(target, 1)].ipv6, TRAFFIC_PORT)
        self._stop = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._send, daemon=True)

    def _send(self) -> None:
        while not self._stop.wait(0.001):
            self._out.sendto(self.sent.to_bytes(4, "big"), self._address)
            self.sent += 1

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def received(self) -> int:
        """Packets that have arrived so far; the last ones get half a second."""
        self._in.settimeout(0.5)
        seen = set()
        try:
            while True:
                seen.add(self._in.recv(16))
        except TimeoutError:
            return len(seen)


class Lab:
    """The network and its controller."""

    def __init__(self, framework: str, mode: str, folder: Path) -> None:
        self.folder = folder
        file = folder / "topology.yaml"
        file.write_text(TOPOLOGY)
        self.fabric: Fabric = load_fabric(file)
        self.mode = mode
        self.controller = ControllerProcess(
            file,
            mode=mode,
            framework=framework,
            port=CONTROLLER_PORT,
            convergence_s=CONVERGENCE_S,
            log=folder / "controller.log",
        )
        self.events: list[dict[str, Any]] = []
        self._start_ovs()
        for link in self.fabric.links:
            self._wire(link)
        for switch in self.fabric.switches:
            self.add_bridge(switch.name)

    def _start_ovs(self) -> None:
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        Path("/run/openvswitch").mkdir()
        run("ip", "link", "set", "lo", "up")
        run("ovsdb-tool", "create", "/run/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
        daemon = ("--pidfile", "--detach")
        remote = "--remote=punix:/run/openvswitch/db.sock"
        run("ovsdb-server", "/run/conf.db", remote, *daemon, "--log-file=/run/db.log")
        run("ovs-vsctl", "--no-wait", "init")
        run("ovs-vswitchd", *daemon, "--log-file=/run/switch.log")

    def _wire(self, link: Link) -> None:
        host, switch = link.a, link.b
        run("ip", "link", "add", host.interface, "type", "veth", "peer", "name", switch.interface)
        run("ip", "link", "set", switch.interface, "up")
        if host.mac is None:
            run("ip", "link", "set", host.interface, "up")
            return
        run("ip", "netns", "add", host.node)
        run("ip", "link", "set", host.interface, "netns", host.node, "address", host.mac)
        here = ("ip", "-n", host.node)
        run("ip", "netns", "exec", host.node, "ethtool", "-K", host.interface, "tx", "off")
        run(*here, "link", "set", host.interface, "up")
        run(*here, "address", "add", f"{host.ipv6}/32", "dev", host.interface, "nodad")
        for other in self.fabric.host_port.values():
            if other.node != host.node:
                run(*here, "neigh", "add", str(other.ipv6), "lladdr", str(other.mac), "dev", host.interface)

    def add_bridge(self, name: str) -> None:
        dpid = self.fabric.node[name].dpid
        command = ["ovs-vsctl", "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "fail_mode=secure"]
        command += ["protocols=OpenFlow13,OpenFlow15", f"other-config:datapath-id={dpid:016x}"]
        for link in self.fabric.links_of[name]:
            port = link.port_of(name)
            command += ["--", "add-port", name, port.interface]
            command += ["--", "set", "interface", port.interface, f"ofport_request={port.number}"]
        target = f'target="tcp:127.0.0.1:{CONTROLLER_PORT}"'
        command += ["--", "--id=@c", "create", "controller", target, "max_backoff=1000"]
        command += ["--", "set", "bridge", name, "controller=@c"]
        run(*command)

    def ready(self) -> None:
        self.controller.start()
        self.controller.wait_ready(DEADLINE_S)

    def wait_event(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Waits for the count-th event of a kind since the last ``events.clear()``."""
        found: list[dict[str, Any]] = []

        def come() -> bool:
            self.events += self.controller.events()
            found[:] = [event for event in self.events if event["kind"] == kind]
            return len(found) >= count

        until(come, f"{count} events {kind}; there were {[event['kind'] for event in self.events]}")
        return found[count - 1]

    def flows(self, name: str) -> list[str]:
        dump = run("ovs-ofctl", "-O", "OpenFlow15", "--no-stats", "dump-flows", name).splitlines()
        return [line.strip() for line in dump if "actions=" in line]

    def groups(self, name: str) -> list[str]:
        dump = run("ovs-ofctl", "-O", "OpenFlow15", "dump-groups", name).splitlines()
        return [line.strip() for line in dump if "group_id=" in line]

    def matches_program(self, failed: frozenset[str] = frozenset()) -> bool:
        """Every switch holds as many flows and groups as the program says, all of one generation or later."""
        program = compile(self.fabric, self.mode, seed=1, failed_links=failed)
        return all(
            len(self.flows(switch.name)) == len(switch.flows) and len(self.groups(switch.name)) == len(switch.groups)
            for switch in program.switches
        )

    def set_link(self, name: str, state: str) -> None:
        run("ip", "link", "set", self.fabric.link[name].a.interface, state)

    def link_taken(self, packet: Packet) -> str:
        """The link to a spine that Open vSwitch would send a packet from h1 over."""
        fields = f"in_port=1,dl_src=02:01:00:01:00:01,dl_dst=02:01:00:02:00:01,udp6,udp_src={packet.src_port}"
        addresses = [socket.inet_ntop(socket.AF_INET6, address) for address in (packet.ip_src, packet.ip_dst)]
        fields += f",udp_dst={packet.dst_port},ipv6_src={addresses[0]},ipv6_dst={addresses[1]}"
        trace = run("ovs-appctl", "ofproto/trace", "leaf1", fields)
        found = re.findall(r"output:(\d+)", trace)
        return next(link.name for link in self.fabric.links_of["leaf1"] if link.a.number == int(found[0]))


def install(lab: Lab) -> dict[str, Any]:
    """Start, read back, and see that packets arrive."""
    lab.ready()
    with Stream(lab, "h1", "h2", 50000) as stream:
        time.sleep(0.3)
    lab.wait_event("ready")
    return {
        "listening": lab.wait_event("listening")["detail"],
        "matches": lab.matches_program(),
        "flows": lab.flows("leaf1"),
        "groups": lab.groups("leaf1"),
        "sent": stream.sent,
        "received": stream.received(),
    }


def failure(lab: Lab) -> dict[str, Any]:
    """Cut the link that a stream uses, let the controller react, restore it."""
    lab.ready()
    lab.controller.events()
    walker = Walker(lab.fabric, compile(lab.fabric, lab.mode, seed=1))
    packet = host_packet(lab.fabric, "h1", "h2", 1, "udp", 50000, TRAFFIC_PORT)
    used = walker.walk(packet, "h1", 1).paths[0][1]
    seen: dict[str, Any] = {"used": used}
    with Stream(lab, "h1", "h2", 50000) as stream:
        time.sleep(0.2)
        lab.set_link(used, "down")
        reroute = lab.wait_event("reroute")
        down = lab.wait_event("port_down")
        sent = stream.sent
        time.sleep(0.3)
        seen["after_reroute_sent"] = stream.sent - sent
        seen["matches_rerouted"] = lab.matches_program(frozenset({used}))
        lab.set_link(used, "up")
        lab.wait_event("reroute", 2)
        seen["matches_restored"] = lab.matches_program()
    seen["delay_s"] = reroute["t_mono"] - down["t_mono"]
    seen["reroute"] = reroute["detail"]
    seen["lost"] = stream.sent - stream.received()
    seen["kinds"] = [event["kind"] for event in lab.events]
    return seen


def killed(lab: Lab) -> dict[str, Any]:
    """SIGKILL the controller under traffic, leave rubbish on a switch, restart."""
    lab.ready()
    lab.controller.events()
    generation = {re.findall(r"cookie=(0x\w+)", flow)[0] for flow in lab.flows("leaf1")}
    seen: dict[str, Any] = {}
    with Stream(lab, "h1", "h2", 50000) as stream:
        time.sleep(0.2)
        assert lab.controller.pid is not None
        os.kill(lab.controller.pid, signal.SIGKILL)
        until(lambda: not lab.controller.alive(), "the controller's end")
        run("ovs-ofctl", "-O", "OpenFlow15", "add-flow", "leaf1", "cookie=0x7,priority=9,in_port=9,actions=drop")
        run("ovs-ofctl", "-O", "OpenFlow15", "add-group", "leaf1", "group_id=77,type=all,bucket=actions=output:1")
        before = stream.sent
        time.sleep(0.5)
        seen["sent_without_controller"] = stream.sent - before
        lab.controller.restart()
        lab.controller.wait_ready(DEADLINE_S)
        lab.wait_event("ready")
        seen["resync_s"] = lab.wait_event("ready")["t_mono"] - lab.wait_event("listening")["t_mono"]
        seen["matches"] = lab.matches_program()
        time.sleep(0.2)
    seen["new_generation"] = all(old not in flow for flow in lab.flows("leaf1") for old in generation)
    everything = lab.flows("leaf1") + lab.groups("leaf1")
    seen["rubbish"] = [line for line in everything if "in_port=9" in line or "=77," in line]
    seen["lost"] = stream.sent - stream.received()
    return seen


def restart_in_failure(lab: Lab) -> dict[str, Any]:
    """Restart the controller while a link is down: a stream that was routed around it must not notice."""
    lab.ready()
    lab.controller.events()
    cut = "leaf1-spine1"
    lab.set_link(cut, "down")
    lab.wait_event("reroute")
    with Stream(lab, "h1", "h2", 50000) as stream:
        time.sleep(0.2)
        lab.events.clear()
        lab.controller.restart()
        lab.wait_event("synced", len(lab.fabric.switches))
        matches = lab.matches_program(frozenset({cut}))
        time.sleep(0.2)
    return {"matches": matches, "lost": stream.sent - stream.received(), "missing": lab.controller.missing()}


def prediction(lab: Lab) -> dict[str, Any]:
    """Compare the predicted way of many flows with what Open vSwitch says."""
    lab.ready()
    walker = Walker(lab.fabric, compile(lab.fabric, lab.mode, seed=1))
    wrong = []
    taken: dict[str, int] = {}
    for number in range(60):
        packet = host_packet(lab.fabric, "h1", "h2", 1, "udp", 49152 + 131 * number, TRAFFIC_PORT)
        walk = walker.walk(packet, "h1", 1)
        link = lab.link_taken(packet)
        taken[link] = taken.get(link, 0) + 1
        if not walk.exact or walk.paths[0][1] != link:
            wrong.append(packet.src_port)
    return {"wrong": wrong, "taken": taken}


def pinned(lab: Lab) -> dict[str, Any]:
    """In disjoint mode, compare the path that an EV names with what Open vSwitch does."""
    lab.ready()
    wrong = []
    for path in (0, 1):
        for salt in (0, 17, 63):
            ev = EvLayout(1, path, salt).encode()
            packet = host_packet(lab.fabric, "h1", "h2", 1, "udp", ev & 0xFFFF, TRAFFIC_PORT)
            if lab.link_taken(packet) != path_of(lab.fabric, "h1", "h2", ev).links[1]:
                wrong.append(ev)
    return {"wrong": wrong}


def reboot(lab: Lab) -> dict[str, Any]:
    """A bridge vanishes with all its flows and comes back."""
    lab.ready()
    lab.controller.events()
    run("ovs-vsctl", "del-br", "spine1")
    lab.wait_event("switch_down")
    lab.add_bridge("spine1")
    lab.wait_event("synced")
    until(lambda: len(lab.flows("spine1")) > 0, "flows on spine1")
    return {"matches": lab.matches_program(), "kinds": [event["kind"] for event in lab.events]}


def old_version(lab: Lab) -> dict[str, Any]:
    """A bridge that speaks OpenFlow 1.0 only."""
    run("ovs-vsctl", "set", "bridge", "spine1", "protocols=OpenFlow10")
    lab.controller.start()
    try:
        lab.controller.wait_ready(DEADLINE_S)
    except ControllerError as error:
        return {"error": str(error)}
    return {"error": None}


SCENARIOS: dict[str, Callable[[Lab], dict[str, Any]]] = {
    scenario.__name__: scenario
    for scenario in (install, failure, killed, restart_in_failure, prediction, pinned, reboot, old_version)
}


def main() -> None:
    scenario, framework, mode, folder = sys.argv[1:]
    lab = Lab(framework, mode, Path(folder))
    print(json.dumps(SCENARIOS[scenario](lab)))


if __name__ == "__main__":
    main()
