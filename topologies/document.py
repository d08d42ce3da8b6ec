"""A YAML file whose every value knows its line: loading, changing, checking and writing it.

Topologies and experiments share it, so that all of a user's mistakes come out in one pass and in one form.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from topologies.errors import InputError, InputErrors, KeyPath, Place, did_you_mean, format_key, split_key
from topologies.explain import explain
from topologies.yaml_tree import parse_scalar, parse_yaml, walk


class StrictModel(BaseModel):
    """Base of all models of a user's file: no unknown keys, no silent conversions, immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)

    not_yet: ClassVar[Mapping[str, str]] = {}
    """Keys that are planned but not supported, with a hint for whoever uses one."""


M = TypeVar("M", bound=BaseModel)


class Problems:
    """Collects the mistakes of one document: the model's own and those of checks that the model cannot express."""

    def __init__(self, document: Document, errors: Iterable[InputError] = (), broken: Iterable[KeyPath] = ()) -> None:
        self._document = document
        self._errors = list(errors)
        self._broken = set(broken)

    def add(self, path: str | KeyPath, message: str, hint: str = "") -> None:
        """Record a mistake at a key path (of the document, not of the model's attributes)."""
        parts = self._document.locate(path)
        self._broken.add(parts)
        self._errors.append(self._document.error(parts, message, hint))

    def extend(self, errors: Iterable[InputError]) -> None:
        """Record mistakes of another document."""
        self._errors.extend(errors)

    def broken(self, *paths: str | KeyPath) -> bool:
        """Whether a mistake is known at, above or below one of these key paths; a broken key reads as its default."""
        for path in map(self._document.locate, paths):
            for known in self._broken:
                shared = min(len(path), len(known))
                if path[:shared] == known[:shared]:
                    return True
        return False

    @property
    def errors(self) -> tuple[InputError, ...]:
        """All mistakes, in the order of the file; those of command-line options last."""
        unique = dict.fromkeys(self._errors)
        return tuple(sorted(unique, key=lambda error: (error.line is None, error.line or 0)))

    def raise_if_any(self) -> None:
        """Raises InputErrors when a mistake was recorded."""
        if self._errors:
            raise InputErrors(self.errors)


def as_path(path: str | KeyPath) -> KeyPath:
    """A key path as a tuple. Text is split at dots; a name that holds dots is quoted (``overrides."a.1-b.1"``)."""
    return split_key(path) if isinstance(path, str) else path


