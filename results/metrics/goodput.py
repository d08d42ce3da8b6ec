"""Goodput and capacity: how much was delivered, and how much could have been."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from results.metrics.timeline import Floats, Timeline, timeline, window
from results.reader import Cell


def mean_goodput_bps(cell: Cell) -> float | None:
    """Mean goodput of all pairs together, in payload bits per second.

    Formula: 8 x payload bytes delivered for the first time within the measurement window / length of the window. The
    window is the whole bins between the end of the warm-up and the end of the cell. None if it has no bin.

    Raises:
        ResultError: the goodput table is damaged.
    """
    line = timeline(cell)
    rates = line.rate_bps[window(cell, line)]
    return float(rates.mean()) if len(rates) else None


def mean_capacity_bps(cell: Cell) -> float | None:
    """Mean payload capacity over the same window, in bits per second: failures lower it for as long as they last.

    None if the cell does not know its capacity.

    Raises:
        ResultError: the goodput table is damaged.
    """
    line = timeline(cell)
    capacity = capacity_bps(cell, line)
    if capacity is None:
        return None
    inside = capacity[window(cell, line)]
    return float(inside.mean()) if len(inside) else None


def capacity_bps(cell: Cell, line: Timeline) -> Floats | None:
    """Payload capacity in each bin of ``line``, in bits per second; a bin with a step in it gets its time mean.

    Before the first step its value counts. None if the cell does not know its capacity.
    """
    steps = sorted(cell.record.capacity, key=lambda step: step.from_s)
    if not steps:
        return None
    starts = line.starts_s
    total = np.full(len(starts), steps[0].bps)
    for before, after in pairwise(steps):
        reached = np.clip((starts + line.bin_s - after.from_s) / line.bin_s, 0.0, 1.0)
        total += reached * (after.bps - before.bps)
    return np.asarray(total, dtype=np.float64)


def capacity_share(goodput_bps: float | None, capacity: float | None) -> float | None:
    """Goodput / payload capacity, both means over the same window; 1 means that no more was possible."""
    if goodput_bps is None or not capacity:
        return None
    return goodput_bps / capacity
