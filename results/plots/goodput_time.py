"""Goodput over time, with the failures and what the fabric allowed."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.groups import Group
from results.metrics.goodput import capacity_bps
from results.metrics.timeline import Floats, timeline
from results.plots import style

NAME = "goodput-over-time"
TITLE = "Goodput over time"
TABLES = ("goodput",)
CAPTION = (
    "Payload delivered per second, all pairs together, in bins of 50 ms. Line: mean over repetitions; band: from the "
    "lowest to the highest repetition. Both are means of three neighbouring bins (150 ms), never across the beginning "
    "or end of a failure, so its edges stay where they are. Dotted grey: payload capacity for this workload."
)
_SMOOTHED_BINS = 3
_MOST_NAMES = 5


def draw(groups: Sequence[Group], params: str = "") -> Figure | None:
    """The figure, or None if there is nothing to draw.

    Raises:
        ResultError: a goodput table is damaged.
    """
    shown = [group for group in groups if group.n]
    if not shown:
        return None
    with style.styled():
        marks = failure_marks(shown)
        notes = _notes(marks)
        figure, axes = style.new_figure(TITLE, style.subtitle(params, shown), height_in=2.75 + 0.12 * len(notes))
        handles = []
        top = 0.0
        for group, look in zip(shown, style.looks(shown), strict=True):
            starts, lines = stacked(group, marks)
            middle = starts + group.cells[0].record.bin_s / 2
            mean = lines.mean(axis=0) / 1e6
            axes.fill_between(
                middle, lines.min(axis=0) / 1e6, lines.max(axis=0) / 1e6, color=look.color, alpha=0.2, lw=0
            )
            axes.plot(middle, mean, color=look.color, linestyle=look.dashes)
            handles.append(style.handle(look))
            top = max(top, float(lines.max()) / 1e6)
        labels = [style.group_label(group) for group in shown]
        top = max(top, _draw_capacity(axes, shown, handles, labels))
        draw_failures(axes, marks)
        axes.set_xlabel("time since the start of traffic, s" + "".join(f"\n{note}" for note in notes))
        axes.set_ylabel("goodput, Mbit/s")
        axes.set_xlim(0, max(cell.record.duration_s for group in shown for cell in group.cells))
        axes.set_ylim(0, top * 1.12 or 1)
        style.legend_below(figure, handles, labels)
    return figure


def failure_marks(groups: Sequence[Group]) -> list[tuple[float, float | None, str]]:
    """(start, end, name) of each failure, of the first cell of each group that has it; ordered by time."""
    found: dict[tuple[str, float], tuple[float, float | None, str]] = {}
    for group in groups:
        for record in group.cells[0].record.failures:
            planned = record.at_s if record.planned_s is None else record.planned_s
            found.setdefault((record.name, planned), (record.start_s, record.until_s, record.name))
    return sorted(found.values(), key=lambda mark: mark[0])


def draw_failures(axes: Axes, marks: Sequence[tuple[float, float | None, str]]) -> None:
    """A line where each failure begins, a shaded span while it lasts, its number on top."""
    for number, (start_s, until_s, _) in enumerate(marks, start=1):
        if until_s is not None:
            axes.axvspan(start_s, until_s, color=style.FAILURE_SPAN, zorder=0, lw=0)
        axes.axvline(start_s, color=style.FAILURE, lw=0.8, zorder=1)
        axes.annotate(
            str(number),
            (start_s, 1),
            xycoords=("data", "axes fraction"),
            xytext=(2, -2),
            textcoords="offset points",
            fontsize=6.5,
            color=style.FAILURE,
            ha="left",
            va="top",
        )


def stacked(group: Group, marks: Sequence[tuple[float, float | None, str]]) -> tuple[Floats, Floats]:
    """Bin starts in s, and one line of smoothed bit/s for each repetition, cut to the shortest."""
    lines = [timeline(cell) for cell in group.cells]
    length = min(len(line.bytes) for line in lines)
    edges = sorted({edge for start, end, _ in marks for edge in (start, end) if edge is not None})
    cuts = [lines[0].bin_at(edge) for edge in edges]
    rates = np.array([smoothed(line.rate_bps[:length], cuts) for line in lines])
    return lines[0].starts_s[:length], rates


def smoothed(values: Floats, cuts: Sequence[int]) -> Floats:
    """Centred mean of up to three bins, never across one of the ``cuts`` (index of the first bin after it)."""
    parts = np.split(values, [cut for cut in cuts if 0 < cut < len(values)])
    ones = np.ones(_SMOOTHED_BINS)
    return np.concatenate(
        [
            np.convolve(part, ones, "same")[: len(part)] / np.convolve(np.ones(len(part)), ones, "same")[: len(part)]
            if len(part) >= _SMOOTHED_BINS
            else part
            for part in parts
        ]
    )


def _draw_capacity(axes: Axes, groups: Sequence[Group], handles: list[Line2D], labels: list[str]) -> float:
    """The capacity as a step line, once for each different one. Returns the highest value in Mbit/s."""
    drawn: list[Floats] = []
    for group in groups:
        cell = group.cells[0]
        line = timeline(cell)
        capacity = capacity_bps(cell, line)
        if capacity is None or any(
            len(other) == len(capacity) and np.allclose(other, capacity, rtol=0.01) for other in drawn
        ):
            continue
        steps = sorted(cell.record.capacity, key=lambda step: step.from_s)
        times = [0.0, *(step.from_s for step in steps[1:]), cell.record.duration_s]
        values = [step.bps / 1e6 for step in steps]
        axes.step(times, [*values, values[-1]], where="post", color=style.MUTED, lw=1.0, ls=(0, (1, 1.2)), zorder=1.5)
        if not drawn:
            handles.append(Line2D([], [], color=style.MUTED, lw=1.0, ls=(0, (1, 1.2))))
            labels.append("payload capacity")
        drawn.append(capacity)
    return max((float(capacity.max()) / 1e6 for capacity in drawn), default=0.0)


def _notes(marks: Sequence[tuple[float, float | None, str]]) -> list[str]:
    """The numbers on top of the marks in words, for below the axis."""
    notes = []
    for number, (start_s, until_s, name) in enumerate(marks[:_MOST_NAMES], start=1):
        end = f" to {until_s:.3g} s" if until_s is not None else " s on"
        notes += wrap(f"{number}: {name}, {start_s:.3g}{end}", 62)
    return notes + ([f"and {len(marks) - _MOST_NAMES} more"] if len(marks) > _MOST_NAMES else [])
