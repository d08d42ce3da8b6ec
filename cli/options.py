"""Options that several commands take, and how their text becomes settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from topologies.document import parse_setting
from topologies.errors import InputError, InputErrors, split_key

ExperimentFile = Annotated[Path, typer.Argument(metavar="FILE", help="An experiment (YAML).")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Change a value of the file; may be given several times."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


def settings_of(
    texts: list[str] | None, *, repeat: int | None = None, seed: int | None = None
) -> list[tuple[Any, Any, str]]:
    """(key path, value, origin) of every option that changes the file. Raises InputErrors, all mistakes at once."""
    found: list[tuple[Any, Any, str]] = []
    errors: list[InputError] = []
    for text in texts or []:
        try:
            found.append(parse_setting(text))
        except InputErrors as error:
            errors += error.errors
    if errors:
        raise InputErrors(errors)
    for name, value in (("repeat", repeat), ("seed", seed)):
        if value is not None:
            found.append((split_key(name), value, f"--{name} {value}"))
    return found
