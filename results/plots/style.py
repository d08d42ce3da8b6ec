"""How all plots look: sizes, colours, labels; and how they are saved with their origin inside.

Figures are 89 mm wide (half of an A4 page's text) with 7.5 point text. Colours are those of Okabe and Ito, told apart
with every common colour blindness ("Color Universal Design", 2008); each transport keeps its colour and its line style
in every plot.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import shorten, wrap
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.groups import Group
from results.reader import Run

ImageFormat = Literal["png", "svg", "pdf"]
IMAGE_FORMATS: tuple[ImageFormat, ...] = ("png", "svg", "pdf")

WIDTH_IN = 3.5
DPI = 300
_LEGEND_LINE = 48
_TITLE_LINE = 38
INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e4e4e4"
FAILURE = "#8c1c13"
FAILURE_SPAN = "#f3e3e1"

# Line styles: solid, or (offset, (on, off, ...)) in points.
Dashes = Literal["-"] | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """Colour and line style of one transport."""

    color: str
    dashes: Dashes


_LOOKS = {
    "mrc": Look("#0072B2", "-"),
    "tcp": Look("#D55E00", (0, (5, 1.5))),
    "mptcp": Look("#009E73", (0, (5, 1.2, 1, 1.2))),
    "rc": Look("#B5548D", (0, (1.2, 1.2))),
    "spray": Look("#C98A00", (0, (3, 1, 1, 1, 1, 1))),
}
_OTHERS = (Look("#56B4E9", (0, (7, 2))), Look("#5B5B5B", (0, (2, 2))), Look("#7A4EAB", (0, (4, 1, 1, 1))))


def look(transport: str) -> Look:
    """The transport's colour and line style; an unknown one gets one by its name, the same in every plot."""
    return _LOOKS.get(transport) or _OTHERS[zlib.crc32(transport.encode()) % len(_OTHERS)]


def looks(groups: Sequence[Group]) -> list[Look]:
    """One look for each group; groups that would look the same get further colours."""
    taken: list[Look] = []
    for group in groups:
        wanted = look(group.transport)
        free = [other for other in (wanted, *_OTHERS, *_LOOKS.values()) if other not in taken]
        reserved = {look(other.transport).color for other in groups}
        unreserved = [other for other in free if other == wanted or other.color not in reserved]
        taken.append((unreserved or free or [wanted])[0])
    return taken


def plane_colors(planes: int) -> list[tuple[float, float, float, float]]:
    """One colour for each plane, from dark to light, ordered also in grey."""
    colormap = matplotlib.colormaps["cividis"]
    return [colormap(0.08 + 0.84 * index / max(1, planes - 1)) for index in range(planes)]


@contextmanager
def styled() -> Iterator[None]:
    """matplotlib's settings for the time a figure is made or saved; the caller's own come back afterwards."""
    with matplotlib.rc_context(
        {
            "font.family": "DejaVu Sans",
            "font.size": 7.5,
            "axes.titlesize": 8.5,
            "axes.titleweight": "bold",
            "axes.labelsize": 7.5,
            "axes.edgecolor": MUTED,
            "axes.labelcolor": INK,
            "axes.linewidth": 0.6,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": GRID,
            "grid.linewidth": 0.5,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "xtick.major.width": 0.6,
            "ytick.major.width": 0.6,
            "legend.fontsize": 7,
            "legend.frameon": False,
            "legend.handlelength": 2.4,
            "legend.columnspacing": 1.2,
            "lines.linewidth": 1.3,
            "figure.facecolor": "white",
            "svg.fonttype": "path",
            "svg.hashsalt": "mrc-testbed",
            "pdf.fonttype": 42,
            "axes.unicode_minus": True,
        }
    ):
        yield


def new_figure(title: str, subtitle: str = "", *, height_in: float = 2.7) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes, a title and a smaller line below it. Call within :func:`styled`."""
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(shorten(title, _TITLE_LINE, placeholder="…"), loc="left", pad=17 if subtitle else 6)
    if subtitle:
        axes.annotate(
            shorten(subtitle, 2 * _TITLE_LINE - 14, placeholder="…"),
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 5),
            textcoords="offset points",
            fontsize=6.5,
            color=MUTED,
            va="bottom",
        )
    return figure, axes


def legend_below(figure: Figure, handles: Sequence[Any], labels: Sequence[str], columns: int = 2) -> None:
    """The legend under the axes, where it never hides data and is never cut off."""
    labels = ["\n".join(part for line in label.split("\n") for part in wrap(line, _LEGEND_LINE)) for label in labels]
    # Two columns of longer labels would run over the edge.
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    columns = 1 if longest > 28 else columns
    figure.legend(handles, labels, loc="outside lower left", ncols=min(columns, max(1, len(labels))))


def group_label(group: Group) -> str:
    """``MRC (n = 3)``, and whether it was host-limited; swept values are in the line below the title."""
    return f"{group.short} ({group.note})"


def handle(appearance: Look) -> Line2D:
    """A legend's sample of a line."""
    return Line2D([], [], color=appearance.color, linestyle=appearance.dashes)


def subtitle(params: str, groups: Sequence[Group]) -> str:
    """The line below a title: the swept values, and which groups were limited by the machine."""
    slow = [group.short for group in groups if group.verdict == "host-limited"]
    mark = ""
    if slow:
        mark = f"host-limited: {', '.join(slow) if len(slow) <= 3 else f'{len(slow)} of {len(groups)}'}"
    return ";  ".join(text for text in (params, mark) if text)


def origin(runs: Sequence[Run], groups: Sequence[Group], tables: Sequence[str]) -> dict[str, list[str]]:
    """Where a plot comes from: run ids and the files its points were read from, relative to ``results/runs``."""
    files = [
        f"{group.run.id}/cells/{cell.record.id}/{name}"
        for group in groups
        for cell in group.cells
        for name in ("cell.json", *(f"{table}.parquet" for table in tables))
    ]
    return {"runs": [run.id for run in runs], "files": files}


def image(figure: Figure, kind: ImageFormat, *, title: str, source: dict[str, list[str]]) -> bytes:
    """The figure as a file, the same bytes for the same results, with its run ids and file list inside."""
    described = json.dumps(source)
    metadata: dict[str, Any]
    if kind == "png":
        metadata = {
            "Title": title,
            "Software": "mrc-testbed",
            "Source": ", ".join(source["runs"]),
            "Description": described,
        }
    elif kind == "svg":
        metadata = {
            "Title": title,
            "Creator": "mrc-testbed",
            "Date": None,
            "Identifier": ", ".join(source["runs"]),
            "Description": described,
        }
    else:
        metadata = {
            "Title": title,
            "Creator": "mrc-testbed",
            "CreationDate": None,
            "Subject": ", ".join(source["runs"]),
            "Keywords": described,
        }
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()
