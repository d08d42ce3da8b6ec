"""Run the system's commands; an exit code is never dropped."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence

from testbed.errors import CommandError


def run(command: Sequence[str], *, stdin: str | None = None, timeout_s: float = 60.0) -> str:
    """Standard output of ``command``.

    Raises:
        CommandError: when it cannot be started, fails or takes longer than ``timeout_s`` seconds.
    """
    shown = " ".join(command)[:200]
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{shown}: no answer within {timeout_s:g} s") from error
    if done.returncode != 0:
        raise CommandError(f"{shown}: exit code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def batch(tool: str, lines: Iterable[str]) -> None:
    """Give ``ip`` or ``tc`` many commands in one process. Raises CommandError naming the first line that failed."""
    text = [*lines]
    if not text:
        return
    try:
        run([tool, "-batch", "-"], stdin="\n".join(text) + "\n")
    except CommandError as error:
        raise CommandError(f"{error}{_failed_line(str(error), text)}") from error


def _failed_line(message: str, lines: Sequence[str]) -> str:
    marker = "Command failed -:"
    if marker not in message:
        return ""
    number = message.split(marker, 1)[1].split()[0]
    return f" [{lines[int(number) - 1]}]" if number.isdigit() and 0 < int(number) <= len(lines) else ""
