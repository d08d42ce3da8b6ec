"""Step into another network namespace for the length of a block.

A socket stays in the namespace it was made in, and a child process inherits the namespace of the thread that starts
it, so a block is all that is needed to open sockets in, configure or start programs on an emulated host.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def _setns(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


@contextmanager
def in_network_of(pid: int) -> Iterator[None]:
    """Run the block, in this thread, inside the network namespace of process ``pid``. Raises OSError."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        away = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(away)
        finally:
            os.close(away)
        try:
            yield
        finally:
            _setns(home)
    finally:
        os.close(home)
