"""The progress bar of a run: which cell, which phase, what has been delivered, how long it will still take."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from cli.console import say

REST = 0.98
"""How far time alone moves the bar of a cell that takes longer than expected."""


class RunProgress:
    """One bar for the whole run. Without a terminal: one line for each cell that ends."""

    def __init__(self, total_s: float) -> None:
        self._total = total_s
        self._before = 0.0
        self._expected = 0.0
        self._began = time.monotonic()
        self._label = ""
        self._phase = ""
        self._bytes = 0
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:3.0f} %  {task.fields[left]}"),
                console=Console(stderr=True),
                transient=True,
            )

    def __enter__(self) -> RunProgress:
        if self._bar is not None:
            self._task = self._bar.add_task("starting", total=self._total, left="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def cell_started(self, number: int, total: int, label: str, expected_s: float) -> None:
        """See `experiments.runner.Progress`."""
        self._label = f"[{number + 1}/{total}] {label}"
        self._expected, self._began, self._phase, self._bytes = expected_s, time.monotonic(), "starting", 0
        self._show()

    def phase(self, name: str) -> None:
        """See `experiments.runner.Progress`."""
        self._phase = name
        self._show()

    def delivered(self, payload_bytes: int) -> None:
        """See `experiments.runner.Progress`."""
        self._bytes = payload_bytes
        self._show()

    def cell_finished(self, label: str, status: str, reason: str | None) -> None:
        """See `experiments.runner.Progress`."""
        took = time.monotonic() - self._began
        self._before += self._expected
        told = f"{self._label}: {status}, {self._bytes / 1e6:.1f} MB delivered, {took:.1f} s" + (
            f": {reason}" if reason else ""
        )
        if self._bar is None:
            say(told)
        else:
            self._bar.console.print(told, highlight=False, markup=False)
            self._show()

    def _show(self) -> None:
        if self._bar is None:
            return
        in_cell = min(time.monotonic() - self._began, REST * self._expected)
        done = min(self._total, self._before + in_cell)
        left = f"{max(0, round(self._total - done))} s left"
        text = f"{self._label}: {self._phase}, {self._bytes / 1e6:.1f} MB"
        self._bar.update(self._task, completed=done, description=text, left=left)
