"""``run.py run``: run experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.console import DONE
from cli.options import Json, Settings, settings_of
from cli.outcome import conclude
from cli.progress import RunProgress
from experiments.estimate import experiment_seconds
from experiments.model import Experiment, load_experiment
from experiments.runner import run_experiment
from topologies.errors import InputError, InputErrors


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Experiments (YAML).")],
    settings: Settings = None,
    repeat: Annotated[int | None, typer.Option("--repeat", help="Repetitions, each with a seed of its own.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the first repetition.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the run's folder (results/runs).")] = None,
    as_json: Json = False,
) -> None:
    """Run experiments: real packets over an emulated fabric; results, plots and a report.

    Ctrl-C ends a run cleanly and keeps what was measured.
    """
    changes = settings_of(settings, repeat=repeat, seed=seed)
    experiments: list[Experiment] = []
    errors: list[InputError] = []
    for file in files:
        try:
            experiments.append(load_experiment(file, changes))
        except InputErrors as error:
            errors += error.errors
    if errors:
        raise InputErrors(errors)
    code = DONE
    for experiment in experiments:
        code = max(code, run_one(experiment, out=out, as_json=as_json))
    raise typer.Exit(code)


def run_one(experiment: Experiment, *, out: Path | None = None, as_json: bool = False) -> int:
    """Run one experiment with a progress bar; returns the exit code."""
    with RunProgress(experiment_seconds(experiment)) as progress:
        path = run_experiment(experiment, progress, root=out, command=" ".join(["run.py", *sys.argv[1:]]))
    return conclude(path, as_json=as_json)
