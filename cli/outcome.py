"""What a command that has run an experiment says at its end: the table, where the report is, and the exit code."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cli.console import DONE, FAILED, ROOT, print_json, say
from results.reader import load_run
from results.report import write_report
from results.summary import compare, summary
from results.table import rich_tables


def shown(path: Path) -> str:
    """A path as a person types it: relative where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def conclude(path: Path, *, as_json: bool) -> int:
    """Write the report of a run, print its comparison, and return the exit code."""
    run = load_run(path)
    if as_json:
        print_json(summary(run))
    else:
        console = Console()
        for table in rich_tables(compare([run])):
            console.print(table)
    for reason in run.manifest.reasons:
        say(f"note: {reason}")
    if any(cell.record.status == "done" for cell in run.cells):
        pages = write_report(run)
        page = next((page for page in pages if page.suffix == ".html"), None)
        if page is not None:
            say(f"report:  {shown(page)}")
    say(f"results: {shown(path)}")
    complete = run.manifest.status == "done" and all(
        cell.record.status in ("done", "unsupported") for cell in run.cells
    )
    return DONE if complete else FAILED
