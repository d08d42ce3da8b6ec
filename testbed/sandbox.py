"""The outside of a run's namespaces: start a command in them, talk to it in JSON lines, end it for certain.

The command reads requests from standard input and writes events to standard output, one JSON document a line; its
standard error goes to a log file. See `init.py` for how the kernel guarantees that nothing outlives the caller.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class SandboxError(RuntimeError):
    """The namespaces could not be made or the command in them could not be talked to."""


class Sandbox:
    """A command running in namespaces of its own.

    Args:
        command: what to run, for example ``[sys.executable, "-m", "experiments.cell", "cell.json"]``.
        log: file that receives the command's standard error.

    Raises:
        SandboxError: without root.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        if os.geteuid() != 0:
            raise SandboxError("making network namespaces needs root: run it with sudo")
        self.timed_out = False
        self._deadline = float("inf")
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "testbed.init", str(os.getpid()), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            # A session of its own: Ctrl-C reaches the caller alone, which then asks the command to stop.
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Process id, outside, of the process that holds the namespaces."""
        return self._process.pid

    def send(self, request: dict[str, Any]) -> None:
        """Send one request. A command that has ended takes none; that is not an error."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def events(self, *, deadline_s: float, wake_s: float) -> Iterator[dict[str, Any] | None]:
        """Every event as it comes, until the command ends or its time is over (see ``timed_out``).

        Yields None whenever nothing has come for ``wake_s`` seconds.

        Raises:
            SandboxError: for a line that is not a JSON object.
        """
        assert self._process.stdout is not None
        self.set_deadline(deadline_s)
        pending = b""
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                self.timed_out = True
                return
            if not select.select([self._process.stdout], [], [], min(wake_s, left))[0]:
                yield None
                continue
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise SandboxError(f"not an event: {line!r}") from error

    def set_deadline(self, seconds: float) -> None:
        """Give the command ``seconds`` from now."""
        self._deadline = time.monotonic() + seconds

    def wait(self, timeout_s: float | None = None) -> int:
        """The command's exit code; 128 + n when signal n ended it. Raises subprocess.TimeoutExpired."""
        code = self._process.wait(timeout_s)
        return 128 - code if code < 0 else code

    def close(self, grace_s: float = 0.0) -> int:
        """End the command and its namespaces: wait ``grace_s`` seconds for it to end by itself, then kill."""
        deadline = time.monotonic() + grace_s
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._process.poll() is None:
            self._process.terminate()
        try:
            code = self.wait(timeout_s=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return code

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
