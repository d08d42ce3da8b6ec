"""A fabric becomes interfaces, hosts and switches. Runs inside the sandbox.

Every host and every switch is a network namespace of its own. A switch reaches the controller over a management link
to the sandbox's own namespace, as real switches do; no packet of the fabric goes there.

The whole fabric is made in a few batches: all veth pairs, all addresses of a host, all rates, all bridges. What was
applied is read back before anyone relies on it.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from testbed import offloads, shaping
from testbed.commands import batch, run
from testbed.errors import MachineLacks, TestbedError
from testbed.mininet_nodes import FabricHost, FabricIntf, FabricLink, FabricNet, FabricSwitch
from testbed.netns import in_network_of
from testbed.ovs import SwitchDaemons, kernel_datapath_available, make_template
from testbed.socket_buffers import enlarge_packet_sockets
from topologies.graph import Fabric, Link, Node, Port

OPEN_FILES = 65536
SEND_BUFFER_BYTES = 256 << 20
RECEIVE_BUFFER_BYTES = 16 << 20
MANAGEMENT = "mgmt"
IPV6_QUIET = {"accept_ra": 0, "autoconf": 0, "router_solicitations": 0, "dad_transmits": 0, "addr_gen_mode": 1}


class Network:
    """The emulated fabric.

    Args:
        fabric: the graph.
        logs: directory for daemons' log files.
        controller_port: TCP port of the controller, which listens on all of the sandbox's addresses.
        datapath: ``user``, ``kernel`` or None for the kernel's where it exists.
    """

    def __init__(self, fabric: Fabric, *, logs: Path, controller_port: int = 6653, datapath: str | None = None) -> None:
        self.fabric = fabric
        self.datapath = datapath or ("kernel" if kernel_datapath_available() else "user")
        self.switches: dict[str, SwitchDaemons] = {}
        self.mininet: Any = None
        self._logs = logs
        self._controller_port = controller_port
        self._routes: dict[str, IPRoute] = {}

    def start(self) -> None:
        """Build everything. Raises TestbedError (MachineLacks for what this machine does not have)."""
        self._check_machine()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
        loopback_up()
        self._start_nodes()
        self._make_links()
        self._configure_hosts()
        self._start_switches()
        self._shape_switch_ports()
        self._read_back_rates()

    def _check_machine(self) -> None:
        if self.datapath == "kernel" and not kernel_datapath_available():
            raise MachineLacks("this kernel has no openvswitch module", "use datapath: user")
        if shaping.needs_netem(link.params for link in self.fabric.links) and not has_netem():
            raise MachineLacks(
                "a link has delay or loss, and this kernel has no netem", "remove delay and loss from the topology"
            )

    def _start_nodes(self) -> None:
        self.mininet = FabricNet(
            topo=None, build=False, controller=None, link=FabricLink, intf=FabricIntf, host=FabricHost
        )
        for node in self.fabric.nodes:
            if node.kind == "host":
                self.mininet.addHost(node.name, ip=None)
            else:
                self.mininet.addSwitch(
                    node.name,
                    cls=FabricSwitch,
                    dpid=f"{node.dpid:016x}",
                    datapath=self.datapath,
                    inNamespace=True,
                )

    def pid(self, node: str) -> int:
        """Process id of the shell of a host or switch, which holds its network namespace."""
        return int(self.mininet[node].pid)

    def _make_links(self) -> None:
        mtu = self.fabric.mtu
        lines = []
        for link in self.fabric.links:
            ends = []
            for port in (link.b, link.a):
                address = f"address {port.mac}" if port.mac else ""
                ends.append(f"netns {self.pid(port.node)} name {port.interface} mtu {mtu} {address}")
            lines.append(f"link add {ends[0]} type veth peer {ends[1]}")
        for number, switch in enumerate(self.fabric.switches):
            inside = f"name {MANAGEMENT} netns {self.pid(switch.name)}"
            lines.append(f"link add name m{number} type veth peer {inside}")
            lines += [f"address add {_management(number, 1)}/30 dev m{number}", f"link set m{number} up"]
        batch("ip", lines)
        for link in self.fabric.links:
            self.mininet.addLink(
                link.a.node,
                link.b.node,
                port1=link.a.number,
                port2=link.b.number,
                intfName1=link.a.interface,
                intfName2=link.b.interface,
            )

    def _configure_hosts(self) -> None:
        for host in self.fabric.hosts:
            ports = [link.port_of(host.name) for link in self.fabric.links_of[host.name]]
            links = self.fabric.links_of[host.name]
            with in_network_of(self.pid(host.name)):
                for key, value in IPV6_QUIET.items():
                    for name in ("default", *(port.interface for port in ports)):
                        _write_ipv6_setting(name, key, value)
                batch("ip", ["link set lo up", *self._address_lines(ports)])
                offloads.switch_off([port.interface for port in ports])
                batch("tc", self._shaping_lines(links, ports))

    def _address_lines(self, ports: Sequence[Port]) -> list[str]:
        """Addresses of one host, and every other host of each plane as a permanent neighbour."""
        lines = []
        for port in ports:
            name = port.interface
            lines += [
                f"link set {name} up",
                f"address add {port.ipv6}/32 dev {name} nodad",
                f"address add {port.ipv4}/16 dev {name}",
            ]
            for other in self.fabric.hosts:
                peer = self.fabric.host_port.get((other.name, port.plane))
                if peer is None or other.name == port.node:
                    continue
                lines += [
                    f"neighbour replace {address} lladdr {peer.mac} dev {name} nud permanent"
                    for address in (peer.ipv6, peer.ipv4)
                ]
        return lines

    def _shaping_lines(self, links: Sequence[Link], ports: Sequence[Port]) -> list[str]:
        lines = []
        for link, port in zip(links, ports, strict=True):
            lines += shaping.tc_lines(port.interface, link.params, self.fabric.mtu)
        return lines

    def _ports_of(self, node: str) -> list[Port]:
        return [link.port_of(node) for link in self.fabric.links_of[node]]

    def _start_switches(self) -> None:
        """Configure each switch's namespace and start its daemons; every step for all switches before the next."""
        template = make_template(self._logs)
        for number, switch in enumerate(self.fabric.switches):
            name = switch.name
            interfaces = [port.interface for port in self._ports_of(name)]
            with in_network_of(self.pid(name)):
                for scope in ("all", "default"):
                    _write_ipv6_setting(scope, "disable_ipv6", 1)
                address = f"address add {_management(number, 2)}/30 dev {MANAGEMENT}"
                batch("ip", [address, *(f"link set {i} up" for i in ("lo", MANAGEMENT, *interfaces))])
                offloads.switch_off(interfaces)
            self.switches[name] = SwitchDaemons(name, self.pid(name), self._logs)
            self.switches[name].start_database(template)
        for daemons in self.switches.values():
            daemons.start_forwarder()
        for daemons in self.switches.values():
            daemons.await_forwarder()
        begun = [
            (self.switches[switch.name], self.switches[switch.name].vsctl(self._bridge(number, switch)))
            for number, switch in enumerate(self.fabric.switches)
        ]
        for daemons, command in begun:
            daemons.finish(command)

    def _bridge(self, number: int, switch: Node) -> list[str]:
        """`ovs-vsctl` arguments that make the switch's bridge with its ports and its controller."""
        name = switch.name
        kind = "netdev" if self.datapath == "user" else "system"
        command = ["--", "add-br", name, "--", "set", "bridge", name, f"datapath_type={kind}", "fail_mode=secure"]
        command += ["protocols=OpenFlow13,OpenFlow15", f"other-config:datapath-id={switch.dpid:016x}"]
        command += ["other-config:disable-in-band=true"]
        for port in self._ports_of(name):
            command += ["--", "add-port", name, port.interface]
            command += ["--", "set", "interface", port.interface, f"ofport_request={port.number}"]
        target = f"tcp:{_management(number, 1)}:{self._controller_port}"
        command += ["--", "--id=@c", "create", "controller", f'target="{target}"', "max_backoff=1000"]
        return [*command, "--", "set", "bridge", name, "controller=@c"]

    def _shape_switch_ports(self) -> None:
        """After the bridges exist: Open vSwitch deletes the queues of a port, once, when it takes the port over."""
        for switch in self.fabric.switches:
            links = self.fabric.links_of[switch.name]
            with in_network_of(self.pid(switch.name)):
                batch("tc", self._shaping_lines(links, self._ports_of(switch.name)))

    def routes_of(self, node: str) -> IPRoute:
        """A netlink socket in the namespace of a host or switch, kept open."""
        if node not in self._routes:
            with in_network_of(self.pid(node)):
                self._routes[node] = IPRoute()
        return self._routes[node]

    def _read_back_rates(self) -> None:
        for node in self.fabric.nodes:
            routes = self.routes_of(node.name)
            for link in self.fabric.links_of[node.name]:
                interface = link.port_of(node.name).interface
                (index,) = routes.link_lookup(ifname=interface)
                applied = shaping.applied_rate_bps(routes.get_classes(index=index))
                if applied is None or abs(applied - link.params.rate_bps) > 8:
                    raise TestbedError(f"{link.name}: {interface} has rate {applied}, not {link.params.rate_bps} bit/s")

    def enlarge_buffers(self) -> None:
        """Make room in the userspace datapath's sockets; call once packets have flowed and the sockets exist."""
        if self.datapath != "user":
            return
        for daemons in self.switches.values():
            if daemons.forwarder is not None:
                enlarge_packet_sockets(
                    daemons.forwarder, send_bytes=SEND_BUFFER_BYTES, receive_bytes=RECEIVE_BUFFER_BYTES
                )

    def dead(self) -> str | None:
        """A switch's daemon that has ended, or None while all run."""
        return next((told for daemons in self.switches.values() if (told := daemons.dead())), None)

    def popen(self, host: str, command: Sequence[str], **keywords: Any) -> subprocess.Popen[bytes]:
        """Start a program on a host; keyword arguments are those of subprocess.Popen."""
        with in_network_of(self.pid(host)):
            return subprocess.Popen(command, **keywords)


def _management(switch: int, end: int) -> str:
    """Link-local address of one end of a switch's management link: 1 is the sandbox's, 2 the switch's."""
    return f"169.254.{switch >> 6}.{(switch & 63) * 4 + end}"


def loopback_up() -> None:
    """Bring up the sandbox's loopback, over which switches and controller talk."""
    run(["ip", "link", "set", "lo", "up"])


def _write_ipv6_setting(interface: str, key: str, value: int) -> None:
    path = Path(f"/proc/sys/net/ipv6/conf/{interface}/{key}")
    if path.exists():
        path.write_text(str(value))


def has_netem() -> bool:
    """Whether `tc` can make a netem queue here; tried on a throw-away interface of the current namespace."""
    batch("ip", ["link add probe-netem type veth peer name probe-netem2"])
    try:
        run(["tc", "qdisc", "add", "dev", "probe-netem", "root", "netem", "limit", "10"])
    except TestbedError:
        return False
    finally:
        batch("ip", ["link del probe-netem"])
    return True
