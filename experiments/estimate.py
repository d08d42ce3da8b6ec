"""How long a cell will take: used by `plan`, by the progress bar and by sweeps."""

from __future__ import annotations

from experiments.model import Experiment, TransportModel

START_S = 2.0
"""Python, controller and daemons of a cell."""
PER_SWITCH_S = 0.06
PER_HOST_S = 0.08
DRAIN_S = 0.5
"""A healthy cell drains in far less than the drain time, which is a limit."""


def cell_seconds(experiment: Experiment, _transport: TransportModel) -> float:
    """Expected duration of one cell, in seconds, from the start of its processes to its stored results."""
    fabric = experiment.fabric
    overhead = START_S + PER_SWITCH_S * len(fabric.switches) + PER_HOST_S * len(fabric.hosts) + DRAIN_S
    return overhead + experiment.model.duration


def experiment_seconds(experiment: Experiment) -> float:
    """Expected duration of the whole experiment, in seconds."""
    entries = experiment.model.transport_models()
    return experiment.model.repeat * sum(cell_seconds(experiment, entry) for entry in entries)
