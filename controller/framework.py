"""os-ken or Ryu: picks one, prepares it, and hands it over under one set of names.

No framework is imported before :func:`load`. os-ken is the maintained continuation of Ryu with the same API; Ryu 4.34
is no longer maintained and needs help to start with current libraries. ``python -m controller.framework NAME`` prints
the version of a framework, or why it cannot be used (exit code 1).
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

NAMES = ("os-ken", "ryu")
"""In order of preference."""

ROOT = Path(__file__).resolve().parent.parent
RYU_VENV = ROOT / ".venv-ryu"

_PROBE_DEADLINE_S = 20.0


class FrameworkError(Exception):
    """A framework cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Usable:
    """Whether a framework can be used: its version when it can, the reason when it cannot."""

    ok: bool
    detail: str


@dataclass(frozen=True)
class Framework:
    """The parts of a framework that we use."""

    name: str
    version: str
    app_base: Any
    app_manager: ModuleType
    event_base: Any
    events: ModuleType
    dispatchers: ModuleType
    openflow_handler: ModuleType
    connection: ModuleType
    hub: ModuleType
    openflow15: ModuleType


def load(name: str) -> Framework:
    """Imports a framework. Call once in a process, before anything opens a socket: Ryu replaces the socket module.

    Args:
        name: ``os-ken``, ``ryu``, or ``auto`` for the first that works.

    Raises FrameworkError with the reason; for ``auto``, with all reasons.
    """
    if name == "auto":
        reasons = []
        for candidate in NAMES:
            try:
                return load(candidate)
            except FrameworkError as error:
                reasons.append(str(error))
        raise FrameworkError("; ".join(reasons))
    if name not in NAMES:
        raise FrameworkError(f"unknown controller framework {name!r} (known: auto, {', '.join(NAMES)})")
    try:
        return _load_osken() if name == "os-ken" else _load_ryu()
    except Exception as error:
        raise FrameworkError(f"{name}: {type(error).__name__}: {error}") from error


def interpreter(name: str) -> Path:
    """The Python to run a framework with: Ryu has an environment of its own where it has been installed."""
    own = RYU_VENV / "bin" / "python"
    return own if name == "ryu" and own.exists() else Path(sys.executable)


def usable() -> dict[str, Usable]:
    """Tries each framework in a process of its own: its version, or why it cannot be used."""
    return {name: _probe(name) for name in NAMES}


def _probe(name: str) -> Usable:
    command = [str(interpreter(name)), "-W", "ignore", "-m", "controller.framework", name]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_PROBE_DEADLINE_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Usable(False, str(error))
    output = done.stdout.strip() or done.stderr.strip().rpartition("\n")[2]
    return Usable(done.returncode == 0, output or f"exit code {done.returncode}")


def _load_osken() -> Framework:
    # Native threads: eventlet is no longer developed. The choice is read when the hub is imported.
    os.environ["OSKEN_HUB_TYPE"] = "native"
    return _collect("os-ken", "os_ken", "OSKenApp")


def _load_ryu() -> Framework:
    eventlet = importlib.import_module("eventlet")
    eventlet.monkey_patch()
    wsgi = importlib.import_module("eventlet.wsgi")
    if not hasattr(wsgi, "ALREADY_HANDLED"):
        # Gone since eventlet 0.30.3 (ryu issue 138); Ryu imports the name and we serve no HTTP.
        wsgi.ALREADY_HANDLED = object()  # type: ignore[attr-defined]
    return _collect("ryu", "ryu", "RyuApp")


def _collect(name: str, package: str, base: str) -> Framework:
    def part(path: str) -> ModuleType:
        return importlib.import_module(f"{package}.{path}")

    app_manager = part("base.app_manager")
    return Framework(
        name=name,
        version=_version(name, package),
        app_base=getattr(app_manager, base),
        app_manager=app_manager,
        event_base=part("controller.event").EventBase,
        events=part("controller.ofp_event"),
        dispatchers=part("controller.handler"),
        openflow_handler=part("controller.ofp_handler"),
        connection=part("controller.controller"),
        hub=part("lib.hub"),
        openflow15=part("ofproto.ofproto_v1_5"),
    )


def _version(name: str, package: str) -> str:
    metadata = importlib.import_module("importlib.metadata")
    try:
        return str(metadata.version(name))
    except metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module(package), "version", "unknown"))


def _main() -> int:
    try:
        print(load(sys.argv[1] if len(sys.argv) > 1 else "auto").version)
    except FrameworkError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
