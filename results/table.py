"""The comparison table, for the terminal (rich) and as Markdown, both from the same cells of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from results.summary import Comparison, FailureRow, Row
from results.units import UNKNOWN, data, mbit, milliseconds, percent, recovery

# Up to this many groups stand side by side, one metric a line: it fits 80 columns and is read across.
_SIDE_BY_SIDE = 4


@dataclass(frozen=True)
class Grid:
    """A table of texts. The first column names what a line is about."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]

    def transposed(self) -> Grid:
        columns = list(zip(self.header, *self.lines, strict=True))
        return Grid(self.title, columns[0], tuple(columns[1:]))


def main_grid(comparison: Comparison, side_by_side: int = _SIDE_BY_SIDE) -> Grid:
    """The comparison: up to ``side_by_side`` groups across and metrics down, more of them the other way round."""
    # With several failures the worst one stands for all; each has its line in the other table.
    worst = " (worst)" if any(len(row.failures) > 1 for row in comparison.rows) else ""
    titles = [title + worst if title in _OF_FAILURES else title for title in _TITLES]
    grid = Grid("Comparison", ("", *titles), tuple((row.label, *_row_texts(row)) for row in comparison.rows))
    if not comparison.rows:
        return grid
    return grid.transposed() if len(comparison.rows) <= side_by_side else grid


def failure_grid(comparison: Comparison) -> Grid | None:
    """One line for each failure and group, by failure; None when nothing failed."""
    lines: list[tuple[str, ...]] = []
    for name in failure_names(comparison):
        title = name
        for row in comparison.rows:
            for failure in row.failures:
                if _named(failure) == name:
                    used = percent(failure.mean_after_share)
                    lines.append((title, row.label, recovery_text(failure), data(failure.mean_dip_bytes), used))
                    title = ""
    if not lines:
        return None
    return Grid("Failures", ("failure", "transport", "recovery time", "dip", "capacity used after"), tuple(lines))


def recovery_text(failure: FailureRow, *, late: bool = True) -> str:
    """Recovery of one failure in words, over its repetitions; ``late``: say where it needed the repair."""
    if not failure.judged:
        return UNKNOWN
    text = recovery(failure.recovery_s, failure.observed_s)
    needed = sum(outcome.after_repair for outcome in failure.outcomes)
    if late and needed:
        text += " after repair" if needed == len(failure.outcomes) else f"; {needed} only after repair"
    return text


def rich_tables(comparison: Comparison) -> list[Table]:
    """The tables for a terminal; a single failure is named below the first one instead of having its own."""
    main = _rich(main_grid(comparison))
    failures = failure_names(comparison)
    if len(failures) == 1:
        main.caption = Text(f"failure: {failures[0]}")
        main.caption_justify = "left"
    grid = failure_grid(comparison) if len(failures) > 1 else None
    return [main] if grid is None else [main, _rich(grid)]


def failure_names(comparison: Comparison) -> list[str]:
    """Each failure of the comparison once, with its times, in order of time."""
    found = {_named(failure): failure.at_s for row in comparison.rows for failure in row.failures}
    return sorted(found, key=lambda name: (found[name], name))


def markdown(comparison: Comparison) -> str:
    """The same tables as Markdown, with the failed cells listed below."""
    parts = [_markdown(grid) for grid in (main_grid(comparison), failure_grid(comparison)) if grid is not None]
    failed = [f"- {reason}" for row in comparison.rows for reason in row.group.failures]
    if failed:
        parts.append("Not counted:\n\n" + "\n".join(failed) + "\n")
    return "\n".join(parts)


_TITLES = (
    "n",
    "goodput, Mbit/s",
    "95 % interval",
    "share of capacity",
    "FCT p50, ms",
    "FCT p99, ms",
    "messages timed",
    "recovery time",
    "dip",
    "packets sent again",
    "corrupt / lost",
    "verdict",
)


_OF_FAILURES = ("recovery time", "dip")


def _row_texts(row: Row) -> tuple[str, ...]:
    fct = row.fct
    has_messages = row.messages.total > 0
    return (
        _n_text(row),
        mbit(row.goodput.mean if row.goodput else None),
        _interval_text(row),
        percent(row.capacity_share),
        milliseconds(fct.p50_s),
        milliseconds(fct.p99_s),
        f"{fct.n:,}",
        _worst_recovery(row.failures),
        data(
            max((dip for dip in (failure.mean_dip_bytes for failure in row.failures) if dip is not None), default=None)
        ),
        _again_text(row),
        f"{row.messages.corrupt} / {row.messages.lost}" if has_messages else UNKNOWN,
        row.group.verdict if row.group.n else "no result",
    )


def _n_text(row: Row) -> str:
    group = row.group
    notes = [f"{len(group.failures)} failed"] if group.failures else []
    notes += [f"{group.unsupported} unsupported"] if group.unsupported else []
    notes += [f"{group.running} running"] if group.running else []
    return f"{group.n}" + (f" ({', '.join(notes)})" if notes else "")


def _interval_text(row: Row) -> str:
    if row.goodput is None or row.goodput.low is None or row.goodput.high is None:
        return UNKNOWN
    return f"{mbit(row.goodput.low)}–{mbit(row.goodput.high)}"


def _worst_recovery(failures: Sequence[FailureRow]) -> str:
    """The failure that took longest; one that was not recovered from is the longest of all."""
    if not failures:
        return UNKNOWN

    def badness(failure: FailureRow) -> tuple[bool, float]:
        times = [time for time in failure.recovery_s if time is not None]
        return (len(times) < len(failure.recovery_s), max(times, default=0.0))

    return recovery_text(max(failures, key=badness), late=len(failures) == 1)


def _again_text(row: Row) -> str:
    if row.retransmitted_packets is None:
        return UNKNOWN
    share = f" ({percent(row.retransmitted_share)})" if row.retransmitted_share is not None else ""
    return f"{row.retransmitted_packets:,}{share}"


def _named(failure: FailureRow) -> str:
    if failure.until_s is None:
        return f"{failure.name}, from {failure.at_s:g} s on"
    return f"{failure.name}, {failure.at_s:g} s to {failure.until_s:g} s"


def _rich(grid: Grid) -> Table:
    table = Table(title=grid.title, box=box.SIMPLE_HEAD, title_justify="left")
    for index, name in enumerate(grid.header):
        left = index == 0 or grid.title == "Failures"
        table.add_column(Text(name), justify="left" if left else "right", overflow="fold")
    for line in grid.lines:
        table.add_row(*(Text(text, style=_style(text)) for text in line))
    return table


def _style(text: str) -> str:
    if text in ("invalid", "no result") or "not within" in text or "failed" in text:
        return "red"
    return "yellow" if text == "host-limited" else ""


def _markdown(grid: Grid) -> str:
    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |\n"

    marks = ["---"] + ["---" if grid.title == "Failures" else "---:"] * (len(grid.header) - 1)
    return line(grid.header) + line(marks) + "".join(line(texts) for texts in grid.lines)
