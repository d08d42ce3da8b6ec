"""How equally the pairs were served."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from results.metrics.timeline import Floats, pair_timelines, window
from results.reader import Cell


def pair_goodputs_bps(cell: Cell) -> dict[tuple[str, str], float]:
    """Mean goodput of each (source, destination) over the measurement window, in payload bits per second.

    Raises:
        ResultError: a table is damaged.
    """
    found = {}
    for pair, line in pair_timelines(cell).items():
        rates = line.rate_bps[window(cell, line)]
        found[pair] = float(rates.mean()) if len(rates) else 0.0
    return found


def jain_index(rates: Sequence[float] | Floats) -> float | None:
    """Jain's fairness index: (sum x)^2 / (n x sum x^2), from 1/n (one takes all) to 1 (all equal).

    None without rates, or when all are 0. (Jain, Chiu, Hawe: DEC-TR-301, 1984.)
    """
    values = np.asarray(rates, dtype=np.float64)
    squares = float((values**2).sum())
    if squares == 0:
        return None
    return float(values.sum()) ** 2 / (len(values) * squares)


def cell_jain_index(cell: Cell) -> float | None:
    """Jain's index of the goodputs of the cell's pairs."""
    return jain_index(list(pair_goodputs_bps(cell).values()))
