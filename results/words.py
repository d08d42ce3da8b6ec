"""The comparison in sentences: what was compared, what failed when, what came out, and what to be careful about."""

from __future__ import annotations

from collections.abc import Sequence

from results.groups import params_text
from results.metrics.intervals import Interval
from results.schema import CellRecord
from results.summary import Comparison, Ratio, Row
from results.table import failure_names, recovery_text
from results.units import data, duration, number, percent, rate

# Sentences stop here and the table goes on.
_MOST_ROWS = 8


def warnings(comparison: Comparison) -> list[str]:
    """What a reader must know before believing a number, most severe first."""
    found = []
    for run in comparison.runs:
        name = "This run" if len(comparison.runs) == 1 else f"Run {run.id}"
        if run.status == "interrupted":
            found.append(f"{name} was interrupted. The numbers are of the repetitions that were finished before.")
        elif run.status == "running":
            found.append(f"{name} is still going on. The numbers are of the repetitions finished so far.")
        elif run.status == "failed":
            found.append(f"{name} failed: {'; '.join(run.manifest.reasons) or 'no reason recorded'}.")
    if comparison.verdict == "invalid":
        found.append("The verdict is invalid: do not use these numbers. " + _because(comparison.reasons))
    limited = [row for row in comparison.rows if row.group.verdict == "host-limited"]
    if limited:
        names = _listed([row.label for row in limited])
        reasons = tuple(dict.fromkeys(reason for row in limited for reason in row.group.reasons))
        found.append(
            f"{names}: host-limited, the machine and not the network set the pace. {_because(reasons)}".strip()
        )
    elif comparison.verdict == "host-limited":
        found.append("Host-limited: the machine and not the network set the pace. " + _because(comparison.reasons))
    for row in comparison.rows:
        group = row.group
        if group.failures:
            of = group.n + len(group.failures)
            found.append(f"{row.label}: {len(group.failures)} of {of} repetitions failed; n is lower, the mean is not.")
        if group.unsupported and not group.n:
            found.append(f"{row.label}: not supported on the machine that ran this.")
    found += [f"Could not be read: {problem}" for problem in comparison.problems]
    return [text.strip() for text in found]


def sentences(comparison: Comparison) -> list[str]:
    """The result in a few sentences, in the order a reader asks for them."""
    measured = [row for row in comparison.rows if row.group.n]
    if not measured:
        return ["Nothing was measured to the end, so there is nothing to compare yet."]
    found = [_set_up(measured), _failures(comparison)]
    if any(row.group.params for row in measured):
        found += _swept(measured, comparison.ratios)
    else:
        shown = measured[:_MOST_ROWS]
        ratios = [ratio for ratio in comparison.ratios if ratio.of in shown and ratio.to in shown]
        for row in shown:
            if all(row is not ratio.to for ratio in ratios):
                found.append(_alone(row))
                found += [_ratio(ratio) for ratio in ratios if ratio.of is row]
        found += _recoveries(shown)
        if len(measured) > len(shown):
            found.append(f"The table has {len(measured) - len(shown)} more rows.")
    found.append(_integrity(measured))
    found += [f"Substitute: {text}." for run in comparison.runs for text in run.manifest.substitutes]
    return [text for text in dict.fromkeys(found) if text]


def _set_up(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(_with_routing(row) for row in rows))
    counts = sorted({row.group.n for row in rows})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    cells = [cell.record for row in rows for cell in row.group.cells]
    text = f"{'Compared' if len(rows) > 1 else 'Measured'}: {_listed(names)}"
    for key in dict.fromkeys(key for row in rows for key in row.group.params):
        values = dict.fromkeys(str(row.group.params.get(key, "not set")) for row in rows)
        text += f", for {key.rpartition('.')[2]} = {', '.join(values)}"
    text += f"; {n} repetition{'' if n == '1' else 's'}{' each' if len(rows) > 1 else ''}"
    if len({(cell.duration_s, cell.warmup_s) for cell in cells}) == 1:
        warmup = f", the first {cells[0].warmup_s:g} s left out as warm-up" if cells[0].warmup_s else ""
        text += f" of {cells[0].duration_s:g} s{warmup}"
    if len({(cell.planes, tuple(cell.plane_rate_bps)) for cell in cells}) == 1:
        text += _fabric(cells[0])
    return f"{text}."


