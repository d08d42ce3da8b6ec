"""pydantic's errors in our own words: key paths of the file, short messages, hints."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from topologies.errors import KeyPath, did_you_mean, one_of
from topologies.yaml_tree import walk


@dataclass(frozen=True)
class Fault:
    """A mistake at a key path, before its line is known."""

    path: KeyPath
    message: str
    hint: str = ""


def explain(data: Any, model: type[BaseModel]) -> list[Fault]:
    """Everything that keeps ``data`` from being a ``model``; empty when nothing does."""
    empty = [path for path, value in walk(data) if value is None and path]
    short: set[KeyPath] = set()
    faults = {path: Fault(path, "has no value", "give it one, or remove the key") for path in empty}
    try:
        model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            fault = _fault(data, model, detail)
            if detail["type"] == "extra_forbidden":
                faults[fault.path] = fault
            elif not any(fault.path[: len(path)] == path for path in empty):
                faults.setdefault(fault.path, fault)
                if detail["type"] == "too_short":
                    short.add(fault.path)
    # pydantic counts only the good items of a list; what is wrong with the bad ones is said already.
    return [fault for path, fault in faults.items() if path not in short or not _any_below(path, faults)]


def _any_below(path: KeyPath, faults: Mapping[KeyPath, Fault]) -> bool:
    return any(other[: len(path)] == path and other != path for other in faults)


def _fault(data: Any, model: type[BaseModel], detail: ErrorDetails) -> Fault:
    path = _key_path(data, detail)
    kind = detail["type"]
    context = detail.get("ctx", {})
    value = detail["input"]
    if kind == "extra_forbidden":
        return Fault(path, *_unknown_key(model, path, data))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key = str(context["discriminator"]).strip("'")
        tags = [tag.strip(" '") for tag in str(context.get("expected_tags", "")).split(",") if tag.strip()]
        if kind == "union_tag_not_found":
            return Fault((*path, key), "is missing")
        return Fault((*path, key), f"unknown {key} {_show(context['tag'])}", _choice(str(context["tag"]), tags))
    if kind == "literal_error":
        words = [word.strip(" '") for word in str(context["expected"]).replace(" or ", ", ").split(",")]
        if not isinstance(value, (str, int, float, bool)):
            return Fault(path, f"must be {one_of(words)}")
        return Fault(
            path,
            f"unknown value {_show(value)}" if len(words) > 1 else f"must be {words[0]}",
            _choice(str(value), words),
        )
    if kind == "problem":
        return Fault(path, str(context["message"]), str(context["hint"]))
    return Fault(path, _plain_message(kind, context, detail["msg"], value))


def _choice(word: str, words: list[str]) -> str:
    if len(words) < 2:
        return ""
    return did_you_mean(word, words) or f"one of {one_of(words)}"


def _plain_message(kind: str, context: Mapping[str, Any], message: str, value: Any) -> str:
    simple = {
        "missing": "is missing",
        "greater_than": f"must be more than {context.get('gt')}",
        "greater_than_equal": f"must be at least {context.get('ge')}",
        "less_than": f"must be less than {context.get('lt')}",
        "less_than_equal": f"must be at most {context.get('le')}",
        "too_short": f"must hold at least {_items_text(context.get('min_length'))}",
        "too_long": f"must hold at most {_items_text(context.get('max_length'))}",
        "string_too_short": "must not be empty",
        "value_error": message.removeprefix("Value error, "),
    }
    if kind in simple:
        return simple[kind]
    wanted = {
        "int_type": "a whole number",
        "int_from_float": "a whole number",
        "int_parsing": "a whole number",
        "float_type": "a number",
        "float_parsing": "a number",
        "string_type": "text",
        "bool_type": "true or false",
        "list_type": "a list",
        "tuple_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping",
        "model_attributes_type": "a mapping",
    }
    if kind in wanted:
        return f"must be {wanted[kind]}, not {_show(value)}"
    return message[:1].lower() + message[1:]


def _items_text(count: Any) -> str:
    return "1 item" if count == 1 else f"{count} items"


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "empty"
    text = str(value)
    text = text if len(text) <= 40 else f"{text[:37]}..."
    return repr(text) if isinstance(value, str) else text


def _key_path(data: Any, detail: ErrorDetails) -> KeyPath:
    """pydantic's location without the tags of unions that it puts between the keys."""
    path: list[str | int] = []
    location = detail["loc"]
    value = data
    for position, part in enumerate(location):
        if _holds(value, part):
            path.append(part)
            value = value[part]
        elif position == len(location) - 1 and detail["type"] == "missing":
            path.append(part)
    return tuple(path)


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _unknown_key(model: type[BaseModel], path: KeyPath, data: Any) -> tuple[str, str]:
    owner = _owner(model, path[:-1], data)
    key = str(path[-1]) if path else ""
    if owner is None:
        return "unknown key", ""
    not_yet: Mapping[str, str] = getattr(owner, "not_yet", {})
    if key in not_yet:
        return "not yet supported", not_yet[key]
    names = [field.alias or name for name, field in owner.model_fields.items()]
    return "unknown key", did_you_mean(key, names) or f"known: {', '.join(names)}"


def _owner(model: Any, path: KeyPath, data: Any) -> type[BaseModel] | None:
    """The model class that describes the mapping at a key path."""
    if not path:
        candidates = _models(model)
        if len(candidates) > 1 and isinstance(data, dict):
            candidates = [known for known in candidates if _tag_fits(known, data)] or candidates
        return candidates[0] if candidates else None
    part = path[0]
    below = data[part] if _holds(data, part) else None
    for known in _models(model):
        if len(_models(model)) > 1 and isinstance(data, dict) and not _tag_fits(known, data):
            continue
        for name, field in known.model_fields.items():
            if (field.alias or name) == part:
                return _owner(field.annotation, path[1:], below)
    for argument in _items(model):
        found = _owner(argument, path[1:], below)
        if found is not None:
            return found
    return None


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The model classes among the alternatives of an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = get_origin(annotation)
    if origin is Annotated:
        return _models(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [found for argument in get_args(annotation) for found in _models(argument)]
    return []


def _items(annotation: Any) -> list[Any]:
    """What a list, tuple or mapping annotation holds; looks through Annotated and unions."""
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Annotated:
        return _items(arguments[0])
    if origin in (Union, types.UnionType):
        return [item for argument in arguments for item in _items(argument)]
    if origin in (list, tuple):
        return [argument for argument in arguments if argument is not Ellipsis]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [arguments[1]]
    return []


def _tag_fits(model: type[BaseModel], data: dict[str, Any]) -> bool:
    """Whether every Literal field of the model that the data names has one of its values."""
    for name, field in model.model_fields.items():
        choices = get_args(field.annotation)
        key = field.alias or name
        literal = getattr(get_origin(field.annotation), "__name__", str(get_origin(field.annotation))).endswith(
            "Literal"
        )
        if literal and key in data and data[key] not in choices:
            return False
    return True
