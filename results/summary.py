"""The comparison: one row for each transport and set of swept parameters, from files to numbers to JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from results.groups import Group, group_cells, worst
from results.metrics.completion import Completion, completion
from results.metrics.fairness import cell_jain_index
from results.metrics.goodput import capacity_share, mean_capacity_bps, mean_goodput_bps
from results.metrics.integrity import MessageCounts, total_counts
from results.metrics.intervals import Interval, mean_interval, ratio_interval
from results.metrics.planes import mean_plane_shares
from results.metrics.recovery import Outcome, outcomes
from results.metrics.retransmissions import retransmitted_packets, retransmitted_share
from results.reader import Run
from results.schema import Verdict

JSON_VERSION = 1


@dataclass(frozen=True)
class FailureRow:
    """One failure in all repetitions of a group; the tuples have one entry for each repetition.

    Attributes:
        at_s: when the experiment asked for it, or when it began if that is not recorded.
        outcomes: recovery and dip in each repetition that had this failure.
    """

    name: str
    at_s: float
    until_s: float | None
    outcomes: tuple[Outcome, ...]

    @property
    def recovery_s(self) -> tuple[float | None, ...]:
        return tuple(outcome.recovery_s for outcome in self.outcomes)

    @property
    def observed_s(self) -> tuple[float, ...]:
        return tuple(outcome.observed_s for outcome in self.outcomes)

    @property
    def judged(self) -> bool:
        """False where neither capacity nor a time before the failure is known, so nothing can be said."""
        return any(outcome.level_bps is not None for outcome in self.outcomes)

    @property
    def mean_dip_bytes(self) -> float | None:
        return _mean([outcome.dip_bytes for outcome in self.outcomes])

    @property
    def mean_after_share(self) -> float | None:
        return _mean([outcome.after_share for outcome in self.outcomes])


@dataclass(frozen=True)
class Row:
    """The numbers of one group. Values are None where nothing is known, never 0."""

    group: Group
    capacity_bps: float | None
    goodput: Interval | None
    goodputs_bps: tuple[tuple[int, float], ...]
    capacity_share: float | None
    fct: Completion
    failures: tuple[FailureRow, ...]
    retransmitted_packets: int | None
    retransmitted_share: float | None
    messages: MessageCounts
    jain_index: float | None
    plane_shares: dict[int, float]

    @property
    def label(self) -> str:
        return self.group.label


@dataclass(frozen=True)
class Ratio:
    """How one row compares with another of the same run and parameters; above 1 means that ``of`` is larger."""

    of: Row
    to: Row
    goodput: Interval | None
    p99: float | None


@dataclass(frozen=True)
class Comparison:
    """All rows of one run or of several, and the main ratios between them."""

    runs: tuple[Run, ...]
    rows: tuple[Row, ...]
    ratios: tuple[Ratio, ...]
    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def groups(self) -> list[Group]:
        return [row.group for row in self.rows]

    @property
    def problems(self) -> list[str]:
        """What could not be read, one line each."""
        return [str(problem) for run in self.runs for problem in run.problems]


def compare(runs: Sequence[Run]) -> Comparison:
    """Compute every number of a run, or of several side by side.

    Raises:
        ValueError: no run given.
    """
    if not runs:
        raise ValueError("nothing to compare")
    rows = tuple(_row(group) for group in group_cells(runs))
    verdicts: list[Verdict] = [run.manifest.verdict for run in runs]
    verdicts += [row.group.verdict for row in rows if row.group.n]
    if rows and not any(row.group.n for row in rows):
        verdicts.append("invalid")
    reasons = [reason for run in runs for reason in run.manifest.reasons]
    reasons += [f"{row.label}: {reason}" for row in rows for reason in row.group.reasons]
    return Comparison(tuple(runs), rows, tuple(_ratios(rows)), worst(verdicts), tuple(dict.fromkeys(reasons)))


def summary(run: Run) -> dict[str, Any]:
    """The comparison of one run as the JSON document of ``run``, ``show`` and ``quickstart``."""
    return as_json(compare([run]))


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The JSON document of a comparison. Rates in bit/s, times in s, shares from 0 to 1; null = not known.

    ``run`` and ``path`` are the first run's; ``runs`` lists all of them. ``failed`` counts cells that failed, timed
    out, were interrupted, are invalid or cannot be read. ``retransmitted_packets`` and message counts are sums over
    the n repetitions.
    """
    first = comparison.runs[0]
    return {
        "schema": JSON_VERSION,
        "run": first.id,
        "path": str(first.path),
        "name": first.manifest.name,
        "status": first.status,
        "verdict": comparison.verdict,
        "reasons": list(comparison.reasons),
        "problems": comparison.problems,
        "runs": [{"run": run.id, "path": str(run.path), "status": run.status} for run in comparison.runs],
        "cells": [_row_json(row) for row in comparison.rows],
        "ratios": [
            {
                "run": ratio.of.group.run.id,
                "params": ratio.of.group.params,
                "of": ratio.of.group.transport,
                "to": ratio.to.group.transport,
                "goodput": _interval_json(ratio.goodput),
                "p99": ratio.p99,
            }
            for ratio in comparison.ratios
        ],
    }