def _fabric(cell: CellRecord) -> str:
    if not cell.plane_rate_bps:
        return ""
    rates = [f"{plane_rate / 1e6:g}" for plane_rate in sorted(set(cell.plane_rate_bps))]
    each = f"{rates[0]} Mbit/s" if len(rates) == 1 else f"{rates[0]} to {rates[-1]} Mbit/s"
    planes = "one plane" if cell.planes == 1 else f"{cell.planes} planes"
    return f"; hosts have {planes} of {each}"


def _swept(rows: Sequence[Row], ratios: Sequence[Ratio]) -> list[str]:
    """One sentence for each swept point."""
    points = list(dict.fromkeys((row.group.run.id, params_text(row.group.params)) for row in rows))
    found = []
    for run_id, params in points[:_MOST_ROWS]:
        here = [row for row in rows if (row.group.run.id, params_text(row.group.params)) == (run_id, params)]
        text = f"{params or 'Not swept'}: " + ", ".join(f"{row.group.short} {_delivered(row)}" for row in here)
        compared = [ratio for ratio in ratios if ratio.of in here and ratio.goodput is not None]
        if compared:
            factors = [
                f"{number(ratio.goodput.mean)} times {ratio.to.group.short}" for ratio in compared if ratio.goodput
            ]
            text += f"; {compared[0].of.group.short} delivered {_listed(factors)}"
        found.append(f"{text}.")
    if len(points) > _MOST_ROWS:
        found.append(f"The table has {len(points) - _MOST_ROWS} more points.")
    return found


def _failures(comparison: Comparison) -> str:
    names = failure_names(comparison)
    if not names:
        return "Nothing was made to fail."
    shown = "; ".join(names[:4])
    return f"Failure{'s' if len(names) > 1 else ''}: {shown}" + (
        f"; and {len(names) - 4} more." if len(names) > 4 else "."
    )


def _ratio(ratio: Ratio) -> str:
    of, to = ratio.of, ratio.to
    text = f"{to.label} delivered {_delivered(to)}"
    if ratio.goodput is not None:
        text += f"; {of.label} {_times(ratio.goodput)} as much"
    if ratio.p99 and of.fct.p99_s is not None and to.fct.p99_s is not None:
        text += (
            f". For 99 % of messages {to.label} took up to {duration(to.fct.p99_s)}, "
            f"{of.label} {duration(of.fct.p99_s)}, {_factor(ratio.p99)}"
        )
    return f"{text}."


def _alone(row: Row) -> str:
    text = f"{row.label} delivered {_delivered(row)}"
    if row.fct.p99_s is not None:
        text += f"; 99 % of {row.fct.n:,} messages were complete within {duration(row.fct.p99_s)}"
    return f"{text}."


def _recoveries(rows: Sequence[Row]) -> list[str]:
    found = []
    names = list(dict.fromkeys(failure.name for row in rows for failure in row.failures))
    for name in names[:4]:
        parts = []
        for row in rows:
            for failure in row.failures:
                if failure.name == name and failure.judged:
                    dip = failure.mean_dip_bytes
                    missed = f", {data(dip)} short" if dip else ""
                    parts.append(f"{row.label} {recovery_text(failure)}{missed}")
        if parts:
            found.append(f"Time to recover from {name}: {'; '.join(dict.fromkeys(parts))}.")
    return found


def _integrity(rows: Sequence[Row]) -> str:
    total = sum(row.messages.total for row in rows)
    if not total:
        return ""
    bad = []
    for row in rows:
        counts = row.messages
        if counts.corrupt or counts.lost:
            bad.append(f"{row.label}: of {counts.total:,} messages {counts.lost:,} lost, {counts.corrupt:,} corrupt")
    return f"{'; '.join(bad)}." if bad else f"Of {total:,} messages none was lost or corrupt."


def _delivered(row: Row) -> str:
    text = rate(row.goodput.mean if row.goodput else None)
    return text if row.capacity_share is None else f"{text} ({percent(row.capacity_share)} of the capacity)"


def _times(ratio: Interval) -> str:
    text = f"{number(ratio.mean)} times"
    if ratio.low is not None and ratio.high is not None:
        text += f" (95 % interval {number(ratio.low)} to {number(ratio.high)})"
    return text


def _factor(ratio: float) -> str:
    if 0.95 <= ratio <= 1.05:
        return "about the same"
    return f"{number(1 / ratio, 2)} times sooner" if ratio < 1 else f"{number(ratio, 2)} times later"


def _with_routing(row: Row) -> str:
    routing, name = row.group.routing, row.group.short
    return f"{name} (routing {routing})" if routing and " over " not in name else name


def _because(reasons: Sequence[str]) -> str:
    return f"Reason: {'; '.join(reasons)}." if reasons else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
