"""Arithmetic of wrapping sequence numbers.

Inside the core a PSN or MSN is a plain integer that never wraps; only the wire form does. ``unwrap`` finds the
integer nearest to a reference that has the given wire form, which is unambiguous while the two are less than half the
number space apart: 2^23 packets for a PSN, far more than the largest window (32,640).
"""

from __future__ import annotations

PSN_BITS = 24
PSN_MASK = (1 << PSN_BITS) - 1
PSN_HALF = 1 << (PSN_BITS - 1)
MSN_MASK = 0xFFFF
"""METH carries 16 bits of the MSN; AETH carries 24."""


def unwrap(wire: int, reference: int, mask: int = PSN_MASK) -> int:
    """The integer congruent to `wire` modulo `mask` + 1 that is nearest to `reference`."""
    delta = (wire - reference) & mask
    if delta > mask >> 1:
        delta -= mask + 1
    return reference + delta
