"""Give Open vSwitch's packet sockets room, without touching the machine's settings.

The userspace datapath sends the packets of all ports through one AF_PACKET socket, and a packet waiting in any link's
queue is charged to that socket: at the kernel's default of about 200 KB, full queues on a few links would make
unrelated links drop. `net.core.wmem_default` belongs to the whole machine, so the sockets themselves are changed,
through duplicates that `pidfd_getfd` (Linux 5.6) hands out.
"""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path

SYS_PIDFD_OPEN = 434
SYS_PIDFD_GETFD = 438
AF_PACKET = 17
SO_DOMAIN = 39
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33

_libc = ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: int) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def enlarge_packet_sockets(pid: int, *, send_bytes: int, receive_bytes: int) -> int:
    """Set both buffers of every AF_PACKET socket of process ``pid``; returns how many there were. Raises OSError."""
    pidfd = _syscall(SYS_PIDFD_OPEN, pid, 0)
    found = 0
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if not str(entry.readlink()).startswith("socket:"):
                    continue
                duplicate = _syscall(SYS_PIDFD_GETFD, pidfd, int(entry.name), 0)
            except OSError:
                continue  # closed since the directory was read
            with socket.socket(fileno=duplicate) as theirs:
                if theirs.getsockopt(socket.SOL_SOCKET, SO_DOMAIN) != AF_PACKET:
                    continue
                theirs.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, send_bytes)
                theirs.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, receive_bytes)
                found += 1
    finally:
        os.close(pidfd)
    return found
