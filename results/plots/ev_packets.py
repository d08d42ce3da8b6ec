"""Packets sent with each entropy value (EV), and which EVs ended out of use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from results.groups import Group
from results.plots import style

NAME = "ev-packets"
TITLE = "packets per EV"
TABLES = ("evs",)
CAPTION = (
    "Data packets sent with each entropy value of each host, by plane and path, all repetitions; each point is one EV. "
    "Filled: usable at the end; crosses: not (taken out after a loss). Points of one column are the hosts' EVs of the "
    "same path: equal heights mean that load is spread evenly."
)
_GOOD_STATES = ("good", "active")


def draw(groups: Sequence[Group], params: str = "") -> Figure | None:
    """The figure of the first group that has EV counters, or None.

    Raises:
        ResultError: an EV table is damaged.
    """
    known = [group for group in groups if group.n and any(len(cell.evs) for cell in group.cells)]
    if not known:
        return None
    group = next((candidate for candidate in known if candidate.transport == "mrc"), known[0])
    frames = [cell.evs for cell in group.cells if len(cell.evs)]
    columns = sorted(
        {(int(plane), int(path)) for frame in frames for plane, path in zip(frame["plane"], frame["path"], strict=True)}
    )
    place = {column: index for index, column in enumerate(columns)}
    planes = sorted({plane for plane, _ in columns})
    with style.styled():
        figure, axes = style.new_figure(f"{group.short}: {TITLE}", style.subtitle(params, [group]), height_in=2.6)
        colors = dict(zip(planes, style.plane_colors(len(planes)), strict=True))
        any_bad = False
        for number, frame in enumerate(frames):
            # Repetitions side by side, within the width of one column.
            shift = 0.5 * ((number + 0.5) / len(frames) - 0.5)
            for plane in planes:
                own = frame[frame["plane"] == plane]
                good = own["state"].str.lower().isin(_GOOD_STATES).to_numpy()
                x = np.array([place[plane, int(path)] for path in own["path"]], dtype=float) + shift
                y = own["sent_packets"].to_numpy(dtype=float)
                axes.plot(x[good], y[good], ".", ms=3, color=colors[plane], mew=0, alpha=0.8)
                axes.plot(x[~good], y[~good], "x", ms=3.6, color=style.FAILURE, mew=0.9)
                any_bad = any_bad or bool((~good).any())
        for before, after in pairwise(columns):
            if before[0] != after[0]:
                axes.axvline(place[after] - 0.5, color=style.MUTED, lw=0.5)
        axes.set_xlim(-0.6, len(columns) - 0.4)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        if len(columns) <= 24:
            axes.set_xticks(range(len(columns)), [str(path) for _, path in columns])
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("path within the plane")
        axes.set_ylabel("packets sent with one EV")
        handles: list[Line2D] = [Line2D([], [], color=colors[plane], marker="o", ms=4, ls="") for plane in planes]
        labels = [f"plane {plane}" for plane in planes]
        if any_bad:
            handles.append(Line2D([], [], color=style.FAILURE, marker="x", ms=4, mew=0.9, ls=""))
            labels.append("out of use at the end")
        style.legend_below(figure, handles, labels, columns=3)
    return figure
