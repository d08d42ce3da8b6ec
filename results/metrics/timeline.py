"""Goodput as a series of equal bins, and the measurement window: what the other families are computed from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from results.reader import Cell

Floats = NDArray[np.float64]

# Bin edges are multiples of a decimal fraction, which binary numbers miss by a little.
_EDGE = 1e-6


@dataclass(frozen=True)
class Timeline:
    """Payload bytes delivered in each whole bin of a cell, from ``t_s = 0`` on. Bins nobody wrote count 0 bytes."""

    bin_s: float
    bytes: Floats

    @property
    def starts_s(self) -> Floats:
        """Start of each bin in seconds."""
        return np.arange(len(self.bytes), dtype=np.float64) * self.bin_s

    @property
    def rate_bps(self) -> Floats:
        """Goodput of each bin in payload bits per second."""
        return self.bytes * 8.0 / self.bin_s

    def between(self, from_s: float, to_s: float) -> slice:
        """The bins that lie wholly within ``[from_s, to_s]``."""
        first = max(0, math.ceil(from_s / self.bin_s - _EDGE))
        last = min(len(self.bytes), math.floor(to_s / self.bin_s + _EDGE))
        return slice(first, max(first, last))

    def bin_at(self, t_s: float) -> int:
        """Index of the bin that contains ``t_s``."""
        return max(0, math.floor(t_s / self.bin_s + _EDGE))


def timeline(cell: Cell, *, plane: int | None = None) -> Timeline:
    """Goodput of all pairs together, in one plane or in all of them.

    Raises:
        ResultError: the goodput table is damaged.
    """
    frame = cell.goodput
    if plane is not None:
        frame = frame[frame["plane"] == plane]
    return _binned(cell, frame)


def pair_timelines(cell: Cell) -> dict[tuple[str, str], Timeline]:
    """Goodput of each (source, destination); a pair that has messages and no goodput is there, with zeros.

    Raises:
        ResultError: a table is damaged.
    """
    found = {pair: _binned(cell, frame) for pair, frame in _by_pair(cell.goodput)}
    for pair, _ in _by_pair(cell.messages):
        found.setdefault(pair, _binned(cell, cell.goodput.iloc[:0]))
    return found


def window(cell: Cell, line: Timeline) -> slice:
    """The bins of the measurement: wholly after the warm-up and before the end."""
    return line.between(cell.record.warmup_s, cell.record.duration_s)


def sliding_mean(values: Floats, width: int) -> Floats:
    """Mean of each run of ``width`` values; ``len(values) - width + 1`` of them."""
    if width > len(values):
        return np.empty(0)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray((sums[width:] - sums[:-width]) / width)


def _binned(cell: Cell, frame: pd.DataFrame) -> Timeline:
    bin_s = cell.record.bin_s
    count = math.floor(cell.record.duration_s / bin_s + _EDGE)
    index = np.floor(frame["t_s"].to_numpy(dtype=np.float64) / bin_s + _EDGE).astype(np.int64)
    inside = (index >= 0) & (index < count)
    weights = frame["bytes"].to_numpy(dtype=np.float64)[inside]
    return Timeline(bin_s, np.bincount(index[inside], weights=weights, minlength=count).astype(np.float64))


def _by_pair(frame: pd.DataFrame) -> Iterable[tuple[tuple[str, str], pd.DataFrame]]:
    for (src, dst), part in frame.groupby(["src", "dst"], sort=True):
        yield (str(src), str(dst)), part
