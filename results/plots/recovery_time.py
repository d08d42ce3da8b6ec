"""Recovery time of each failure, one point for each repetition."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.groups import Group
from results.metrics.recovery import Outcome, outcomes
from results.plots import style

NAME = "recovery-time"
TITLE = "Recovery time"
TABLES = ("goodput",)
CAPTION = (
    "From the beginning of a failure until goodput is back to 90 % of what the surviving capacity allows and stays "
    "there for 500 ms (definition below). One point for each repetition, the bar is their median. Open triangles: not "
    "recovered while it was watched."
)
_MOST_FAILURES = 6


def draw(groups: Sequence[Group], params: str = "") -> Figure | None:
    """The figure, or None if nothing failed or nothing can be said.

    Raises:
        ResultError: a goodput table is damaged.
    """
    shown = [group for group in groups if group.n]
    found = [(group, _by_name(group)) for group in shown]
    names = list(dict.fromkeys(name for _, per_name in found for name in per_name))[:_MOST_FAILURES]
    if not names:
        return None
    with style.styled():
        height_in = 1.45 + 0.13 * len(shown) + 0.2 * len(names) * max(2, len(shown))
        figure, axes = style.new_figure(TITLE, style.subtitle(params, shown), height_in=height_in)
        step = 0.8 / len(shown)
        top, any_missing = 0.0, False
        for number, ((_, per_name), look) in enumerate(zip(found, style.looks(shown), strict=True)):
            for row, name in enumerate(names):
                y = row + (number - (len(shown) - 1) / 2) * step
                times = sorted(o.recovery_s for o in per_name.get(name, []) if o.recovery_s is not None)
                missing = [o.observed_s for o in per_name.get(name, []) if o.recovery_s is None]
                if times:
                    axes.barh(y, times[len(times) // 2], step * 0.8, color=look.color, alpha=0.3)
                    axes.plot(
                        times, [y] * len(times), "o", ms=3.4, color=look.color, mec="white", mew=0.4, clip_on=False
                    )
                if missing:
                    axes.plot(missing, [y] * len(missing), ">", ms=4.5, mfc="white", mec=look.color, clip_on=False)
                top = max([top, *times, *missing])
                any_missing = any_missing or bool(missing)
        axes.set_yticks(range(len(names)), [fill(name, 20, break_on_hyphens=True) for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, top * 1.06 or 1)
        axes.set_xlabel("time from the failure to recovery, s")
        handles = [Line2D([], [], color=look.color, marker="o", ms=4, ls="") for look in style.looks(shown)]
        labels = [style.group_label(group) for group in shown]
        if any_missing:
            handles.append(Line2D([], [], mfc="white", mec=style.INK, marker=">", ms=4.5, ls=""))
            labels.append("not recovered by then")
        style.legend_below(figure, handles, labels)
    return figure


def _by_name(group: Group) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for cell in group.cells:
        for outcome in outcomes(cell):
            if outcome.level_bps is not None:
                found.setdefault(outcome.name, []).append(outcome)
    return found
