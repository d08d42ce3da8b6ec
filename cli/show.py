"""``run.py show``: one run's comparison."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from cli.console import print_json, say
from cli.options import Json
from results.reader import find_run, load_run
from results.summary import compare, summary
from results.table import rich_tables
from results.writer import default_root


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, name or folder; latest.")] = "latest",
    as_json: Json = False,
) -> None:
    """Show the comparison table of a run."""
    loaded = load_run(find_run(default_root(), run))
    if as_json:
        print_json(summary(loaded))
        return
    say(f"{loaded.id}: {loaded.manifest.status}")
    console = Console()
    for table in rich_tables(compare([loaded])):
        console.print(table)
    for reason in loaded.manifest.reasons:
        say(f"note: {reason}")
