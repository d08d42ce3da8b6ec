"""Look at the whole machine from outside a run: processes, interfaces, namespaces, mounts."""

import os
import time
from pathlib import Path


def processes(*words):
    """Ids of the processes whose command line holds all words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line and int(folder.name) != os.getpid() and all(word in line for word in words):
            found.append(int(folder.name))
    return sorted(found)


def descendants(pid):
    """Ids of all processes below one."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(after_name[1]), []).append(int(folder.name))
    found, look = [], [pid]
    while look:
        children = parents.get(look.pop(), [])
        found += children
        look += children
    return found


def network_namespaces():
    """Network namespaces that any process is in."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(str(link.readlink()))
        except OSError:
            continue
    return found


def snapshot():
    """What a run must leave as it was: interfaces, network namespaces, mounts, daemons of ours."""
    return {
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "namespaces": len(network_namespaces()),
        "mounts": len(Path("/proc/self/mounts").read_text().splitlines()),
        "ovs": processes("ovs-vswitchd"),
        "drivers": processes("experiments."),
        "shells": processes("mininet:"),
        "scratch": sorted(Path("/tmp").glob("mrc-testbed-*")),
    }


def eventually(condition, deadline_s=10.0):
    """Whether a condition becomes true before a deadline."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