class Document:
    """The data of a YAML file, with the origin of each value.

    Attributes:
        data: the top-level value: mappings, lists, text, numbers, bool and None.
        file: its name, as shown in messages.
        mistakes: duplicate and malformed keys found while reading; ``validate`` reports them.
    """

    def __init__(
        self,
        data: Any,
        places: Mapping[KeyPath, Place],
        file: str,
        *,
        mistakes: Iterable[InputError] = (),
        prefix: KeyPath = (),
    ) -> None:
        self.data = data
        self.file = file
        self._places = dict(places)
        self.mistakes = tuple(mistakes)
        self._prefix = prefix

    @classmethod
    def load(cls, path: str | Path) -> Document:
        """Read a file. Raises InputErrors when it cannot be read or is not YAML.

        Duplicate and malformed keys are kept and reported by ``validate``, together with everything else.
        """
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise InputErrors([InputError(str(path), None, "", "is not UTF-8 text")]) from None
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise InputErrors([InputError(str(path), None, "", f"cannot be read: {reason}")]) from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, file: str = "<text>") -> Document:
        """Read YAML text; ``file`` is the name that messages show. Raises InputErrors when it is not YAML."""
        tree = parse_yaml(text, file)
        return cls(tree.data, tree.places, file, mistakes=tree.mistakes)

    def copy(self) -> Document:
        """An independent document, for trying other settings."""
        return Document(copy.deepcopy(self.data), self._places, self.file, mistakes=self.mistakes, prefix=self._prefix)

    def section(self, path: str | KeyPath) -> Document:
        """The part below a key as a document of its own; its messages still show the whole key path and the line.

        Raises KeyError when the key does not exist.
        """
        parts = as_path(path)
        value = self.data
        for part in parts:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                raise KeyError(format_key(parts)) from None
        places = {key[len(parts) :]: place for key, place in self._places.items() if key[: len(parts)] == parts}
        return Document(copy.deepcopy(value), places, self.file, prefix=(*self._prefix, *parts))

    def get(self, path: str | KeyPath, default: Any = None) -> Any:
        """The value at a key path, or ``default``."""
        try:
            found, missing = self._resolve(as_path(path))
        except InputErrors:
            return default
        if missing:
            return default
        value = self.data
        for part in found:
            value = value[part]
        return value

    def locate(self, path: str | KeyPath) -> KeyPath:
        """A key path with list positions as numbers and names that hold dots in one piece, as far as it exists."""
        asked = as_path(path)
        try:
            found, missing = self._resolve(asked)
        except InputErrors:
            return asked
        return (*found, *missing)

    def where(self, path: str | KeyPath) -> Place:
        """File and line of a key, or of the closest key above it that exists."""
        parts = self.locate(path)
        for length in range(len(parts), -1, -1):
            if parts[:length] in self._places:
                return self._places[parts[:length]]
        return Place(self.file, None)

    def error(self, path: str | KeyPath, message: str, hint: str = "") -> InputError:
        """A mistake at a key path of this document."""
        parts = self.locate(path)
        return InputError(*self.where(parts), format_key((*self._prefix, *parts)), message, hint)

    def set(self, path: str | KeyPath, value: Any, origin: str) -> None:
        """Set the value at a key path, creating mappings on the way; ``origin`` is shown instead of file and line.

        A name that holds dots may be quoted, and need not be where the key exists already. List items are addressed by
        their position from 0; one past the end appends. Raises InputErrors when the path leads through a value that is
        neither a mapping nor a list, or outside a list.
        """
        try:
            asked = as_path(path)
        except ValueError as error:
            raise InputErrors([InputError(origin, None, "", str(error))]) from None
        found, missing = self._resolve(asked, origin)
        parts = (*found, *missing)
        if not isinstance(self.data, dict):
            self.data = {}
        target = self.data
        for part in parts[:-1]:
            if isinstance(target, list) and part == len(target):
                target.append({})
            elif isinstance(target, dict) and target.get(part) is None:
                target[part] = {}
            target = target[part]
        last = parts[-1]
        own = copy.deepcopy(value)  # a later set() below it must not reach into the caller's data
        if isinstance(target, list) and last == len(target):
            target.append(own)
        else:
            target[last] = own
        self._forget(parts)
        for below, _ in walk(value, parts):
            self._places[below] = Place(origin, None)

    def overlay(self, other: Mapping[str, Any] | Document, origin: str = "") -> None:
        """Lay another mapping over this one: mappings merge, everything else replaces.

        The values of a Document keep their own file and line; those of a plain mapping get ``origin``.
        """
        source = other if isinstance(other, Document) else None
        self._overlay(source.data if source else other, (), source, origin)

    def _overlay(self, layer: Any, path: KeyPath, source: Document | None, origin: str) -> None:
        for key, value in layer.items():
            parts = (*path, key)
            if isinstance(value, Mapping) and isinstance(self.get(parts), dict):
                self._overlay(value, parts, source, origin)
                continue
            self.set(parts, value, origin)
            if source:
                for below, _ in walk(value, parts):
                    self._places[below] = source.where(below)

    def validate(self, model: type[M], check: Callable[[M, Problems], None] | None = None) -> M:
        """The document as a model. Raises InputErrors with every mistake at once.

        ``check`` looks at what the model cannot express (dangling names, impossible combinations) and adds to the
        Problems it gets. It runs even when some keys are broken, with these keys left out; ``Problems.broken`` tells.
        """
        faults = explain(self.data, model)
        errors = [*self.mistakes, *(self.error(fault.path, fault.message, fault.hint) for fault in faults)]
        broken = [fault.path for fault in faults]
        problems = Problems(self, errors, broken)
        parsed = _parse(_without(self.data, broken), model)
        if check is not None and parsed is not None:
            check(parsed, problems)
        problems.raise_if_any()
        if parsed is None:
            raise AssertionError(f"{self.file}: {model.__name__} rejects data that has no fault")
        return parsed

    def dump(self) -> str:
        """The document as YAML text, in the order of its keys."""
        return dump_yaml(self.data)

    def _forget(self, parts: KeyPath) -> None:
        for key in [key for key in self._places if key[: len(parts)] == parts]:
            del self._places[key]

    def _resolve(self, asked: KeyPath, origin: str = "") -> tuple[KeyPath, KeyPath]:
        """Split a path into the part that exists and the part that does not. Joins parts where a key holds dots."""
        found: list[str | int] = []
        value = self.data
        rest = list(asked)
        while rest:
            if isinstance(value, dict):
                for length in range(len(rest), 0, -1):
                    key = ".".join(str(part) for part in rest[:length])
                    if key in value:
                        found.append(key)
                        value = value[key]
                        del rest[:length]
                        break
                else:
                    return tuple(found), tuple(str(part) for part in rest)
            elif isinstance(value, list):
                index = self._index(rest[0], len(value), (*found, rest[0]), origin)
                if index == len(value):
                    return tuple(found), (index, *(str(part) for part in rest[1:]))
                found.append(index)
                value = value[index]
                del rest[0]
            elif value is None:
                return tuple(found), tuple(str(part) for part in rest)
            else:
                where = format_key(tuple(found)) or "the document"
                raise InputErrors(
                    [InputError(origin, None, format_key(asked), f"{where} is neither a mapping nor a list")]
                )
        return tuple(found), ()

    @staticmethod
    def _index(part: str | int, length: int, path: KeyPath, origin: str) -> int:
        text = str(part)
        if not text.isdecimal() or int(text) > length:
            hint = f"it holds {length} items, counted from 0"
            raise InputErrors([InputError(origin, None, format_key(path), "no such list item", hint)])
        return int(text)


