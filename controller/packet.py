"""The header fields of a packet that switches look at, and the packets that hosts of a fabric send."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from controller.program import ETH_ARP, ETH_IPV6, ETH_LLDP, IP_ICMPV6, IP_TCP, IP_UDP, mac_number
from topologies.ev import EvLayout, flow_label, udp_source_port
from topologies.graph import Fabric, Port

MRC_UDP_PORT = 4791
"""UDP destination port of MRC's data packets unless told otherwise (RoCEv2's)."""

_PROTOCOLS = {"udp": IP_UDP, "tcp": IP_TCP, "icmp": IP_ICMPV6}
_BROADCASTS = {
    "arp": (ETH_ARP, "ff:ff:ff:ff:ff:ff"),
    "nd": (ETH_IPV6, "33:33:ff:00:00:01"),
    "lldp": (ETH_LLDP, "01:80:c2:00:00:0e"),
}


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet on the wire.

    Attributes:
        eth_src, eth_dst: MAC addresses as 48-bit numbers.
        ip_proto: None when it is not IP.
        ip_src, ip_dst: addresses in network byte order, 16 bytes (IPv6) or 4 (IPv4); empty when it is not IP.
        src_port, dst_port: TCP or UDP ports; 0 without.
        flow_label: IPv6 flow label, 20 bits. No mode matches it: Open vSwitch hashes it in no selection of ours.
    """

    eth_src: int
    eth_dst: int
    eth_type: int
    ip_proto: int | None = None
    ip_src: bytes = b""
    ip_dst: bytes = b""
    src_port: int = 0
    dst_port: int = 0
    flow_label: int = 0

    def hash_value(self, field: str) -> bytes | None:
        """The value of an OpenFlow field (``ipv6_src``, ``udp_dst``, ...) in network byte order; None without it."""
        protocol, _, side = field.partition("_")
        if protocol in ("ipv4", "ipv6"):
            address = self.ip_src if side == "src" else self.ip_dst
            return address if len(address) == (4 if protocol == "ipv4" else 16) else None
        if self.ip_proto != _PROTOCOLS.get(protocol):
            return None
        return (self.src_port if side == "src" else self.dst_port).to_bytes(2, "big")


def host_packet(
    fabric: Fabric,
    source: str,
    target: str,
    plane: int,
    proto: str,
    src_port: int = 0,
    dst_port: int = 0,
    label: int = 0,
) -> Packet:
    """A unicast IPv6 packet from host to host in a plane.

    Args:
        proto: ``udp``, ``tcp`` or ``icmp``.
        label: flow label.

    Raises KeyError for an unknown host or plane, ValueError for an unknown protocol.
    """
    if proto not in _PROTOCOLS:
        raise ValueError(f"unknown protocol {proto!r} (known: {', '.join(_PROTOCOLS)})")
    sender, receiver = fabric.host_port[(source, plane)], fabric.host_port[(target, plane)]
    return Packet(
        eth_src=_mac(sender),
        eth_dst=_mac(receiver),
        eth_type=ETH_IPV6,
        ip_proto=_PROTOCOLS[proto],
        ip_src=_ipv6(sender),
        ip_dst=_ipv6(receiver),
        src_port=src_port,
        dst_port=dst_port,
        flow_label=label,
    )


def ev_packet(fabric: Fabric, source: str, target: str, ev: int, dst_port: int = MRC_UDP_PORT) -> Packet:
    """A data packet of MRC with this EV, in the plane that the EV names. Raises ValueError for a bad EV."""
    plane = EvLayout.decode(ev).plane
    return host_packet(fabric, source, target, plane, "udp", udp_source_port(ev), dst_port, flow_label(ev))


def broadcast_packet(fabric: Fabric, source: str, plane: int, kind: str = "arp") -> Packet:
    """What a host sends to all: ``arp``, ``nd`` (neighbour discovery) or ``lldp``."""
    eth_type, target = _BROADCASTS[kind]
    return Packet(eth_src=_mac(fabric.host_port[(source, plane)]), eth_dst=mac_number(target), eth_type=eth_type)


def _mac(port: Port) -> int:
    if port.mac is None:
        raise ValueError(f"{port.interface} has no MAC address")
    return mac_number(port.mac)


def _ipv6(port: Port) -> bytes:
    if port.ipv6 is None:
        raise ValueError(f"{port.interface} has no IPv6 address")
    return socket.inet_pton(socket.AF_INET6, port.ipv6)
