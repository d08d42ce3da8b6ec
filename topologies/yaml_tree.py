"""YAML text -> plain data and the line of every key.

Stricter than PyYAML: duplicate keys are mistakes; ``on``, ``no``, ``1:30`` and dates stay text (YAML 1.2's core
schema); there are no custom tags; and every mistake has a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from topologies.errors import InputError, InputErrors, KeyPath, Place, format_key

MAX_NODES = 100_000
"""Aliases of aliases grow exponentially; a larger document than this is refused."""

_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_IMPLICIT = frozenset({"str", "int", "float", "bool", "null", "timestamp", "value", "merge"})
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass
class Tree:
    """What a file says.

    Attributes:
        data: mappings, lists, text, int, float, bool and None.
        places: file and line of each key and list item, by key path.
        mistakes: duplicate and unreadable keys; the rest of the document is still worth checking.
    """

    data: Any
    places: dict[KeyPath, Place] = field(default_factory=dict)
    mistakes: list[InputError] = field(default_factory=list)


def parse_yaml(text: str, file: str) -> Tree:
    """Read one YAML document. Raises InputErrors with one error when the text is not YAML."""

    def fail(message: str, line: int | None = None, hint: str = "") -> InputErrors:
        return InputErrors([InputError(file, line, "", message, hint)])

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = str(error.problem or error.context)
        if said.startswith("but ") and error.context:
            said = f"{error.context}, {said}"
        hint = _syntax_hint(said)
        if error.context and error.context.startswith("while parsing a flow ") and error.context_mark:
            hint = hint or f"see the bracket opened on line {error.context_mark.line + 1}"
        raise fail(f"not valid YAML: {said}", mark.line + 1 if mark else None, hint) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise fail(f"not valid YAML: character U+{error.character:04X} is not allowed", line) from None
    except RecursionError:
        raise fail("not valid YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        raise fail(f"not valid YAML: {error}") from None
    if root is None:
        raise fail("the file is empty")
    reader = _Reader(file)
    try:
        data = reader.value(root, ())
    except RecursionError:
        raise fail("not valid YAML: nested too deeply") from None
    return Tree(data, reader.places, reader.mistakes)


def _syntax_hint(problem: str) -> str:
    if "'\\t'" in problem:
        return "indent with spaces, not tabs"
    if "mapping values are not allowed" in problem:
        return "check the indentation, or quote text that holds `: `"
    if "cannot start any token" in problem:
        return "quote the text"
    return ""


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[KeyPath, Place] = {}
        self.mistakes: list[InputError] = []
        self._open: set[int] = set()
        self._count = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.places.setdefault(path, Place(self.file, node.start_mark.line + 1))
        self._count += 1
        if self._count > MAX_NODES:
            raise InputErrors([InputError(self.file, node.start_mark.line + 1, "", f"more than {MAX_NODES} values")])
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            raise InputErrors(
                [InputError(self.file, node.start_mark.line + 1, format_key(path), "holds an alias of itself")]
            )
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                self._check_tag(node, path, "seq")
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            self._check_tag(node, path, "map")
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._mistake(line, path, "a key must be text", "quote it")
                continue
            key = key_node.value
            if key_node.tag == f"{_TAG}merge":
                self._mistake(line, (*path, key), "merge keys are not supported", "repeat the keys")
                continue
            if not key or _has_surrogate(key):
                self._mistake(line, path, "a key must be readable text")
                continue
            if key in found:
                self._mistake(line, (*path, key), f"duplicate key, first on line {lines[key]}")
                continue
            empty = isinstance(value_node, yaml.ScalarNode) and not value_node.value and value_node.style is None
            if key.endswith(":"):
                self._mistake(line, (*path, key), "a key must not end with `:`", f"write `{key.rstrip(':')}: VALUE`")
                continue
            if empty and ":" in key:
                self._mistake(line, (*path, key), "has no value", f"a space is missing: `{key.replace(':', ': ', 1)}`?")
                continue
            lines[key] = line
            below = (*path, key)
            self.places[below] = Place(self.file, line)
            found[key] = self.value(value_node, below)
        return found

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text: str = node.value
        if _has_surrogate(text):
            self._mistake(node.start_mark.line + 1, path, "holds half a surrogate pair")
            return ""
        tag = node.tag
        if not tag.startswith(_TAG):
            if tag != "!":
                self._check_tag(node, path, "str")
            return text
        kind = tag[len(_TAG) :]
        if kind not in _IMPLICIT or (node.style is not None and kind != "str"):
            self._check_tag(node, path, "str")
        return _plain(text) if node.style is None else text

    def _check_tag(self, node: yaml.Node, path: KeyPath, expected: str) -> None:
        if node.tag != f"{_TAG}{expected}":
            self._mistake(node.start_mark.line + 1, path, f"the tag {node.tag} is not supported", "leave it out")

    def _mistake(self, line: int, path: KeyPath, message: str, hint: str = "") -> None:
        self.mistakes.append(InputError(self.file, line, format_key(path), message, hint))


def _plain(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) < 1e300 else text
    return text


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def parse_scalar(text: str) -> Any:
    """The value of a command-line setting, read as one YAML value (``8``, ``20 Mbit/s``, ``[1, 2]``).

    Raises InputErrors when the text is not YAML.
    """
    if not text.strip():
        return None
    return parse_yaml(text, "").data


def walk(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value below ``data`` with its key path, parents first."""
    yield path, data
    if isinstance(data, dict):
        for key, value in data.items():
            yield from walk(value, (*path, key))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from walk(value, (*path, index))