def parse_setting(text: str, option: str = "--set") -> tuple[KeyPath, Any, str]:
    """Key path, value and origin of a command-line setting ``links.host.rate=20 Mbit/s``.

    Raises InputErrors when it has no ``=`` or its value is not YAML.
    """
    origin = f"{option} {text}"
    key, separator, value = text.partition("=")
    if not separator:
        raise InputErrors([InputError(origin, None, "", "no `=` found", f"write {option} key.path=value")])
    try:
        return split_key(key.strip()), parse_scalar(value), origin
    except ValueError as error:
        raise InputErrors([InputError(origin, None, "", str(error))]) from None
    except InputErrors as error:
        raise InputErrors([InputError(origin, None, key.strip(), fault.message) for fault in error.errors]) from None


def dump_yaml(data: Any) -> str:
    """Plain data as YAML text, in its own order."""
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)


def dump_model(model: BaseModel) -> str:
    """A model as YAML text that loads back to an equal model; keys without a value are left out."""
    return dump_yaml(model.model_dump(mode="json", by_alias=True, exclude_none=True))


def _parse(data: Any, model: type[M]) -> M | None:
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError:
        return None


def _without(data: Any, broken: Iterable[KeyPath]) -> Any:
    """A copy without the broken keys. List items stay where they are, so that key paths keep their meaning."""
    pruned = copy.deepcopy(data)
    for path in broken:
        target = pruned
        for part in path[:-1]:
            try:
                target = target[part]
            except (KeyError, IndexError, TypeError):
                break
        else:
            if path and isinstance(target, dict):
                target.pop(path[-1], None)
    return pruned


__all__ = [
    "Document",
    "InputError",
    "InputErrors",
    "KeyPath",
    "Place",
    "Problems",
    "StrictModel",
    "as_path",
    "did_you_mean",
    "dump_model",
    "dump_yaml",
    "parse_setting",
]
