"""What is wrong with a user's file, said once and completely: place, key, message and hint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic_core import PydanticCustomError

KeyPath = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_#+-]+")


class Place(NamedTuple):
    """Where a value came from: a file and a line counted from 1, or another origin (``--set k=6``) and no line."""

    file: str
    line: int | None


@dataclass(frozen=True)
class InputError:
    """One mistake in a user's input.

    Attributes:
        file: the file, or the command-line option, that holds the mistake.
        line: counted from 1; None when the origin is not a file.
        key: dotted key path, for example ``links.host.rate``; empty when the mistake has no key.
        message: what is wrong.
        hint: what to write instead, or empty.
    """

    file: str
    line: int | None
    key: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = ": ".join(part for part in (place, self.key, self.message) if part)
        return printable(f"{text} ({self.hint})" if self.hint else text)


class InputErrors(Exception):
    """All mistakes found in one pass. ``str()`` is one line for each."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


def problem(message: str, hint: str = "") -> PydanticCustomError:
    """An error for a pydantic validator to raise; message and hint reach the user as they are."""
    return PydanticCustomError("problem", "{message}", {"message": message, "hint": hint})


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """``did you mean `rate`?`` for the closest candidate, or an empty string."""
    close = difflib.get_close_matches(word, sorted(set(candidates)), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else ""


def one_of(words: Iterable[str]) -> str:
    """``a, b or c``."""
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def printable(text: str) -> str:
    """The text with control characters and lone surrogates escaped, so that any terminal can show it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def format_key(path: Sequence[str | int]) -> str:
    """A key path as text: ``links.overrides."h1-p1.leaf1".rate``; names that hold a dot are quoted."""
    return ".".join(
        part
        if isinstance(part, str) and _PLAIN_KEY.fullmatch(part)
        else f'"{part}"'
        if isinstance(part, str)
        else str(part)
        for part in path
    )


def split_key(text: str) -> tuple[str, ...]:
    """The parts of a key path written by ``format_key``. Raises ValueError when the text is no key path."""
    parts: list[str] = []
    position = 0
    token = re.compile(r'"([^"]*)"|\'([^\']*)\'|([^."\']+)')
    while True:
        match = token.match(text, position)
        if match is None:
            raise ValueError(f"{text!r} is not a key path")
        parts.append(next(group for group in match.groups() if group is not None))
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise ValueError(f"{text!r} is not a key path")
        position += 1
