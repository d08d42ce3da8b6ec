"""Registered memory: the only bytes that a packet from the network can write to."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from mrc_agent.core.errors import MrcError

_FIRST_ADDRESS = 1 << 44
_SPACING = 1 << 36


@dataclass(frozen=True)
class MemoryRegion:
    """A writable buffer that peers with its rkey may write to.

    Attributes:
        address: start in the address space of RETH (the agent's own numbering, not a machine address).
        rkey: 32-bit key that a packet must carry.
        length: bytes.
        view: the buffer.
    """

    address: int
    rkey: int
    length: int
    view: memoryview = field(repr=False)


class MemoryTable:
    """The regions of one host by rkey."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._next_address = _FIRST_ADDRESS
        self.by_rkey: dict[int, MemoryRegion] = {}

    def register(self, buffer: Any) -> MemoryRegion:
        """Registers a writable buffer (bytearray, mmap, numpy array). Raises MrcError when it is read-only."""
        view = memoryview(buffer)
        if view.readonly:
            raise MrcError("cannot register a read-only buffer")
        view = view.cast("B")
        if view.nbytes > _SPACING:
            raise MrcError(f"a region of {view.nbytes} bytes is larger than {_SPACING}")
        rkey = 0
        while rkey == 0 or rkey in self.by_rkey:
            rkey = self._rng.getrandbits(32)
        region = MemoryRegion(self._next_address, rkey, view.nbytes, view)
        self._next_address += _SPACING
        self.by_rkey[rkey] = region
        return region

    def deregister(self, region: MemoryRegion) -> None:
        """From now on packets with the region's rkey are dropped."""
        self.by_rkey.pop(region.rkey, None)
