"""``run.py report``: plots, tables and a page, redrawn from the files of runs."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import BAD_INPUT, CommandError
from cli.outcome import shown
from results.reader import find_run, load_run
from results.report import REPORT_FORMATS, write_report
from results.writer import default_root


def command(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN...]", help="Ids, names or folders; latest.")] = None,
    formats: Annotated[str, typer.Option("--format", help=f"Some of {','.join(REPORT_FORMATS)}.")] = "html,png",
) -> None:
    """Draw the report of runs again, from their files alone; needs no root and no network."""
    asked = [item.strip() for item in formats.split(",")]
    wanted = [known for known in REPORT_FORMATS if known in asked]
    unknown = [item for item in asked if item not in REPORT_FORMATS]
    if unknown:
        raise CommandError(f"--format: {', '.join(unknown)}: not one of {', '.join(REPORT_FORMATS)}", BAD_INPUT)
    for run in runs or ["latest"]:
        for page in write_report(load_run(find_run(default_root(), run)), formats=wanted):
            print(shown(page))
