"""``run.py doctor``: what this machine can and cannot do."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.console import Console
from rich.table import Table

from cli.console import DONE, MACHINE_LACKS, print_json, say
from cli.options import Json
from testbed.doctor import able, examine


def command(as_json: Json = False) -> None:
    """Show what this machine can and cannot do, and the command that fixes it. Exit code 3 when nothing can be run."""
    findings = examine()
    ok = able(findings)
    if as_json:
        features = {
            name: {key: value for key, value in asdict(finding).items() if key != "needed"}
            for name, finding in findings.items()
        }
        print_json({"ok": ok, "features": features})
    else:
        table = Table("", "feature", "what was found", "what helps")
        for name, finding in findings.items():
            sign = "[green]yes" if finding.ok else "[red]NO" if finding.needed else "[yellow]no"
            table.add_row(sign, name, finding.detail, finding.fix)
        Console().print(table)
        say("experiments can be run here" if ok else "experiments cannot be run here until each NO is mended")
    raise typer.Exit(DONE if ok else MACHINE_LACKS)
