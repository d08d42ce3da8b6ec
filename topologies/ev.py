"""Entropy values: 32 bits in every packet that name a plane and a path, so that the fabric needs no other state.

====== ======== =========================================================================================
bits   field    what
====== ======== =========================================================================================
31:28  plane    from 1
27:16  zero
15:14  0b11     keeps the UDP source port in 49152-65535, the dynamic range, as RoCEv2 does
13:6   path     index of a path in ``paths.paths``
5:0    salt     makes further EVs of the same path; routing ignores it in ``disjoint`` mode, ECMP hashes it
====== ======== =========================================================================================

The low half is the UDP source port and the high half the low 16 bits of the IPv6 flow label. Araujo et al. say that the
EV is "striped across the UDP source port and IPv6 flow label" (section 2.1) and not which half goes where.
"""

from __future__ import annotations

from dataclasses import dataclass

from topologies.addresses import MAX_PLANES
from topologies.graph import Fabric, Path
from topologies.paths import path_count, paths
from topologies.routes import MAX_PATHS
from topologies.rtt import base_rtt_s

PLANE_SHIFT = 28
PORT_BASE = 0b11 << 14
PATH_SHIFT = 6
SALT_BITS = 6
MAX_SALTS = 1 << SALT_BITS
PORT_PATH_MASK = (MAX_PATHS - 1) << PATH_SHIFT
"""Bits of the UDP source port that hold the path: an OpenFlow match on them pins a packet to its path."""
FLOW_LABEL_PLANE_MASK = 0xF000
"""Bits of the IPv6 flow label that hold the plane."""


@dataclass(frozen=True)
class EvLayout:
    """An entropy value taken apart.

    Attributes:
        plane: 1 to 15.
        path: 0 to 255.
        salt: 0 to 63.
    """

    plane: int
    path: int
    salt: int = 0

    def encode(self) -> int:
        """The 32-bit entropy value. Raises ValueError when a field does not fit."""
        if not (1 <= self.plane <= MAX_PLANES and 0 <= self.path < MAX_PATHS and 0 <= self.salt < MAX_SALTS):
            raise ValueError(f"{self} does not fit an entropy value")
        return (self.plane << PLANE_SHIFT) | PORT_BASE | (self.path << PATH_SHIFT) | self.salt

    @classmethod
    def decode(cls, ev: int) -> EvLayout:
        """The fields of a 32-bit entropy value. Raises ValueError when it is none of ours."""
        fields = cls(ev >> PLANE_SHIFT, (ev & PORT_PATH_MASK) >> PATH_SHIFT, ev & (MAX_SALTS - 1))
        if not 0 <= ev < 1 << 32 or fields.plane == 0 or fields.encode() != ev:
            raise ValueError(f"{ev:#010x} is not an entropy value of this layout")
        return fields


def udp_source_port(ev: int) -> int:
    """The UDP source port of packets with this EV."""
    return ev & 0xFFFF


def flow_label(ev: int) -> int:
    """The IPv6 flow label (20 bits) of packets with this EV."""
    return ev >> 16


def ev_of(port: int, label: int) -> int:
    """The EV of a received packet, from its UDP source port and IPv6 flow label."""
    return ((label & 0xFFFF) << 16) | port


def ev_set(fabric: Fabric, source: str, target: str, per_path_salts: int = 1) -> dict[int, tuple[int, ...]]:
    """The EVs from one host to another, by plane: every path of the plane, first each once, then with the next salt.

    Every plane has the same number of EVs (Araujo et al., section 2.1: "equal number of EVs per plane"): the paths of
    the plane that has most, times ``per_path_salts``. A plane with fewer paths makes up by more salts.

    Raises ValueError when the salts do not suffice, and as ``paths`` does.
    """
    counts = {plane: path_count(fabric, source, target, plane) for plane in range(1, fabric.planes + 1)}
    size = max(counts.values()) * per_path_salts
    found = {}
    for plane, count in counts.items():
        if count * MAX_SALTS < size:
            raise ValueError(f"plane {plane} has {count} paths, too few for {size} entropy values")
        found[plane] = tuple(EvLayout(plane, index % count, index // count).encode() for index in range(size))
    return found


def path_of(fabric: Fabric, source: str, target: str, ev: int) -> Path:
    """The path that an EV names between two hosts. Raises ValueError when it names none."""
    fields = EvLayout.decode(ev)
    if fields.plane > fabric.planes:
        raise ValueError(f"{ev:#010x} names plane {fields.plane} of {fabric.planes}")
    found = paths(fabric, source, target, fields.plane)
    if fields.path >= len(found):
        raise ValueError(f"{ev:#010x} names path {fields.path} of {len(found)} from {source} to {target}")
    return found[fields.path]


__all__ = [
    "FLOW_LABEL_PLANE_MASK",
    "MAX_SALTS",
    "PATH_SHIFT",
    "PLANE_SHIFT",
    "PORT_BASE",
    "PORT_PATH_MASK",
    "EvLayout",
    "base_rtt_s",
    "ev_of",
    "ev_set",
    "flow_label",
    "path_of",
    "udp_source_port",
]
