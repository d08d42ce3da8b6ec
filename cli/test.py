"""``run.py test``: the test suite, run by pytest in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.console import BAD_INPUT, DONE, FAILED, MACHINE_LACKS, ROOT, CommandError, give_to_caller, say

UNIT = "tests/unit"
EVERYTHING = "tests"

# pytest's own codes; any other than these is a failed run.
_PYTEST_USAGE = 4
_PYTEST_NO_TESTS = 5


def command(
    pytest_arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- PYTEST_ARGUMENTS", help="Given to pytest as they are.")
    ] = None,
    unit: Annotated[bool, typer.Option("--unit", help="Only the tests that need no root; seconds.")] = False,
) -> None:
    """Run the test suite.

    The whole suite makes networks, so it needs root. What comes after -- goes to pytest:
    sudo ./run.py test -- -x -k handover
    """
    if not unit and os.geteuid() != 0:
        raise CommandError(
            "the whole suite makes networks, which needs root; type: sudo ./run.py test"
            " (or, for the part that does not: ./run.py test --unit)",
            MACHINE_LACKS,
        )
    if not unit:
        _install_ryu()
    arguments = pytest_command(pytest_arguments or [], unit=unit)
    code = exit_code(_call(arguments))
    give_to_caller(ROOT / ".pytest_cache", ROOT / ".hypothesis")
    raise typer.Exit(code)


def pytest_command(extra: Sequence[str], *, unit: bool) -> list[str]:
    """The command that runs pytest: on what ``extra`` names, or on the unit tests or everything if it names nothing."""
    named = any((ROOT / word.partition("::")[0]).exists() for word in extra if not word.startswith("-"))
    chosen = [] if named else [UNIT if unit else EVERYTHING]
    return [sys.executable, "-m", "pytest", *chosen, *extra]


def exit_code(pytest_code: int) -> int:
    """Our exit code for pytest's. A run of no tests has shown nothing, so it has failed."""
    if pytest_code == 0:
        return DONE
    if pytest_code == _PYTEST_NO_TESTS:
        say("error: no test was run")
    return BAD_INPUT if pytest_code == _PYTEST_USAGE else FAILED


def _call(arguments: Sequence[str]) -> int:
    """Runs pytest to its end. Ctrl-C reaches pytest too, which then says what it has: only wait for it."""
    with subprocess.Popen(arguments, cwd=ROOT) as pytest:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return pytest.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _install_ryu() -> None:
    """Makes the second controller backend's environment where it is missing; its tests are skipped by name without."""
    if not Path(ROOT, "controller", "install_ryu.sh").is_file() or Path(ROOT, ".venv-ryu", "bin", "python").exists():
        return
    subprocess.run(["bash", str(ROOT / "setup.sh"), "--with-ryu"], stdout=sys.stderr, check=False)
