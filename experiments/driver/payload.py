"""The bytes of a message: its id, its size, then pseudo-random bytes that only this id has at this place.

Sender and receiver make the same block of random bytes from the experiment's seed; a message's body is the part of the
block that starts at an offset drawn from its id. The receiver compares every byte.
"""

from __future__ import annotations

import random
import struct

HEADER = struct.Struct("!QQ")
OFFSETS = 65_536
STEP = 40_503  # odd, so that 65,536 ids in a row have different offsets


class Payload:
    """Makes and checks messages of up to ``largest`` bytes."""

    def __init__(self, seed: int, largest: int) -> None:
        self._block = random.Random(seed).randbytes(largest + OFFSETS)
        self._view = memoryview(self._block)

    def fill(self, message: int, buffer: memoryview) -> None:
        """Write the message, as long as ``buffer``, into it. Shorter than 16 bytes: as much of the header as fits."""
        header = HEADER.pack(message, len(buffer))
        start = message * STEP % OFFSETS
        buffer[: HEADER.size] = header[: len(buffer)]
        body = max(0, len(buffer) - HEADER.size)
        buffer[HEADER.size :] = self._view[start : start + body]

    def check(self, data: memoryview) -> tuple[int, bool]:
        """(id that the message carries, whether every byte is as it was sent)."""
        if len(data) < HEADER.size:
            return -1, False
        message, size = HEADER.unpack_from(data)
        start = message * STEP % OFFSETS
        intact = size == len(data) and data[HEADER.size :] == self._view[start : start + len(data) - HEADER.size]
        return message, intact
