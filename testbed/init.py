"""Process 1 of a run: gives the run namespaces of its own, starts it, and takes everything down with itself.

    caller -> outer (this file) -> pid 1 (this file) -> the run

Each arrow carries PR_SET_PDEATHSIG = SIGKILL, so whoever dies, by whatever signal, everything to its right is killed by
the kernel; and when pid 1 of a pid namespace ends, the kernel kills every process in it, and with the last process the
network namespace and all interfaces go. Nothing here relies on a handler that SIGKILL would skip.

Run as ``python -m testbed.init COMMAND...``; only the standard library, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def die_with_parent(parent: int) -> None:
    """Ask the kernel to SIGKILL this process when its parent ends; end at once if ``parent`` has already gone."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def _mount(source: str, target: str, kind: str | None, flags: int = 0) -> None:
    kind_bytes = kind.encode() if kind else None
    _check(_libc.mount(source.encode(), target.encode(), kind_bytes, flags, None), f"mount {target}")


def _isolate_mounts() -> None:
    """A /proc and /sys of this run, and a /run of its own, where Open vSwitch keeps sockets and database."""
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    _mount("proc", "/proc", "proc")
    _mount("sysfs", "/sys", "sysfs")
    _mount("tmpfs", "/run", "tmpfs")
    Path("/run/openvswitch").mkdir()
    if not Path("/var/run").is_symlink():
        _mount("tmpfs", "/var/run", "tmpfs")
        Path("/var/run/openvswitch").mkdir()


def _reap_until(child: int) -> int:
    """Reap orphans as process 1 must; return the wait status of ``child`` when it ends."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


def _exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _as_pid_one(command: list[str]) -> int:
    _isolate_mounts()
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return _exit_code(_reap_until(child))


def main(command: list[str], parent: int) -> int:
    """Run ``command`` in new network, mount, pid and ipc namespaces; return its exit code (128 + n for signal n)."""
    die_with_parent(parent)
    _check(_libc.unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC), "unshare (needs root)")
    outer = os.getpid()
    pid_one = os.fork()
    if pid_one == 0:
        # In the new pid namespace the parent is pid 0, whoever it is; os.getppid() cannot be compared with it.
        _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
        if not _alive_outside(outer):
            os._exit(128 + signal.SIGKILL)
        os._exit(_guarded(command))
    # Process 1 becomes waitable only when every process of its namespace is gone, so our exit means "nothing is left".
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid_one, signal.SIGKILL))
    return _exit_code(os.waitpid(pid_one, 0)[1])


def _alive_outside(outer: int) -> bool:
    """Whether the outer process still lives; /proc is still the caller's here."""
    return Path(f"/proc/{outer}").exists()


def _guarded(command: list[str]) -> int:
    try:
        return _as_pid_one(command)
    except OSError as error:
        print(f"testbed.init: {error}", file=sys.stderr, flush=True)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], parent=int(sys.argv[1])))
