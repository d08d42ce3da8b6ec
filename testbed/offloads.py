"""Switch an interface's offloads off, so that each packet on the wire is one the link's rate and queue see.

With Open vSwitch's userspace datapath a host's TCP gets no packet through while `tx` checksums are left to the device,
and segmentation offloads would put 64 KB packets through the shaper.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct

from testbed.errors import TestbedError

SIOCETHTOOL = 0x8946
# (name, ETHTOOL_G*, ETHTOOL_S*) of <linux/ethtool.h>; segmentation before the checksums that it depends on.
FEATURES = (
    ("tso", 0x1E, 0x1F),
    ("gso", 0x23, 0x24),
    ("gro", 0x2B, 0x2C),
    ("tx", 0x16, 0x17),
    ("rx", 0x14, 0x15),
)


def _ethtool(control: socket.socket, interface: str, command: int, value: int = 0) -> int:
    payload = array.array("B", struct.pack("II", command, value))
    address, _ = payload.buffer_info()
    request = struct.pack("16sP", interface.encode(), address) + bytes(16)
    fcntl.ioctl(control, SIOCETHTOOL, request)
    return int(struct.unpack("II", payload.tobytes())[1])


def switch_off(interfaces: list[str]) -> None:
    """Switch every offload of these interfaces, of the current namespace, off and read it back.

    Raises:
        TestbedError: naming the interface and the offload that stayed on.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for interface in interfaces:
            for name, read, write in FEATURES:
                try:
                    _ethtool(control, interface, write, 0)
                    left_on = _ethtool(control, interface, read)
                except OSError as error:
                    raise TestbedError(f"{interface}: offload {name}: {error.strerror}") from error
                if left_on:
                    raise TestbedError(f"{interface}: offload {name} stays on")
