"""The sockets of one plane of a host."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from mrc_agent.core.errors import MrcError
from mrc_agent.edge import libc
from mrc_agent.edge.collector import Collector
from mrc_agent.edge.transmitter import Transmitter
from mrc_agent.profile import WireProfile
from mrc_agent.wire.data import DATA_OVERHEAD_BYTES

EDGE_COUNTERS = {
    "edge_socket_full": "flushes that had to wait for the socket's buffer",
    "edge_queue_full": "flushes that had to wait because the interface's queue was full",
    "edge_send_errors": "packets that the kernel refused to send (link down, no route)",
    "edge_receive_errors": "failed receive calls",
    "edge_too_long": "datagrams longer than any of ours",
}
"""Name of each counter of the edge and what it counts."""


@dataclass(frozen=True)
class PlaneInterface:
    """A host's port in one plane: plane counted from 1, interface name, IPv6 address of the interface."""

    plane: int
    interface: str
    ipv6: str


class PlaneSockets:
    """Both halves of a plane."""

    def __init__(self, port: PlaneInterface, position: int, wire: WireProfile, counters: dict[str, int]) -> None:
        """`position`: how the core counts this plane. Raises MrcError naming the interface and what is wrong."""
        try:
            address = ipaddress.IPv6Address(port.ipv6).packed
            mtu = libc.interface_mtu(port.interface)
            needed = wire.payload_bytes + DATA_OVERHEAD_BYTES
            if mtu < needed:
                raise MrcError(f"{port.interface}: MTU {mtu} is below the {needed} bytes of a full packet")
            self.transmitter = Transmitter(port.interface, address, wire.udp_port, counters)
            try:
                self.collector = Collector(
                    port.interface, address, wire.udp_port, wire.payload_bytes, position, counters
                )
            except OSError:
                self.transmitter.socket.close()
                raise
        except PermissionError as error:
            raise MrcError(f"{port.interface}: raw sockets need CAP_NET_RAW, run as root ({error})") from None
        except OSError as error:
            raise MrcError(f"{port.interface} with {port.ipv6}, port {wire.udp_port}: {error}") from None

    def close(self) -> None:
        """Closes both sockets."""
        self.transmitter.socket.close()
        self.collector.socket.close()
