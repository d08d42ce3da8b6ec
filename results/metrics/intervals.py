"""95 % bootstrap intervals over repetitions, the same for the same values on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 10_000
_SEED = 20_240_501


@dataclass(frozen=True)
class Interval:
    """A mean with its interval; ``low`` and ``high`` are None where one repetition gives no idea of the spread."""

    mean: float
    low: float | None
    high: float | None
    n: int


def mean_interval(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = _SEED) -> Interval | None:
    """Mean of the repetitions with its 95 % percentile-bootstrap interval. None without values.

    The repetitions, not the packets or messages within them, are what is drawn again: messages of one run share its
    fate. With few repetitions the interval is rough (with two it is their range).
    """
    data = np.asarray(values, dtype=np.float64)
    if len(data) == 0:
        return None
    if len(data) == 1:
        return Interval(float(data[0]), None, None, 1)
    draws = np.random.default_rng(seed).integers(0, len(data), size=(resamples, len(data)))
    low, high = _bounds(data[draws].mean(axis=1))
    return Interval(float(data.mean()), low, high, len(data))


def ratio_interval(
    above: Sequence[float], below: Sequence[float], *, resamples: int = RESAMPLES, seed: int = _SEED
) -> Interval | None:
    """Ratio of the means of two paired series (same repetition, same seed) with its interval; pairs are drawn again.

    None without pairs or when the mean below is 0.

    Raises:
        ValueError: the series differ in length.
    """
    if len(above) != len(below):
        raise ValueError(f"paired series of different length: {len(above)} and {len(below)}")
    top, bottom = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    if len(top) == 0 or bottom.mean() == 0:
        return None
    ratio = float(top.mean() / bottom.mean())
    if len(top) == 1:
        return Interval(ratio, None, None, 1)
    draws = np.random.default_rng(seed).integers(0, len(top), size=(resamples, len(top)))
    denominators = bottom[draws].mean(axis=1)
    if (denominators == 0).any():
        return Interval(ratio, None, None, len(top))
    low, high = _bounds(top[draws].mean(axis=1) / denominators)
    return Interval(ratio, low, high, len(top))


def _bounds(samples: NDArray[np.float64]) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(samples, [tail, 1 - tail])
    return float(low), float(high)
