"""``run.py quickstart``: the main job in under three minutes."""

from __future__ import annotations

import typer

from cli.console import ROOT, say
from cli.options import Json
from cli.run import run_one
from experiments.estimate import experiment_seconds
from experiments.model import load_experiment

FILE = ROOT / "experiments" / "quickstart.yaml"


def command(as_json: Json = False) -> None:
    """Compare MRC with TCP over ECMP in a four-plane fabric, one of whose links is cut and restored."""
    experiment = load_experiment(FILE)
    model, fabric = experiment.model, experiment.fabric
    say(
        f"quickstart: {len(fabric.hosts)} hosts in {fabric.planes} planes, "
        f"{' against '.join(item.label for item in model.transport_models())}, {model.repeat} repetitions; "
        f"about {experiment_seconds(experiment):.0f} s"
    )
    raise typer.Exit(run_one(experiment, as_json=as_json))
