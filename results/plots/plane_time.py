"""Goodput of each plane over time, stacked, for the transport that uses all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from results.groups import Group
from results.metrics.planes import plane_timelines
from results.plots import style
from results.plots.goodput_time import draw_failures, failure_marks, smoothed

NAME = "planes-over-time"
TITLE = "planes over time"
TABLES = ("goodput",)
CAPTION = (
    "Goodput of each plane, stacked; mean over repetitions, bins of 50 ms smoothed as in the goodput plot. Shown for "
    "MRC, or for the transport that used the planes most evenly. Red: a failure begins; shaded: it lasts."
)


def draw(groups: Sequence[Group], params: str = "") -> Figure | None:
    """The figure, or None if no group knows its planes or there is only one.

    Raises:
        ResultError: a goodput table is damaged.
    """
    group = _chosen(groups)
    if group is None:
        return None
    marks = failure_marks([group])
    per_cell = [plane_timelines(cell) for cell in group.cells]
    planes = sorted({plane for lines in per_cell for plane in lines})
    length = min(len(line.bytes) for lines in per_cell for line in lines.values())
    first = per_cell[0][planes[0]]
    cuts = [first.bin_at(edge) for start, end, _ in marks for edge in (start, end) if edge is not None]
    means = [
        np.mean(
            [smoothed(lines[plane].rate_bps[:length], sorted(cuts)) for lines in per_cell if plane in lines], axis=0
        )
        / 1e6
        for plane in planes
    ]
    with style.styled():
        figure, axes = style.new_figure(f"{group.short}: {TITLE}", style.subtitle(params, [group]), height_in=2.6)
        colors = style.plane_colors(len(planes))
        axes.stackplot(first.starts_s[:length] + first.bin_s / 2, means, colors=colors, lw=0.4, edgecolor="white")
        # The stack hides the shaded spans, so their ends are marked as well.
        draw_failures(axes, marks)
        for _, until_s, _ in marks:
            if until_s is not None:
                axes.axvline(until_s, color=style.FAILURE, lw=0.8, ls=(0, (2, 2)))
        axes.set_xlim(0, group.cells[0].record.duration_s)
        axes.set_ylim(0, float(np.sum(means, axis=0).max()) * 1.12 or 1)
        axes.set_xlabel("time since the start of traffic, s")
        axes.set_ylabel("goodput, Mbit/s")
        labels = [f"plane {plane}" for plane in planes]
        style.legend_below(figure, [Patch(color=color) for color in colors], labels, columns=4)
    return figure


def _chosen(groups: Sequence[Group]) -> Group | None:
    known = [group for group in groups if group.n and all(len(plane_timelines(cell)) > 1 for cell in group.cells)]
    mrc = [group for group in known if group.transport == "mrc"]
    if mrc or not known:
        return mrc[0] if mrc else None

    def unevenness(group: Group) -> float:
        sums = np.array([[line.bytes.sum() for line in plane_timelines(cell).values()] for cell in group.cells])
        return float(sums.std() / sums.mean()) if sums.mean() else np.inf

    return min(known, key=unevenness)
