"""All plots there are, and the drawing of those that a comparison has data for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from results.groups import Group, facets
from results.plots import (
    completion_cdf,
    ev_packets,
    goodput_time,
    plane_share,
    plane_time,
    recovery_time,
    style,
    sweep,
)
from results.summary import Comparison
from results.writer import slug


@dataclass(frozen=True)
class Plot:
    """One kind of plot. ``across_sweep``: one figure of all swept values, instead of one figure for each."""

    name: str
    title: str
    caption: str
    tables: tuple[str, ...]
    draw: Callable[[Sequence[Group], str], Figure | None]
    across_sweep: bool = False


@dataclass(frozen=True)
class Drawing:
    """A finished figure. ``name`` is fit for a file name; ``source`` lists run ids and files for its metadata."""

    name: str
    title: str
    caption: str
    figure: Figure
    source: dict[str, list[str]]

    def image(self, kind: style.ImageFormat) -> bytes:
        """The figure as PNG, SVG or PDF."""
        return style.image(self.figure, kind, title=self.title, source=self.source)


PLOTS: tuple[Plot, ...] = (
    Plot(sweep.NAME, sweep.TITLE, sweep.CAPTION, sweep.TABLES, sweep.draw, across_sweep=True),
    Plot(goodput_time.NAME, goodput_time.TITLE, goodput_time.CAPTION, goodput_time.TABLES, goodput_time.draw),
    Plot(completion_cdf.NAME, completion_cdf.TITLE, completion_cdf.CAPTION, completion_cdf.TABLES, completion_cdf.draw),
    Plot(recovery_time.NAME, recovery_time.TITLE, recovery_time.CAPTION, recovery_time.TABLES, recovery_time.draw),
    Plot(plane_share.NAME, plane_share.TITLE, plane_share.CAPTION, plane_share.TABLES, plane_share.draw),
    Plot(plane_time.NAME, plane_time.TITLE, plane_time.CAPTION, plane_time.TABLES, plane_time.draw),
    Plot(ev_packets.NAME, ev_packets.TITLE, ev_packets.CAPTION, ev_packets.TABLES, ev_packets.draw),
)


def drawings(comparison: Comparison) -> Iterator[Drawing]:
    """Every plot the comparison has data for; with a sweep, one of each kind for each set of parameters.

    Raises:
        ResultError: a table is damaged.
    """
    for plot in PLOTS:
        parts = [("", comparison.groups)] if plot.across_sweep else facets(comparison.groups)
        for params, groups in parts:
            figure = plot.draw(groups, params)
            if figure is None:
                continue
            # Laid out once, not again for each image format.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            name = f"{plot.name}-{slug(params)}" if params else plot.name
            title = f"{plot.title}, {params}" if params else plot.title
            used = [group for group in groups if group.n]
            yield Drawing(name, title, plot.caption, figure, style.origin(comparison.runs, used, plot.tables))
