"""How each transport spread its bytes over the planes."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from results.groups import Group
from results.metrics.planes import mean_plane_shares, plane_shares
from results.plots import style

NAME = "plane-share"
TITLE = "Share of each plane"
TABLES = ("goodput",)
CAPTION = (
    "Payload delivered over each plane as a share of all planes, warm-up left out. Bar: mean over repetitions; "
    "dots: the repetitions; dashed: equal shares."
)


def draw(groups: Sequence[Group], params: str = "") -> Figure | None:
    """The figure, or None if no group knows its planes or there is only one.

    Raises:
        ResultError: a goodput table is damaged.
    """
    shares = [(group, mean_plane_shares(group.cells)) for group in groups if group.n]
    shares = [(group, known) for group, known in shares if known]
    planes = max((max(known) for _, known in shares), default=0)
    if planes < 2:
        return None
    shown = [group for group, _ in shares]
    with style.styled():
        figure, axes = style.new_figure(TITLE, style.subtitle(params, shown), height_in=2.7)
        colors = style.plane_colors(planes)
        width = 0.8 / planes
        top = 1 / planes
        for place, (group, known) in enumerate(shares):
            repetitions = [plane_shares(cell) for cell in group.cells]
            for plane in range(1, planes + 1):
                x = place + (plane - (planes + 1) / 2) * width
                axes.bar(x, known.get(plane, 0.0), width * 0.9, color=colors[plane - 1])
                each = [repetition.get(plane, 0.0) for repetition in repetitions]
                axes.plot([x] * len(each), each, ".", ms=3.4, color=style.INK, mec="white", mew=0.3, zorder=4)
                top = max(top, known.get(plane, 0.0), *each)
        axes.axhline(1 / planes, color=style.INK, lw=0.8, ls=(0, (4, 2)), zorder=3)
        axes.set_xticks(range(len(shares)), [_tick(group, len(shown)) for group in shown])
        axes.set_xlim(-0.55, len(shares) - 0.45)
        axes.grid(visible=False, axis="x")
        axes.tick_params(axis="x", length=0)
        axes.set_ylim(0, min(1.02, top * 1.12))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        axes.set_ylabel("share of the payload")
        handles: list[Patch | Line2D] = [Patch(color=color) for color in colors]
        handles.append(Line2D([], [], color=style.INK, lw=0.8, ls=(0, (4, 2))))
        labels = [f"plane {plane}" for plane in range(1, planes + 1)] + ["equal shares"]
        style.legend_below(figure, handles, labels, columns=3)
    return figure


def _tick(group: Group, groups: int) -> str:
    label = fill(group.short, max(8, 44 // groups))
    return label + "\n" + group.note.replace(", ", "\n")
