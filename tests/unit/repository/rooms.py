"""What the tests of the repository share: the rooms, their files, and what a file imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# Each room and the rooms that it may import.
MAY_IMPORT = {
    "topologies": set(),
    "mrc_agent": set(),
    "results": set(),
    "controller": {"topologies"},
    "testbed": {"controller", "topologies"},
    "experiments": {"testbed", "controller", "topologies", "mrc_agent", "results"},
    "cli": {"experiments", "testbed", "controller", "topologies", "mrc_agent", "results"},
}


def files_of(room: str) -> list[Path]:
    """Every Python file of a room."""
    return sorted((ROOT / room).rglob("*.py"))


def all_files() -> list[Path]:
    """Every Python file of every room."""
    return [path for room in MAY_IMPORT for path in files_of(room)]


def shown(path: Path) -> str:
    """The path as the tests' messages show it."""
    return path.relative_to(ROOT).as_posix()


def imported_modules(source: str) -> set[str]:
    """The full names of all modules that a source text imports, wherever in it, also by ``import_module("...")``.

    A ``from a import b`` gives ``a.b``: whether ``b`` is a module or a name in one, its room is the same.
    """
    return set(_imports(ast.parse(source)))


def imported_roots(path: Path) -> set[str]:
    """The top-level packages that a file imports."""
    return {name.partition(".")[0] for name in imported_modules(path.read_text(encoding="utf-8"))}


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import stays inside its room unless it climbs out of it, which no room may do.
            module = node.module or ""
            prefix = "." * node.level
            yield from (f"{prefix}{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.args[0].value
