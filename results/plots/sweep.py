"""Goodput against a swept number, one line for each transport."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.groups import Group
from results.metrics.goodput import mean_goodput_bps
from results.metrics.intervals import mean_interval
from results.plots import style

NAME = "goodput-sweep"
TITLE = "Goodput"
TABLES = ("goodput",)
CAPTION = "Mean goodput over repetitions against the swept value; bars: 95 % bootstrap interval over repetitions."


def draw(groups: Sequence[Group], params: str = "") -> Figure | None:
    """The figure, or None unless exactly one key was swept, over at least two numbers.

    Raises:
        ResultError: a goodput table is damaged.
    """
    shown = [group for group in groups if group.n]
    keys = {key for group in shown for key in group.params}
    if len(keys) != 1:
        return None
    (key,) = keys
    points = [(group, group.params[key]) for group in shown if _is_number(group.params.get(key))]
    if len({value for _, value in points}) < 2:
        return None
    transports = list(dict.fromkeys((group.transport, group.routing) for group, _ in points))
    firsts = [next(group for group, _ in points if (group.transport, group.routing) == one) for one in transports]
    with style.styled():
        name = key.rpartition(".")[2].replace("_", " ")
        figure, axes = style.new_figure(f"{TITLE} by {name}", style.subtitle(params, shown))
        handles = []
        labels = []
        for one, first, look in zip(transports, firsts, style.looks(firsts), strict=True):
            own = [(value, group) for group, value in points if (group.transport, group.routing) == one]
            drawn = []
            for value, group in sorted(own, key=lambda pair: pair[0]):
                known = [goodput for goodput in (mean_goodput_bps(cell) for cell in group.cells) if goodput is not None]
                interval = mean_interval(known)
                if interval is None:
                    continue
                drawn.append((value, interval.mean / 1e6))
                if interval.low is not None and interval.high is not None:
                    axes.plot([value, value], [interval.low / 1e6, interval.high / 1e6], color=look.color, lw=1.0)
            xs, ys = [x for x, _ in drawn], [y for _, y in drawn]
            axes.plot(xs, ys, color=look.color, linestyle=look.dashes, marker="o", ms=3.5)
            counts = sorted({group.n for _, group in own})
            n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
            handles.append(Line2D([], [], color=look.color, linestyle=look.dashes, marker="o", ms=3.5))
            labels.append(f"{first.short} (n = {n})")
        axes.set_xticks(sorted({value for _, value in points}))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(name)
        axes.set_ylabel("goodput, Mbit/s")
        style.legend_below(figure, handles, labels)
    return figure


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
