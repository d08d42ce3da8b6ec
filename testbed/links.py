"""Cut and restore links, and tell what interfaces and switches say about them.

A link is cut at its switch end (for a fabric link, at its upper end): that end is set down, the other loses its
carrier at once. A host's own end is never set down, since Linux would drop its IPv6 addresses.
"""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.commands import run
from testbed.errors import TestbedError
from topologies.graph import Link

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


def has_carrier(interface: str) -> bool:
    """Whether an interface of the current namespace has a carrier; False when it is administratively down."""
    try:
        return Path(f"/sys/class/net/{interface}/carrier").read_text().strip() == "1"
    except OSError:
        return False


def change(link: Link, up: bool) -> LinkChange:
    """Set a link up or down at its upper end, and read the carrier back.

    Raises:
        TestbedError: the kernel refused, or the carrier did not follow.
    """
    set_up(link.b.interface, up)
    applied = time.monotonic()
    switch_ends = [link.b] if link.tier == "host" else [link.a, link.b]
    carrier = {port.interface: has_carrier(port.interface) for port in switch_ends}
    deadline = applied + STATE_DEADLINE_S
    while any(state != up for state in carrier.values()):
        if time.monotonic() > deadline:
            raise TestbedError(f"{link.name}: set {'up' if up else 'down'}, but carriers read {carrier}")
        carrier = {port.interface: has_carrier(port.interface) for port in switch_ends}
    ends = (carrier.get(link.a.interface, carrier[link.b.interface]), carrier[link.b.interface])
    return LinkChange(link.name, up, applied, ends)


def switch_port_states(interfaces: list[str]) -> dict[str, str]:
    """What Open vSwitch holds for these interfaces: ``up``, ``down`` or ``unknown``. Raises CommandError."""
    command = ["ovs-vsctl", "--timeout=5", "--format=json", "--columns=name,link_state", "list", "interface"]
    rows = json.loads(run([*command, *interfaces]))["data"]
    return {name: state if isinstance(state, str) else "unknown" for name, state in rows}
