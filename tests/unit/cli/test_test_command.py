"""``run.py test`` runs pytest on the right part and never calls a run of nothing a success."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import console, main
from cli.test import exit_code, pytest_command


def test_without_root_the_whole_suite_is_refused_and_the_part_that_runs_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main.main(["test"]) == console.MACHINE_LACKS
    said = capsys.readouterr().err
    assert "sudo ./run.py test" in said
    assert "--unit" in said


@pytest.mark.parametrize(
    ("extra", "unit", "chosen"),
    [
        ([], False, ["tests"]),
        ([], True, ["tests/unit"]),
        (["-x", "-k", "handover"], True, ["tests/unit", "-x", "-k", "handover"]),
        (["tests/unit/cli"], False, ["tests/unit/cli"]),
        (["tests/unit/cli/test_test_command.py::test_x"], True, ["tests/unit/cli/test_test_command.py::test_x"]),
    ],
)
def test_pytest_gets_what_is_named_or_the_default_part(extra: list[str], unit: bool, chosen: list[str]) -> None:
    assert pytest_command(extra, unit=unit)[1:] == ["-m", "pytest", *chosen]


@pytest.mark.parametrize(
    ("of_pytest", "ours"),
    [(0, console.DONE), (1, console.FAILED), (2, console.FAILED), (3, console.FAILED), (4, console.BAD_INPUT)],
)
def test_the_exit_code_is_one_of_ours(of_pytest: int, ours: int) -> None:
    assert exit_code(of_pytest) == ours


def test_a_run_of_no_tests_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(5) == console.FAILED
    assert "no test was run" in capsys.readouterr().err


def test_pytests_closing_line_is_the_last_of_standard_output(tmp_path: Path) -> None:
    test = tmp_path / "test_one.py"
    test.write_text("def test_one():\n    pass\n")
    command = [sys.executable, "-m", "cli.main", "test", "--unit", "--", str(test)]
    done = subprocess.run(command, cwd=console.ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert "1 passed" in done.stdout.splitlines()[-1]
