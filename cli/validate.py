"""``run.py validate``: every mistake of YAML files at once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.console import BAD_INPUT, DONE, print_json, say
from cli.options import Json, Settings, settings_of
from experiments.model import load_experiment
from topologies.document import Document
from topologies.errors import InputError, InputErrors
from topologies.load import build, load_topology


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Experiments and topologies (YAML).")],
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Check experiments and topologies; show all mistakes, each with file, line, key and a hint. Needs no root."""
    changes = settings_of(settings)
    errors: list[InputError] = []
    for file in files:
        try:
            _check(file, changes)
        except InputErrors as error:
            errors += error.errors
        else:
            if not as_json:
                print(f"{file}: valid")
    if as_json:
        print_json([asdict(mistake) for mistake in errors])
    else:
        for mistake in errors:
            say(str(mistake))
    raise typer.Exit(BAD_INPUT if errors else DONE)


def _check(file: Path, changes: list[tuple[object, object, str]]) -> None:
    """A file with ``kind`` at its top is a topology; any other is an experiment. Raises InputErrors."""
    document = Document.load(file)
    if isinstance(document.data, dict) and "kind" in document.data:
        for key, value, origin in changes:
            document.set(key, value, origin)  # type: ignore[arg-type]
        build(load_topology(document))
    else:
        load_experiment(file, changes)
