"""``run.py list``: what exists, newest first."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from cli.console import ROOT, print_json, say
from cli.options import Json
from results.reader import list_runs
from results.writer import default_root


def command(as_json: Json = False) -> None:
    """List the runs, newest first, and the experiments and topologies that come with the testbed."""
    runs = list_runs(default_root())
    if as_json:
        print_json([{"run": run.id, "name": run.name, "created": run.created, "path": str(run.path)} for run in runs])
        return
    console = Console()
    table = Table("run", "experiment", "status", "verdict", title="Runs, newest first", title_justify="left")
    for run in runs:
        manifest = run.manifest
        table.add_row(run.id, run.name, *((run.status, manifest.verdict) if manifest else ("damaged", "")))
    if runs:
        console.print(table)
    else:
        say("no runs yet; start with: sudo ./run.py quickstart")
    for room in ("experiments", "topologies"):
        names = sorted(str(path.relative_to(ROOT)) for path in (ROOT / room).glob("*.yaml"))
        console.print(f"{room}: {'  '.join(names)}", highlight=False)
