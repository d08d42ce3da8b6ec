"""The controller as a process: ``python -m controller.launcher --topology FILE --mode MODE``.

Writes what happens as JSON lines, one event a line: ``{"t_mono": seconds of CLOCK_MONOTONIC, "kind": ..., "name": ...,
"detail": ...}``. Kinds: ``listening``, ``switch_up``, ``synced``, ``switch_down``, ``ready``, ``port_down``,
``port_up``, ``reroute``, ``error``, ``stopped``. Ends within a moment on SIGTERM or SIGINT, and dies with its parent.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from controller import framework as frameworks
from controller.app import run
from controller.control import Emit
from controller.routes import MODES
from topologies.graph import Fabric

NO_FRAMEWORK = 3
"""Exit code when the framework cannot be used."""

_PR_SET_PDEATHSIG = 1
_SLEEP_S = 3600.0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m controller.launcher", description="Run the OpenFlow controller.")
    result.add_argument("--topology", type=Path, required=True, help="topology file (YAML)")
    result.add_argument("--mode", choices=tuple(MODES), required=True, help="routing mode")
    result.add_argument("--framework", choices=("auto", *frameworks.NAMES), default="auto")
    result.add_argument("--listen", default="127.0.0.1:6653", metavar="HOST:PORT", help="port 0 takes a free one")
    result.add_argument("--convergence-ms", type=float, default=500.0, help="from a link failure to new routes")
    result.add_argument("--seed", type=int, default=1, help="seed of the switches' hash seeds")
    result.add_argument("--same-hash", action="store_true", help="no seed: all switches hash alike (polarisation)")
    result.add_argument("--events", type=Path, help="file that events are appended to (standard output without)")
    return result


def main(arguments: list[str] | None = None) -> int:
    """Runs until a signal ends it. Exit codes: 1 cannot listen, 2 wrong input, 3 no usable framework."""
    die_with_parent()
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    emit = event_writer(options.events)
    host, _, port = options.listen.rpartition(":")
    if not host or not port.isdigit():
        print(f"--listen: {options.listen!r} is not HOST:PORT", file=sys.stderr)
        return 2
    try:
        framework = frameworks.load(options.framework)
    except frameworks.FrameworkError as error:
        print(error, file=sys.stderr)
        return NO_FRAMEWORK
    try:
        fabric = _fabric(options.topology)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2

    def stop(number: int, _frame: Any) -> None:
        emit("stopped", framework.name, signal.Signals(number).name)
        # The framework's threads take no notice of a signal; there is nothing to save.
        os._exit(0)

    def failed(reason: str) -> None:
        emit("error", "controller", reason)
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    run(
        framework,
        fabric,
        options.mode,
        host=host,
        port=int(port),
        seed=None if options.same_hash else options.seed,
        convergence_s=options.convergence_ms / 1000,
        emit=emit,
        failed=failed,
    )
    while True:
        framework.hub.sleep(_SLEEP_S)


def _fabric(path: Path) -> Fabric:
    """Reads the topology. Raises ValueError with all that is wrong with it."""
    # Not before the framework: eventlet, which Ryu runs on, wants to replace the socket module before others load it.
    from topologies.errors import InputErrors
    from topologies.load import load_fabric

    try:
        return load_fabric(path)
    except (InputErrors, OSError) as error:
        raise ValueError(str(error)) from error


def event_writer(path: Path | None) -> Emit:
    """Something that appends events to a file, each with one write, or to standard output."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = sys.stdout.fileno() if path is None else os.open(path, flags, 0o644)

    def emit(kind: str, name: str, detail: Any) -> None:
        line = json.dumps({"t_mono": time.monotonic(), "kind": kind, "name": name, "detail": detail})
        os.write(descriptor, line.encode() + b"\n")

    return emit


def die_with_parent() -> None:
    """Asks the kernel for SIGKILL when the thread that started us ends. Raises OSError when it refuses."""
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
