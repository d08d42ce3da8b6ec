"""Cut and restore links, and tell what interfaces and switches say about them.

A link is cut at its switch end (for a fabric link, at its upper end): that end is set down, the other loses its
carrier at once. A host's own end is never set down, since Linux would drop its IPv6 addresses.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.netns import in_network_of
from testbed.network import Network
from topologies.graph import Link, Port

SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
STATE_DEADLINE_S = 2.0


@dataclass(frozen=True)
class LinkChange:
    """What happened when a link was set up or down.

    Attributes:
        applied_mono: CLOCK_MONOTONIC in seconds when the kernel had taken the change.
        carrier: whether the two ends had a carrier when read back, ``a`` first.
    """

    link: str
    up: bool
    applied_mono: float
    carrier: tuple[bool, bool]


def set_up(interface: str, up: bool) -> None:
    """Set an interface of the current namespace up or down. Raises TestbedError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = bytearray(struct.pack("16sH22x", interface.encode(), 0))
        try:
            fcntl.ioctl(control, SIOCGIFFLAGS, request)
            (flags,) = struct.unpack_from("H", request, 16)
            struct.pack_into("H", request, 16, flags | IFF_UP if up else flags & ~IFF_UP)
            fcntl.ioctl(control, SIOCSIFFLAGS, bytes(request))
        except OSError as error:
            raise TestbedError(f"{interface}: cannot be set {'up' if up else 'down'}: {error.strerror}") from error


def change(network: Network, link: Link, up: bool) -> LinkChange:
    """Set a link up or down at its upper end, and read the carrier back.

    Raises:
        TestbedError: the kernel refused, or the carrier did not follow.
    """
    with in_network_of(network.pid(link.b.node)):
        set_up(link.b.interface, up)
    applied = time.monotonic()
    deadline = applied + STATE_DEADLINE_S
    carriers = _carriers(network, link)
    while carriers != (up, up):
        if time.monotonic() > deadline:
            raise TestbedError(f"{link.name}: set {'up' if up else 'down'}, but carriers read {carriers}")
        carriers = _carriers(network, link)
    return LinkChange(link.name, up, applied, carriers)


def _carriers(network: Network, link: Link) -> tuple[bool, bool]:
    first, second = (_carrier(network, port) for port in (link.a, link.b))
    return first, second


def _carrier(network: Network, port: Port) -> bool:
    """Whether an end has a carrier, asked in its node's namespace; False when it is administratively down."""
    found = network.routes_of(port.node).get_links(ifname=port.interface)
    return bool(found and found[0].get_attr("IFLA_CARRIER"))


def switch_port_states(network: Network, link: Link) -> dict[str, str]:
    """What Open vSwitch holds for a link's switch ends: ``up``, ``down`` or ``unknown``. Raises CommandError."""
    states = {}
    for port in (link.a, link.b):
        daemons = network.switches.get(port.node)
        if daemons is not None:
            told = daemons.finish(daemons.vsctl(["get", "interface", port.interface, "link_state"]))
            states[port.interface] = told.strip() if told.strip() in ("up", "down") else "unknown"
    return states
