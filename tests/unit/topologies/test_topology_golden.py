"""Every bad file beside the exact text that a user must read.

After a deliberate change of a message: ``REWRITE_GOLDEN=1 pytest tests/unit/topologies/test_topology_golden.py``, then
read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from topologies.document import Document, InputErrors
from topologies.load import load_fabric

GOLDEN = Path(__file__).parent / "golden"
INPUTS = sorted(GOLDEN.glob("*.yaml"))


def errors_of(path: Path) -> str:
    with pytest.raises(InputErrors) as caught:
        load_fabric(Document.parse(path.read_text(encoding="utf-8"), path.name))
    return f"{caught.value}\n"


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_a_bad_file_is_answered_with_exactly_this_text(path: Path) -> None:
    expected = path.with_suffix(".txt")
    found = errors_of(path)
    if os.environ.get("REWRITE_GOLDEN"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_there_are_many_bad_files_and_no_text_without_its_file() -> None:
    assert len(INPUTS) >= 60
    assert {path.stem for path in INPUTS} == {path.stem for path in GOLDEN.glob("*.txt")}


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_every_mistake_names_its_file_and_says_something_once(path: Path) -> None:
    lines = errors_of(path).splitlines()
    assert len(set(lines)) == len(lines)
    assert all(line.startswith(f"{path.name}:") for line in lines)
