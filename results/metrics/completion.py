"""Message completion times (flow completion times, FCT) and their percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from results.metrics.timeline import Floats
from results.reader import Cell

# Below this many samples a 99.9th percentile is one single message, so it is not given.
MIN_SAMPLES_P999 = 1_000


@dataclass(frozen=True)
class Completion:
    """Percentiles of pooled completion times, in seconds; None where there are too few samples."""

    n: int
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None


def completion_times_s(cell: Cell) -> Floats:
    """Completion time of each message, in seconds: complete at the receiver - handed to the transport.

    Only messages posted after the warm-up, delivered, and with the right content. Messages still on their way at the
    end have none; they are counted as unfinished (``integrity.py``).

    Raises:
        ResultError: the message table is damaged.
    """
    frame = cell.messages
    good = frame[(frame["status"] == "delivered") & frame["ok"] & (frame["posted_s"] >= cell.record.warmup_s)]
    times = (good["delivered_s"] - good["posted_s"]).to_numpy(dtype=np.float64)
    return np.asarray(times[np.isfinite(times)])


def pooled_times_s(cells: Iterable[Cell]) -> Floats:
    """The raw completion times of all repetitions together, sorted, in seconds.

    Percentiles are taken from these, never averaged over repetitions: a mean of p99s is not a p99.
    """
    samples = [completion_times_s(cell) for cell in cells]
    return np.sort(np.concatenate(samples)) if samples else np.empty(0)


def percentile(sorted_samples: Sequence[float] | Floats, share: float) -> float | None:
    """Nearest-rank percentile: the smallest sample that at least ``share`` of all samples do not exceed.

    It is always one of the samples, and lies on the drawn distribution. None without samples.
    """
    n = len(sorted_samples)
    if n == 0:
        return None
    # 0.99 * 100 is 99.00000000000001 in binary; the small amount keeps the rank at 99.
    rank = max(1, math.ceil(share * n - 1e-9))
    return float(sorted_samples[rank - 1])


def completion(cells: Iterable[Cell]) -> Completion:
    """p50, p99 and p99.9 of the pooled completion times; p99.9 only from 1,000 samples on."""
    samples = pooled_times_s(cells)
    return Completion(
        n=len(samples),
        p50_s=percentile(samples, 0.5),
        p99_s=percentile(samples, 0.99),
        p999_s=percentile(samples, 0.999) if len(samples) >= MIN_SAMPLES_P999 else None,
    )
