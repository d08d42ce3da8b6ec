"""The command line: quick, with one table, and exit codes instead of tracebacks."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import console, main

# Files of cli/ that are no commands.
SHARED = {"__init__", "main", "console", "options", "outcome", "progress"}


def python(source: str) -> subprocess.CompletedProcess[str]:
    """Runs a source text in a Python of its own, in the project's folder."""
    return subprocess.run([sys.executable, "-c", source], cwd=console.ROOT, capture_output=True, text=True, timeout=60)


def test_every_file_is_a_command_of_the_table_or_shared() -> None:
    files = {path.stem for path in (console.ROOT / "cli").glob("*.py")} - SHARED
    assert files == {line.module or name for name, line in main.available().items()}


@pytest.mark.parametrize("name", main.available())
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"cli.{main.COMMANDS[name].module or name}")
    assert hasattr(module, "command") or hasattr(module, "app")
    assert main.main([name, "--help"]) == console.DONE
    assert f"run.py {name}" in capsys.readouterr().out


def test_help_names_every_command_and_marks_those_that_need_root(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == console.DONE
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name, line in main.available().items():
        start = ["*", name] if line.network else [name]
        assert any(found[: len(start)] == start for found in words)


def test_help_loads_no_library() -> None:
    source = "import sys; from cli.main import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = python(source)
    assert done.returncode == 0
    assert "'cli.main'" in done.stderr
    for library in ("typer", "rich", "numpy", "pydantic", "mininet", "topologies"):
        assert f"'{library}'" not in done.stderr


def test_validate_needs_no_mininet() -> None:
    source = (
        "import sys; sys.modules.update(mininet=None); from cli.main import main;"
        "sys.exit(main(['validate', 'topologies/fat_tree.yaml', 'experiments/quickstart.yaml']))"
    )
    done = python(source)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistyped_command_is_named_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["tset"]) == console.BAD_INPUT
    assert "did you mean test?" in capsys.readouterr().err


def test_a_wrong_option_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["test", "--wrong"]) == console.BAD_INPUT
    assert "--wrong" in capsys.readouterr().err


def test_version_is_the_one_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == console.DONE
    assert main.version() in capsys.readouterr().out
    assert main.version()[0].isdigit()


@pytest.mark.parametrize("name", [name for name, line in main.available().items() if line.network])
def test_without_root_a_network_command_says_what_to_type(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main.main([name, "some.yaml"]) == console.MACHINE_LACKS
    assert f"sudo ./run.py {name} some.yaml" in capsys.readouterr().err


def test_a_python_without_mininet_names_one_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(console, "imports_mininet", lambda path: path == "/usr/bin/python3")
    with pytest.raises(console.CommandError, match="cannot import Mininet; /usr/bin/python3 can") as caught:
        console.require_mininet()
    assert caught.value.code == console.MACHINE_LACKS
    assert "\n" not in str(caught.value)


def test_where_no_python_has_mininet_the_set_up_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(console, "imports_mininet", lambda path: False)
    with pytest.raises(console.CommandError, match=r"sudo \./setup\.sh"):
        console.require_mininet()


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "--help"]])
def test_a_reader_that_has_seen_enough_is_no_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "cli.main", *arguments]
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(command, cwd=console.ROOT, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.stderr == ""


@pytest.mark.parametrize(("place", "code"), main.USER_ERRORS.items())
def test_an_error_meant_for_the_user_exists_and_has_its_exit_code(place: str, code: int) -> None:
    module, _, name = place.rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    assert main.exit_code_of(kind.__new__(kind)) == code


def test_any_other_error_is_called_a_mistake_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_down(name: str, *arguments: str) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(main, "_run", break_down)
    assert main.main(["list"]) == console.FAILED
    assert "please report it" in capsys.readouterr().err


def test_under_sudo_files_are_given_to_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / "folder" / "link").symlink_to("/etc/passwd")
    given: dict[str, tuple[int, int, bool]] = {}
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def chown(path: Path, user: int, group: int, *, follow_symlinks: bool) -> None:
        given[path.name] = (user, group, follow_symlinks)

    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_GID", "1001")
    console.give_to_caller(tmp_path / "folder", tmp_path / "not there")
    assert given == dict.fromkeys(("folder", "file", "link"), (1000, 1001, False))
    given.clear()
    monkeypatch.delenv("SUDO_UID")
    console.give_to_caller(tmp_path / "folder")
    assert given == {}