def _row(group: Group) -> Row:
    goodputs: list[tuple[int, float]] = []
    capacities: list[float | None] = []
    shares: list[float | None] = []
    for cell in group.cells:
        goodput, capacity = mean_goodput_bps(cell), mean_capacity_bps(cell)
        capacities.append(capacity)
        shares.append(capacity_share(goodput, capacity))
        if goodput is not None:
            goodputs.append((cell.record.repetition, goodput))
    return Row(
        group=group,
        capacity_bps=_mean(capacities),
        goodput=mean_interval([goodput for _, goodput in goodputs]),
        goodputs_bps=tuple(goodputs),
        capacity_share=_mean(shares),
        fct=completion(group.cells),
        failures=_failures(group),
        retransmitted_packets=retransmitted_packets(group.cells),
        retransmitted_share=retransmitted_share(group.cells),
        messages=total_counts(group.cells),
        jain_index=_mean([cell_jain_index(cell) for cell in group.cells]),
        plane_shares=mean_plane_shares(group.cells),
    )


def _failures(group: Group) -> tuple[FailureRow, ...]:
    """Failures by position and name: the same one in each repetition, or each its own where they are random."""
    found: dict[tuple[int, str], list[Outcome]] = {}
    planned: dict[tuple[int, str], float] = {}
    for cell in group.cells:
        for index, (record, outcome) in enumerate(zip(cell.record.failures, outcomes(cell), strict=True)):
            found.setdefault((index, record.name), []).append(outcome)
            planned.setdefault((index, record.name), record.at_s if record.planned_s is None else record.planned_s)
    return tuple(
        FailureRow(name, planned[index, name], several[0].until_s, tuple(several))
        for (index, name), several in sorted(found.items(), key=lambda item: planned[item[0]])
    )


def _ratios(rows: Sequence[Row]) -> list[Ratio]:
    """MRC against each other transport; without MRC, the fastest against each other one."""
    found: list[Ratio] = []
    measured = [row for row in rows if row.goodput is not None]
    points = list(dict.fromkeys((id(row.group.run), repr(row.group.params)) for row in measured))
    for point in points:
        peers = [row for row in measured if (id(row.group.run), repr(row.group.params)) == point]
        fastest = max(peers, key=lambda row: row.goodput.mean if row.goodput else 0.0)
        chosen = next((row for row in peers if row.group.transport == "mrc"), fastest)
        found += [_ratio(chosen, other) for other in peers if other is not chosen]
    return found


def _ratio(of: Row, to: Row) -> Ratio:
    above, below = dict(of.goodputs_bps), dict(to.goodputs_bps)
    common = sorted(above.keys() & below.keys())
    p99 = None
    if of.fct.p99_s is not None and to.fct.p99_s:
        p99 = of.fct.p99_s / to.fct.p99_s
    return Ratio(of, to, ratio_interval([above[key] for key in common], [below[key] for key in common]), p99)


def _row_json(row: Row) -> dict[str, Any]:
    group = row.group
    return {
        "transport": group.transport,
        "routing": group.routing,
        "params": group.params,
        "label": group.label,
        "run": group.run.id,
        "n": group.n,
        "failed": len(group.failures),
        "unsupported": group.unsupported,
        "failed_reasons": list(group.failures),
        "verdict": group.verdict,
        "reasons": list(group.reasons),
        "capacity_bps": row.capacity_bps,
        "goodput_bps": _interval_json(row.goodput),
        "capacity_share": row.capacity_share,
        "fct_s": {"n": row.fct.n, "p50": row.fct.p50_s, "p99": row.fct.p99_s, "p999": row.fct.p999_s},
        "failures": [
            {
                "name": failure.name,
                "at_s": failure.at_s,
                "until_s": failure.until_s,
                "recovery_s": [_rounded(time) for time in failure.recovery_s],
                "dip_bytes": [outcome.dip_bytes for outcome in failure.outcomes],
                "observed_s": [_rounded(time) for time in failure.observed_s],
                "level_bps": [outcome.level_bps for outcome in failure.outcomes],
                "after_share": [outcome.after_share for outcome in failure.outcomes],
                "after_repair": [outcome.after_repair for outcome in failure.outcomes],
            }
            for failure in row.failures
        ],
        "retransmitted_packets": row.retransmitted_packets,
        "retransmitted_share": row.retransmitted_share,
        "corrupt_messages": row.messages.corrupt,
        "lost_messages": row.messages.lost,
        "unfinished_messages": row.messages.unfinished,
        "jain_index": row.jain_index,
        "plane_shares": {str(plane): share for plane, share in row.plane_shares.items()},
    }


def _interval_json(interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {"mean": None, "low": None, "high": None}
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def _rounded(time_s: float | None) -> float | None:
    """To the microsecond: bin arithmetic leaves binary crumbs behind."""
    return None if time_s is None else round(time_s, 6)


def _mean(values: Sequence[float | int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
