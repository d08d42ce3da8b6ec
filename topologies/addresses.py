"""Addresses, datapath ids and interface names: pure functions of a node's position, never of digits in its name.

OpenFlow can match any group of hosts by prefix, because plane, zone (the pod of a fat-tree, else 0) and leaf have
fields of their own:

======  =========================================================  ==========================
MAC     ``02:<plane>:<zone>:<leaf>:<host high>:<host low>``         one byte each
IPv6    ``fd00:<plane>:<zone><leaf>::<host>``                       zone and leaf one byte each
IPv4    ``10.<plane>.<leaf, counted over all zones>.<host>``        one byte each
======  =========================================================  ==========================

The leaf is counted from 1 within its zone, the host from 1 on its leaf. A host interface's on-link prefix is its whole
plane: /32 in IPv6, /16 in IPv4.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv6Address

MAX_PLANES = 15
"""The EV's plane field has 4 bits and planes are counted from 1."""
MAX_LEAVES = 250
"""Leaves of a plane: the third byte of IPv4."""
MAX_HOSTS_PER_LEAF = 254
"""The last byte of IPv4."""
MAX_INTERFACE = 15
"""Characters in a Linux interface name (IFNAMSIZ - 1)."""

_TIER_CODES = {"leaf": 1, "edge": 1, "agg": 2, "spine": 3, "core": 3, "switch": 4}


def mac(plane: int, zone: int, leaf: int, host: int) -> str:
    """The MAC address of a host's interface."""
    return ":".join(f"{byte:02x}" for byte in (2, plane, zone, leaf, host >> 8, host & 0xFF))


def ipv6(plane: int, zone: int, leaf: int, host: int) -> str:
    """The IPv6 address of a host's interface, in canonical text, without prefix length."""
    return str(IPv6Address((0xFD00 << 112) | (plane << 96) | (zone << 88) | (leaf << 80) | host))


def ipv4(plane: int, global_leaf: int, host: int) -> str:
    """The IPv4 address of a host's interface, without prefix length. ``global_leaf`` counts over all zones, from 1."""
    return f"10.{plane}.{global_leaf}.{host}"


def plane_prefix6(plane: int) -> str:
    """All hosts of a plane: the on-link IPv6 prefix of their interfaces."""
    return f"{IPv6Address((0xFD00 << 112) | (plane << 96))}/32"


def zone_prefix6(plane: int, zone: int) -> str:
    """All hosts of a zone (pod), in IPv6."""
    return f"{IPv6Address((0xFD00 << 112) | (plane << 96) | (zone << 88))}/40"


def leaf_prefix6(plane: int, zone: int, leaf: int) -> str:
    """All hosts of a leaf, in IPv6."""
    return f"{IPv6Address((0xFD00 << 112) | (plane << 96) | (zone << 88) | (leaf << 80))}/48"


def plane_prefix4(plane: int) -> str:
    """All hosts of a plane: the on-link IPv4 prefix of their interfaces."""
    return f"10.{plane}.0.0/16"


def leaf_prefix4(plane: int, global_leaf: int) -> str:
    """All hosts of a leaf, in IPv4."""
    return f"10.{plane}.{global_leaf}.0/24"


def dpid(plane: int, tier: str, zone: int, number: int) -> int:
    """OpenFlow datapath id: plane, tier, zone and the switch's number within them, one field each.

    Mininet takes the digits of a switch's name instead, which fails for ``core-a`` and collides for ``s1`` and ``x1``.
    """
    return (plane << 40) | (_TIER_CODES[tier] << 32) | (zone << 16) | number


def interface_name(node: str, port: int, taken: set[str]) -> str:
    """``<node>-eth<port>``, shortened where Linux has no room for it; adds the result to ``taken``.

    The short form keeps the beginning of the node's name and four hexadecimal digits of its hash, so that it does not
    depend on the rest of the fabric; a collision is resolved by hashing again.
    """
    name = f"{node}-eth{port}"
    suffix = f"-e{port}"
    attempt = 0
    while len(name) > MAX_INTERFACE or name in taken:
        digest = hashlib.sha256(f"{node}/{port}/{attempt}".encode()).hexdigest()[:4]
        name = f"{node[: MAX_INTERFACE - len(suffix) - 5]}~{digest}{suffix}"
        attempt += 1
    taken.add(name)
    return name
