"""Habits that keep the repository readable, and its documents true."""

from __future__ import annotations

import ast
import re

import pytest

from cli.main import available
from tests.unit.repository import rooms

LONGEST_FILE = 400
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *(rooms.shown(path) for path in sorted((rooms.ROOT / "docs").glob("*.md"))),
]

# In the standard library only after Python 3.10, the oldest that is supported.
TOO_NEW = {"tomllib", "enum.StrEnum", "typing.Self", "typing.assert_never", "datetime.UTC", "asyncio.TaskGroup"}


def test_no_file_of_a_room_is_longer_than_its_reader_likes() -> None:
    lengths = {rooms.shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in rooms.all_files()}
    assert not {path: length for path, length in lengths.items() if length > LONGEST_FILE}


@pytest.mark.parametrize("room", rooms.MAY_IMPORT)
def test_a_room_says_what_it_is_and_where_to_start(room: str) -> None:
    docstring = ast.get_docstring(ast.parse((rooms.ROOT / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert re.search(r"\b[Ii]mports?\b", docstring), "say what the room may import"
    assert re.search(r"[Ss]tart", docstring), "say where to start reading"


def test_every_file_says_what_it_is() -> None:
    silent = [path for path in rooms.all_files() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert not [rooms.shown(path) for path in silent]


def test_nothing_happens_at_import() -> None:
    assert not [
        f"{rooms.shown(path)}:{line}" for path in rooms.all_files() for line in calls_at_import(path.read_text())
    ]


def test_a_call_at_import_is_seen() -> None:
    assert calls_at_import("import os\nos.mkdir('x')\nNAME = len('x')\n") == [2]


def calls_at_import(source: str) -> list[int]:
    """The lines of calls made for their effect when a module is imported."""
    body = ast.parse(source).body
    return [node.lineno for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]


def test_every_file_can_be_read_by_the_oldest_python() -> None:
    for path in rooms.all_files():
        source = path.read_text(encoding="utf-8")
        ast.parse(source, feature_version=(3, 10))
        assert not rooms.imported_modules(source) & TOO_NEW, rooms.shown(path)


def test_run_py_is_short_and_needs_the_standard_library_alone() -> None:
    run_py = rooms.ROOT / "run.py"
    source = run_py.read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    assert len(source.splitlines()) < 80
    assert rooms.imported_roots(run_py) == {"hashlib", "os", "subprocess", "sys", "pathlib", "cli"}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_commands_in_a_document_exist(document: str) -> None:
    named = set(re.findall(r"run\.py ([a-z][a-z_-]*)", (rooms.ROOT / document).read_text(encoding="utf-8")))
    assert named <= available().keys()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_files_that_a_document_points_at_exist(document: str) -> None:
    path = rooms.ROOT / document
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    here = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert not [target for target in here if not (path.parent / target).exists()]


def test_every_requirement_is_pinned_to_one_version() -> None:
    pins = _lines("constraints.txt")
    assert not [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin)]
    pinned = {_canonical(pin.partition("==")[0]) for pin in pins}
    assert {_canonical(name) for name in _lines("requirements.txt")} <= pinned


def _lines(name: str) -> list[str]:
    lines = (rooms.ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
