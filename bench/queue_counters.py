"""Reading all queues' counters: our one-request reader against the general netlink library. Needs root.

    sudo .venv/bin/python bench/queue_counters.py [INTERFACES] [ROUNDS]

Prints CPU time for one reading of each, taken in turn, and their ratio. Works in a throw-away network namespace.
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyroute2 import IPRoute

from testbed.qdisc_counters import QdiscReader

CLONE_NEWNET = 0x40000000


def _prepare(interfaces: int) -> None:
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        sys.exit("making a network namespace needs root")
    links = "".join(f"link add v{n} type veth peer name w{n}\n" for n in range(interfaces))
    subprocess.run(["ip", "-batch", "-"], input=links, text=True, check=True)
    queues = "".join(f"qdisc add dev v{n} root handle 1: htb default 1\n" for n in range(interfaces))
    subprocess.run(["tc", "-batch", "-"], input=queues, text=True, check=True)


def _cpu_s(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def main(interfaces: int = 40, rounds: int = 20) -> None:
    """Measure and print."""
    _prepare(interfaces)
    library, reader = IPRoute(), QdiscReader()
    seen = {entry["index"] for entry in library.get_qdiscs() if entry["parent"] == 0xFFFFFFFF}
    assert {queue.ifindex for queue in reader.read()} == seen
    pairs = [(_cpu_s(lambda: list(library.get_qdiscs())), _cpu_s(reader.read)) for _ in range(rounds)]
    theirs, ours = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{interfaces} queues, median of {rounds} rounds: pyroute2 {theirs * 1e3:.2f} ms, ours {ours * 1e3:.3f} ms")
    print(f"ratio: {ratio:.0f} times less CPU")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
