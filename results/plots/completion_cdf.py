"""The distribution of message completion times, with its p50 and p99."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, PercentFormatter

from results.groups import Group
from results.metrics.completion import percentile, pooled_times_s
from results.metrics.integrity import total_counts
from results.plots import style
from results.units import number

NAME = "completion-time-cdf"
TITLE = "Message completion time"
TABLES = ("messages",)
CAPTION = (
    "Share of messages complete within a time, from the raw samples of all repetitions together, warm-up left out. "
    "Circle: p50; triangle: p99. Messages still on their way at the end have no time and are not in the curve."
)
# Times that span more than this factor are drawn on a logarithmic axis.
_LOG_FROM = 8.0


def draw(groups: Sequence[Group], params: str = "") -> Figure | None:
    """The figure, or None if no message was completed.

    Raises:
        ResultError: a message table is damaged.
    """
    samples = [(group, pooled_times_s(group.cells) * 1e3) for group in groups if group.n]
    samples = [(group, times) for group, times in samples if len(times)]
    if not samples:
        return None
    shown = [group for group, _ in samples]
    with style.styled():
        figure, axes = style.new_figure(TITLE, style.subtitle(params, shown), height_in=2.3 + 0.28 * len(shown))
        handles: list[Line2D] = []
        labels: list[str] = []
        for (group, times), look in zip(samples, style.looks(shown), strict=True):
            shares = np.arange(1, len(times) + 1) / len(times)
            axes.step(
                np.concatenate((times[:1], times)),
                np.concatenate(([0.0], shares)),
                where="post",
                color=look.color,
                linestyle=look.dashes,
            )
            marks = {share: percentile(times, share) or 0.0 for share in (0.5, 0.99)}
            for (share, value), marker in zip(marks.items(), "o^", strict=True):
                axes.plot(value, share, marker, ms=4.2, zorder=4, color=look.color, mec="white", mew=0.6)
            handles.append(style.handle(look))
            labels.append(_label(group, len(times), marks[0.5], marks[0.99]))
        low = min(float(times[0]) for _, times in samples)
        high = max(float(times[-1]) for _, times in samples)
        if low > 0 and high / low > _LOG_FROM:
            axes.set_xscale("log")
            axes.set_xlim(low / 1.15, high * 1.15)
            axes.xaxis.set_major_locator(FixedLocator(_ticks(low / 1.15, high * 1.15)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_xlim(0, high * 1.06)
        axes.set_ylim(0, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        axes.set_xlabel("completion time, ms")
        axes.set_ylabel("messages complete")
        style.legend_below(figure, handles, labels, columns=1)
    return figure


def _label(group: Group, samples: int, p50_ms: float, p99_ms: float) -> str:
    unfinished = total_counts(group.cells).unfinished
    text = f"{style.group_label(group)}, {samples:,} messages" + (f", {unfinished:,} unfinished" if unfinished else "")
    return f"{text}\np50 {number(p50_ms)} ms, p99 {number(p99_ms)} ms"


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 of each decade; only the decades themselves where that would be too many."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    fine = [step * 10.0**decade for decade in decades for step in (1, 2, 5) if low <= step * 10.0**decade <= high]
    return fine if len(fine) <= 9 else [10.0**decade for decade in decades]
