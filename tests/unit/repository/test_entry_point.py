"""``run.py`` finds or makes its environment and hands over, from wherever it is called."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.repository import rooms

# Instead of .venv's Python: says how it was called.
SHOW_CALL = '#!/bin/sh\nprintf "%s\\n" "$PYTHONPATH" "$PYTHONNOUSERSITE" "$PWD" "$@"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the entry point, with a set-up that only notes that it was called, and fails."""
    root = tmp_path / "a project"
    root.mkdir()
    shutil.copy(rooms.ROOT / "run.py", root)
    (root / "setup.sh").write_text('echo called\ntouch "$(dirname "$0")/called"\nexit 1\n')
    (root / "requirements.txt").write_text("numpy\n")
    (root / "constraints.txt").write_text("numpy==2.2.6\n")
    return root


def make_ready(root: Path, extent: str = "full") -> None:
    """What a set-up would leave: an environment and the stamp that setup.sh writes."""
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(SHOW_CALL)
    python.chmod(0o755)
    (root / ".venv" / ".setup-stamp").write_text(" ".join([*load(root).wanted_stamp(), extent]) + "\n")


def load(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_under_test", root / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(program: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "/somewhere/else", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(program), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60)


def test_without_an_environment_it_runs_the_set_up_and_keeps_standard_output_clean(project: Path) -> None:
    done = call(project / "run.py", "list", "--json")
    assert (project / "called").exists()
    assert done.returncode == 3
    assert done.stdout == ""
    assert "called" in done.stderr


def test_a_current_environment_is_used_as_it_is(project: Path) -> None:
    make_ready(project)
    done = call(project / "run.py", "path", "x y", "--ev", "1")
    assert not (project / "called").exists()
    assert done.stdout.splitlines()[3:] == [str(project / "run.py"), "path", "x y", "--ev", "1"]


def test_it_works_through_a_symlink_from_another_folder_which_stays_the_current_one(
    project: Path, tmp_path: Path
) -> None:
    make_ready(project)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = elsewhere / "mrc"
    link.symlink_to(project / "run.py")
    path, no_user_site, cwd, *_ = call(link, "list", cwd=elsewhere).stdout.splitlines()
    assert (path, no_user_site, cwd) == (str(project), "1", str(elsewhere))


@pytest.mark.parametrize("changed", ["setup.sh", "requirements.txt", "constraints.txt"])
def test_a_change_of_the_recipe_calls_for_a_new_set_up(project: Path, changed: str) -> None:
    make_ready(project)
    with (project / changed).open("a") as file:
        file.write("# changed\n")
    assert call(project / "run.py").returncode == 3
    assert (project / "called").exists()


@pytest.mark.parametrize(
    ("extent", "uid", "enough"),
    [("full", 0, True), ("full", 1000, True), ("python-only", 0, False), ("python-only", 1000, True)],
)
def test_root_needs_the_system_packages_too(
    project: Path, monkeypatch: pytest.MonkeyPatch, extent: str, uid: int, enough: bool
) -> None:
    make_ready(project, extent)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert load(project).is_set_up() is enough


def test_under_sudo_no_compiled_files_of_root_come_into_the_work_tree(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "1000")
    assert load(project).environment()["PYTHONDONTWRITEBYTECODE"] == "1"
    monkeypatch.delenv("SUDO_UID")
    assert "PYTHONDONTWRITEBYTECODE" not in load(project).environment()


def test_setup_sh_writes_the_stamp_that_run_py_wants() -> None:
    lines = (rooms.ROOT / "setup.sh").read_text(encoding="utf-8").splitlines()
    functions = [line for line in lines if line.startswith(("recipe_hash()", "stamp()", "system_python="))]
    assert len(functions) == 3
    script = "\n".join(["root=$1", *functions, "stamp full"])
    written = subprocess.run(["bash", "-c", script, "_", str(rooms.ROOT)], capture_output=True, text=True, check=True)
    assert written.stdout.split() == [*load(rooms.ROOT).wanted_stamp(), "full"]


def test_setup_sh_names_an_option_that_it_does_not_know() -> None:
    done = subprocess.run(["bash", str(rooms.ROOT / "setup.sh"), "--fast"], capture_output=True, text=True)
    assert done.returncode == 3
    assert "--fast" in done.stderr
