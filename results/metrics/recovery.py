"""Recovery time and dip of a failure.

A failure begins at t0. The **level** is what the surviving capacity allows this transport: the smaller of its own mean
goodput before the cell's first failure and the payload capacity that is left. (A transport that filled 40 % of the
fabric before is asked for those 40 % again, not for the whole fabric.) Without at least 0.5 s between warm-up and first
failure the level is the capacity.

The transport has **recovered** at the start of the first sample (bin of at most 50 ms), at or after t0, that reaches
90 % of the level and from which on, for 500 ms,

* every sliding mean of 200 ms reaches 90 % of the level, and
* no single sample is a hole, that is, below 50 % of the level.

The sliding mean keeps one noisy sample from undoing a recovery; the rule about holes keeps the burst that follows a
short outage (queues drain, gaps close) from hiding it. Goodput that was already uneven before the failure is judged by
a longer mean: the shortest of 200 ms, 400 ms and 1 s of which at least 98 % reach 90 % of their own mean before the
failure (then also held for that long), and its holes begin below the 5th percentile of its samples.

**Recovery time** = that instant - t0, in seconds, with the resolution of one sample; 0 when goodput never fell. None
when it did not recover before the cell ended. **Dip** = level x time - bytes delivered, from t0 to recovery (or the
end), in payload bytes, at least 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from results.metrics.goodput import capacity_bps
from results.metrics.timeline import Floats, Timeline, sliding_mean, timeline
from results.reader import Cell
from results.schema import FailureRecord

REACHED = 0.9
HOLD_S = 0.5
WINDOWS_S = (0.2, 0.4, 1.0)
HOLE = 0.5
MIN_BASELINE_S = 0.5
_CALM_SHARE = 0.98
_HOLE_PERCENTILE = 5.0


@dataclass(frozen=True)
class Outcome:
    """What one failure did to one cell.

    Attributes:
        start_s: when it began (t0).
        until_s: when it was undone, None if never.
        level_bps: what the surviving capacity allowed right after t0, payload bits per second; None if not known.
        recovery_s: recovery time, None if it did not recover.
        observed_s: how long the cell went on after t0; "not within this many seconds" where recovery_s is None.
        dip_bytes: payload bytes not delivered compared with the level, None without a level.
        window_s: the sliding mean that was used.
        after_repair: it recovered, but only after the failure was undone.
        after_share: goodput / payload capacity from recovery until the next change (failure undone, next failure, or
            end); None if that is shorter than 0.5 s or not known.
    """

    name: str
    start_s: float
    until_s: float | None
    level_bps: float | None
    recovery_s: float | None
    observed_s: float
    dip_bytes: int | None
    window_s: float
    after_repair: bool = False
    after_share: float | None = None


@dataclass(frozen=True)
class _Judge:
    """How evenly goodput flowed before the first failure, and so how it is judged after."""

    width: int
    hole: float


def outcomes(cell: Cell) -> list[Outcome]:
    """Recovery and dip of each failure of a cell, in the order of the record.

    Raises:
        ResultError: the goodput table is damaged.
    """
    failures = cell.record.failures
    if not failures:
        return []
    line = timeline(cell)
    capacity = capacity_bps(cell, line)
    before = line.rate_bps[line.between(cell.record.warmup_s, min(failure.start_s for failure in failures))]
    baseline = float(before.mean()) if len(before) * line.bin_s >= MIN_BASELINE_S - 1e-9 else None
    judge = _judge(before, baseline, line.bin_s)
    level = _level(baseline, capacity, len(line.bytes))
    return [_outcome(failure, cell, line, level, capacity, judge) for failure in failures]


def _level(baseline: float | None, capacity: Floats | None, bins: int) -> Floats | None:
    if baseline is None:
        return capacity
    if capacity is None:
        return np.full(bins, baseline)
    return np.minimum(capacity, baseline)


def _judge(before: Floats, baseline: float | None, bin_s: float) -> _Judge:
    widths = [max(1, round(window_s / bin_s)) for window_s in WINDOWS_S]
    if not baseline:
        return _Judge(widths[0], HOLE)
    hole = min(HOLE, float(np.percentile(before, _HOLE_PERCENTILE)) / baseline)
    for width in widths:
        means = sliding_mean(before, width)
        if len(means) and float((means >= REACHED * baseline).mean()) >= _CALM_SHARE:
            return _Judge(width, hole)
    # Too uneven even for the longest mean, or too short a time to tell.
    return _Judge(widths[-1] if len(before) >= widths[-1] else widths[0], hole)


def _outcome(
    failure: FailureRecord, cell: Cell, line: Timeline, level: Floats | None, capacity: Floats | None, judge: _Judge
) -> Outcome:
    start_s = failure.start_s
    first = line.bin_at(start_s)
    end_s = len(line.bytes) * line.bin_s
    observed_s = max(0.0, end_s - start_s)
    window_s = judge.width * line.bin_s
    if level is None or first >= len(line.bytes):
        return Outcome(failure.name, start_s, failure.until_s, None, None, observed_s, None, window_s)
    recovered = _first_recovered(line.rate_bps, level, first, judge, line.bin_s)
    last = len(line.bytes) if recovered is None else recovered
    missing = level[first:last].sum() * line.bin_s / 8 - line.bytes[first:last].sum()
    recovery_s = None if recovered is None else max(0.0, recovered * line.bin_s - start_s)
    return Outcome(
        name=failure.name,
        start_s=start_s,
        until_s=failure.until_s,
        level_bps=float(level[min(first + 1, len(level) - 1)]),
        recovery_s=recovery_s,
        observed_s=observed_s,
        dip_bytes=max(0, round(float(missing))),
        window_s=window_s,
        after_repair=(
            recovery_s is not None and failure.until_s is not None and start_s + recovery_s >= failure.until_s
        ),
        after_share=_after_share(failure, cell, line, capacity, recovered),
    )


def _first_recovered(rate: Floats, level: Floats, first: int, judge: _Judge, bin_s: float) -> int | None:
    """Index of the first bin from ``first`` on that fulfils the definition; None if there is none."""
    hold = max(math.ceil(HOLD_S / bin_s - 1e-9), judge.width)
    # While no path is left (level 0) there is nothing to recover to. The small factor is for rounding.
    sample = (level > 0) & (rate >= REACHED * level * (1 - 1e-9))
    no_hole = rate >= judge.hole * level * (1 - 1e-9)
    steady = sliding_mean(rate, judge.width) >= REACHED * sliding_mean(level, judge.width) * (1 - 1e-9)
    means = hold - judge.width + 1
    for index in range(first, len(rate) - hold + 1):
        if sample[index] and no_hole[index : index + hold].all() and steady[index : index + means].all():
            return index
    return None


def _after_share(
    failure: FailureRecord, cell: Cell, line: Timeline, capacity: Floats | None, recovered: int | None
) -> float | None:
    if recovered is None or capacity is None:
        return None
    start_s = recovered * line.bin_s
    changes = [other.start_s for other in cell.record.failures] + [
        other.until_s for other in cell.record.failures if other.until_s is not None
    ]
    end_s = min([change for change in changes if change > max(start_s, failure.start_s)] + [cell.record.duration_s])
    inside = line.between(start_s, end_s)
    possible = float(capacity[inside].sum())
    if (inside.stop - inside.start) * line.bin_s < HOLD_S - 1e-9 or possible == 0:
        return None
    return float(line.rate_bps[inside].sum()) / possible
