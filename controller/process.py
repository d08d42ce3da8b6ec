"""The controller process as the testbed sees it: start it, wait until it is ready, read its events, restart it."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.framework import NAMES, ROOT, interpreter
from controller.launcher import NO_FRAMEWORK
from topologies.graph import Fabric
from topologies.load import load_fabric

Event = dict[str, Any]
"""``t_mono`` (seconds of CLOCK_MONOTONIC), ``kind``, ``name``, ``detail``: see ``launcher.py``."""

_POLL_S = 0.01
_LOG_TAIL_BYTES = 2000
_MOST_NAMES = 6


class ControllerError(Exception):
    """The controller did not do what was waited for; the message says what is missing."""


class ControllerProcess:
    """One controller, as a process of its own that dies with this one."""

    def __init__(
        self,
        topology: Path,
        *,
        mode: str,
        framework: str = "auto",
        host: str = "127.0.0.1",
        port: int = 6653,
        convergence_s: float = 0.5,
        seed: int | None = 1,
        log: Path | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            topology: topology file with everything resolved.
            mode: routing mode, a name in ``controller.routes.MODES``.
            framework: ``os-ken``, ``ryu`` or ``auto``.
            host, port: where the switches connect to; port 0 takes a free one.
            convergence_s: seconds between a link failure and new routes.
            seed: seed of the switches' hash seeds; None: they all hash alike.
            log: file for what the process prints; events go beside it (``.events.jsonl``). None: both are temporary.
        """
        if log is None:
            log = Path(tempfile.mkdtemp(prefix="mrc-controller-")) / "controller.log"
        self._log = log
        self._events_file = log.with_suffix(".events.jsonl")
        self._topology = topology
        self._fabric: Fabric = load_fabric(topology)
        self._arguments = [
            f"--topology={topology}",
            f"--mode={mode}",
            f"--listen={host}:{port}",
            f"--convergence-ms={convergence_s * 1000:g}",
            f"--events={self._events_file}",
            *(["--same-hash"] if seed is None else [f"--seed={seed}"]),
        ]
        self._candidates = list(NAMES) if framework == "auto" else [framework]
        self._unusable: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._read_to = 0
        self._events_of_life: list[Event] = []
        self._unread: list[Event] = []

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self.alive() else None

    def start(self) -> None:
        """Starts the process; it is not listening yet. Raises ControllerError when it runs already."""
        if self.alive():
            raise ControllerError("the controller is running already")
        name = self._candidates[0]
        command = [str(interpreter(name)), "-W", "ignore", "-m", "controller.launcher", f"--framework={name}"]
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._events_file.touch()
        self._read_to = self._events_file.stat().st_size
        self._events_of_life = []
        with self._log.open("ab") as log:
            # A session of its own, so that Ctrl-C at a terminal reaches the one who decides, and not the controller.
            self._process = subprocess.Popen(
                command + self._arguments,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_listening(self, deadline_s: float = 10.0) -> Event:
        """Waits until switches can connect; returns the event, with the port and the framework's version.

        Raises ControllerError when the process ends, reports an error or misses the deadline (seconds from now).
        """

        def listening() -> Event | None:
            return next((event for event in self._events_of_life if event["kind"] == "listening"), None)

        return self._wait(listening, deadline_s, lambda: "it does not listen")

    def wait_ready(self, deadline_s: float) -> Event:
        """Waits until every switch and port is up and every flow is acknowledged; returns the event.

        Raises ControllerError, which names what is missing, when the process ends, a switch refuses something or the
        deadline (seconds from now) passes.
        """

        def ready() -> Event | None:
            return next((event for event in self._events_of_life if event["kind"] == "ready"), None)

        return self._wait(ready, deadline_s, self.missing)

    def events(self) -> list[Event]:
        """The events since the last call; never waits."""
        self._read()
        events, self._unread = self._unread, []
        return events

    def alive(self) -> bool:
        """True while the process runs."""
        return self._process is not None and self._process.poll() is None

    def restart(self) -> None:
        """Ends the process if it runs, and starts another. Switches forward meanwhile. Raises ControllerError."""
        self.stop()
        self.start()

    def stop(self, deadline_s: float = 2.0) -> None:
        """Ends the process: SIGTERM, and SIGKILL when that has not helped within the deadline."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(deadline_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._read()

    def missing(self) -> str:
        """What is missing for ``ready``, by name."""
        self._read()
        connected, synced, ports = self._state()
        switches = [switch.name for switch in self._fabric.switches]
        parts = []
        absent = [name for name in switches if name not in connected]
        if absent:
            parts.append(f"not connected: {_listed(absent)}")
        unsynced = [name for name in switches if name in connected and name not in synced]
        if unsynced:
            parts.append(f"flows not acknowledged: {_listed(unsynced)}")
        down = [
            f"{end.node}:{end.number} ({link.name})"
            for link in self._fabric.links
            for end in (link.a, link.b)
            if end.node in connected and (end.node, end.number) not in ports
        ]
        if down:
            parts.append(f"ports not up: {_listed(down)}")
        return "; ".join(parts) or "nothing"

    def _state(self) -> tuple[set[str], set[str], set[tuple[str, int]]]:
        """Switches that are connected, switches that have acknowledged, ports that are up."""
        connected: set[str] = set()
        synced: set[str] = set()
        ports: set[tuple[str, int]] = set()
        for event in self._events_of_life:
            kind, name, detail = event["kind"], event["name"], event["detail"]
            if kind == "switch_up":
                connected.add(name)
                ports.update((name, number) for number in detail["ports_up"])
            elif kind == "switch_down":
                connected.discard(name)
                synced.discard(name)
            elif kind == "synced":
                synced.add(name)
            elif kind in ("port_up", "port_down"):
                end = (name.rpartition(":")[0], detail["port"])
                ports.add(end) if kind == "port_up" else ports.discard(end)
        return connected, synced, ports

    def _wait(self, found: Callable[[], Event | None], deadline_s: float, what: Callable[[], str]) -> Event:
        end = time.monotonic() + deadline_s
        while True:
            alive = self.alive()
            self._read()
            event = found()
            if event is not None:
                return event
            for problem in self._events_of_life:
                if problem["kind"] == "error":
                    raise ControllerError(f"controller: {problem['name']}: {problem['detail']}")
            if not alive:
                self._give_up_or_fall_back()
            if time.monotonic() >= end:
                raise ControllerError(f"the controller is not ready after {deadline_s:g} s: {what()}")
            time.sleep(_POLL_S)

    def _give_up_or_fall_back(self) -> None:
        """The process has ended. With ``auto``, another framework is tried when this one could not be used."""
        words = self._last_words()
        if self._process is None or self._process.returncode != NO_FRAMEWORK:
            code = self._process.returncode if self._process is not None else "none"
            raise ControllerError(f"the controller has ended (exit code {code}): {words or 'without a word'}")
        self._unusable.append(words)
        if len(self._candidates) < 2:
            raise ControllerError(f"no usable controller framework: {'; '.join(self._unusable)}")
        self._candidates.pop(0)
        self.start()

    def _last_words(self) -> str:
        """The last line that the process printed."""
        tail = ""
        if self._log.exists():
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - _LOG_TAIL_BYTES))
                tail = log.read().decode(errors="replace").strip().rpartition("\n")[2]
        return tail

    def _read(self) -> None:
        """Takes in the complete lines that have been written since."""
        if not self._events_file.exists():
            return
        with self._events_file.open("rb") as file:
            file.seek(self._read_to)
            data = file.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._read_to += len(complete)
        for line in complete.splitlines():
            event: Event = json.loads(line)
            self._events_of_life.append(event)
            self._unread.append(event)


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
