"""``run.py compare``: several runs side by side."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from cli.console import print_json
from cli.options import Json
from results.reader import find_run, load_run
from results.summary import as_json as comparison_json
from results.summary import compare
from results.table import rich_tables
from results.writer import default_root


def command(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Ids, names or folders of runs; latest.")],
    as_json: Json = False,
) -> None:
    """Put the comparison tables of several runs into one."""
    comparison = compare([load_run(find_run(default_root(), run)) for run in runs])
    if as_json:
        print_json(comparison_json(comparison))
        return
    console = Console()
    for table in rich_tables(comparison):
        console.print(table)
