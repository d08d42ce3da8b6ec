"""A fabric becomes interfaces, hosts and switches. Runs inside the sandbox.

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
from testbed.ovs import OpenVSwitch, kernel_datapath_available
from testbed.socket_buffers import enlarge_packet_sockets
from topologies.graph import Fabric, Link, Port

OPEN_FILES = 65536
SEND_BUFFER_BYTES = 256 << 20
RECEIVE_BUFFER_BYTES = 16 << 20
IPV6_QUIET = {"accept_ra": 0, "autoconf": 0, "router_solicitations": 0, "dad_transmits": 0, "addr_gen_mode": 1}


class Network:
    """The emulated fabric.

    Args:
        fabric: the graph.
        logs: directory for daemons' log files.
        controller: ``tcp:127.0.0.1:6653`` or the like; the switches connect to it.
        datapath: ``user``, ``kernel`` or None for the kernel's where it exists.
    """

    def __init__(
        self, fabric: Fabric, *, logs: Path, controller: str = "tcp:127.0.0.1:6653", datapath: str | None = None
    ) -> None:
        self.fabric = fabric
        self.datapath = datapath or ("kernel" if kernel_datapath_available() else "user")
        self.ovs = OpenVSwitch(logs)
        self.mininet: Any = None
        self._controller = controller
        self._routes: dict[str, IPRoute] = {}

    def start(self) -> None:
        """Build everything. Raises TestbedError (MachineLacks for what this machine does not have)."""
        self._check_machine()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
        loopback_up()
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
        self.ovs.start()
        self._start_nodes()
        self._make_links()
        self._configure_hosts()
        self._configure_switch_ports()
        self._make_bridges()
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
                    inNamespace=False,
                )

    def pid(self, host: str) -> int:
        """Process id of the host's shell, which holds its network namespace."""
        return int(self.mininet[host].pid)

    def _place(self, port: Port) -> str:
        """Where `ip link add` puts this end: a host's namespace, or here for a switch."""
        return f"netns {self.pid(port.node)}" if self.fabric.node[port.node].kind == "host" else ""

    def _make_links(self) -> None:
        mtu = self.fabric.mtu
        lines = []
        for link in self.fabric.links:
            ends = []
            for port in (link.b, link.a):
                address = f"address {port.mac}" if port.mac else ""
                ends.append(f"{self._place(port)} name {port.interface} mtu {mtu} {address}")
            lines.append(f"link add {ends[0]} type veth peer {ends[1]}")
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

    def _switch_ports(self) -> list[tuple[Link, Port]]:
        return [
            (link, link.port_of(switch.name))
            for switch in self.fabric.switches
            for link in self.fabric.links_of[switch.name]
        ]

    def _configure_switch_ports(self) -> None:
        pairs = self._switch_ports()
        batch("ip", [f"link set {port.interface} up" for _, port in pairs])
        offloads.switch_off([port.interface for _, port in pairs])

    def _shape_switch_ports(self) -> None:
        """After the bridges exist: Open vSwitch deletes the queues of a port, once, when it takes the port over."""
        pairs = self._switch_ports()
        batch("tc", self._shaping_lines([link for link, _ in pairs], [port for _, port in pairs]))

    def routes_of(self, node: str) -> IPRoute:
        """A netlink socket in the namespace that holds the node's interfaces, kept open."""
        key = node if self.fabric.node[node].kind == "host" else ""
        if key not in self._routes:
            if key:
                with in_network_of(self.pid(key)):
                    self._routes[key] = IPRoute()
            else:
                self._routes[key] = IPRoute()
        return self._routes[key]

    def _read_back_rates(self) -> None:
        for node in self.fabric.nodes:
            routes = self.routes_of(node.name)
            for link in self.fabric.links_of[node.name]:
                interface = link.port_of(node.name).interface
                (index,) = routes.link_lookup(ifname=interface)
                applied = shaping.applied_rate_bps(routes.get_classes(index=index))
                if applied is None or abs(applied - link.params.rate_bps) > 8:
                    raise TestbedError(f"{link.name}: {interface} has rate {applied}, not {link.params.rate_bps} bit/s")

    def _make_bridges(self) -> None:
        command = ["ovs-vsctl", "--timeout=60"]
        kind = "netdev" if self.datapath == "user" else "system"
        for switch in self.fabric.switches:
            name = switch.name
            command += ["--", "add-br", name, "--", "set", "bridge", name, f"datapath_type={kind}", "fail_mode=secure"]
            command += ["protocols=OpenFlow13,OpenFlow15", f"other-config:datapath-id={switch.dpid:016x}"]
            command += ["other-config:disable-in-band=true"]
            for link in self.fabric.links_of[name]:
                port = link.port_of(name)
                command += ["--", "add-port", name, port.interface]
                command += ["--", "set", "interface", port.interface, f"ofport_request={port.number}"]
            command += ["--", f"--id=@c-{name}", "create", "controller", f'target="{self._controller}"']
            command += ["max_backoff=1000", "--", "set", "bridge", name, f"controller=@c-{name}"]
        run(command, timeout_s=70)

    def enlarge_buffers(self) -> None:
        """Make room in the userspace datapath's sockets; call once packets have flowed and the sockets exist."""
        if self.datapath == "user" and self.ovs.switch is not None:
            enlarge_packet_sockets(
                self.ovs.switch.pid, send_bytes=SEND_BUFFER_BYTES, receive_bytes=RECEIVE_BUFFER_BYTES
            )

    def popen(self, host: str, command: Sequence[str], **keywords: Any) -> subprocess.Popen[bytes]:
        """Start a program on a host; keyword arguments are those of subprocess.Popen."""
        with in_network_of(self.pid(host)):
            return subprocess.Popen(command, **keywords)


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
