"""The report of a run: one self-contained page, a Markdown summary, and the plots as images."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2

from results import table, words
from results.definitions import DEFINITIONS
from results.errors import ResultError
from results.files import make_directories, write_atomically, write_error
from results.plots.catalogue import Drawing, drawings
from results.plots.style import IMAGE_FORMATS
from results.reader import Run
from results.schema import Event
from results.summary import Comparison, as_json, compare
from results.units import data, transport_name

ReportFormat = Literal["html", "png", "svg", "pdf"]
REPORT_FORMATS: tuple[ReportFormat, ...] = ("html", "png", "svg", "pdf")

_MOST_EVENTS = 150
_MOST_TIMELINES = 8
_LONG_DETAIL = 160
# A page is wider than a terminal.
_SIDE_BY_SIDE = 7


@dataclass(frozen=True)
class EventLine:
    """One event as the page shows it."""

    t_s: str
    source: str
    kind: str
    name: str
    detail: str


@dataclass(frozen=True)
class EventTable:
    """The events of one cell; ``left_out``: how many are not shown."""

    title: str
    lines: tuple[EventLine, ...]
    left_out: int


def write_report(
    runs: Run | Sequence[Run], formats: Iterable[ReportFormat] = ("html", "png"), directory: Path | None = None
) -> list[Path]:
    """Write ``report.html``, the plots in each image format, ``summary.md`` and ``summary.json``.

    Args:
        runs: a run, or several to put side by side.
        formats: ``html`` for the page, ``png``, ``svg`` and ``pdf`` for images; the summaries are always written.
        directory: where to; the ``report`` directory of the (first) run if None. An earlier report is replaced.

    Returns:
        The files, the page first.

    Raises:
        ResultError: a file cannot be written.
        ValueError: a format is unknown.
    """
    wanted = list(dict.fromkeys(formats))
    unknown = [name for name in wanted if name not in REPORT_FORMATS]
    if unknown:
        raise ValueError(f"unknown report format {', '.join(unknown)}; there are {', '.join(REPORT_FORMATS)}")
    listed = [runs] if isinstance(runs, Run) else list(runs)
    comparison = compare(listed)
    target = directory or listed[0].report_dir
    drawn = list(drawings(comparison)) if wanted else []
    paths = []
    if "html" in wanted:
        paths.append(_write(target / "report.html", html(comparison, drawn)))
    paths.append(_write(target / "summary.md", markdown(comparison, [d for d in drawn if "png" in wanted])))
    paths.append(_write(target / "summary.json", json.dumps(as_json(comparison), indent=2, allow_nan=False) + "\n"))
    for kind in IMAGE_FORMATS:
        if kind in wanted:
            paths += [_write(target / f"{drawing.name}.{kind}", drawing.image(kind)) for drawing in drawn]
    return paths


def html(comparison: Comparison, drawn: Sequence[Drawing]) -> str:
    """The page. Everything is inside it: no script, no font, no image from anywhere else."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["keep_units"] = _keep_units
    plots = []
    captions: set[str] = set()
    for drawing in drawn:
        # Plots of one kind, one for each swept value, share the caption of the first.
        caption = "" if drawing.caption in captions else drawing.caption
        captions.add(caption)
        plots.append((drawing, base64.b64encode(drawing.image("svg")).decode("ascii"), caption))
    return environment.get_template("report.html.j2").render(
        title=_title(comparison),
        comparison=comparison,
        warnings=words.warnings(comparison),
        sentences=words.sentences(comparison),
        main=table.main_grid(comparison, _SIDE_BY_SIDE),
        failures=table.failure_grid(comparison),
        failed=[(row.label, reason) for row in comparison.rows for reason in row.group.failures],
        plots=plots,
        definitions=DEFINITIONS,
        events=event_tables(comparison),
        provenance=[(run, _provenance(run)) for run in comparison.runs],
        inputs=[text for run in comparison.runs for text in _inputs(run)],
        cells=[(run, cell.record) for run in comparison.runs for cell in run.cells],
        transport_name=transport_name,
    )


def markdown(comparison: Comparison, images: Sequence[Drawing] = ()) -> str:
    """The summary as Markdown: warnings, sentences, tables, and the images beside it."""
    parts = [f"# {_title(comparison)}\n"]
    parts += [f"> **Note:** {text}\n" for text in words.warnings(comparison)]
    parts.append("\n".join(f"- {text}" for text in words.sentences(comparison)) + "\n")
    parts.append(table.markdown(comparison))
    parts += [f"![{drawing.title}]({drawing.name}.png)\n" for drawing in images]
    runs = ", ".join(f"`{run.id}`" for run in comparison.runs)
    parts.append(f"Run {runs}. Metrics are defined in `report.html`.\n")
    return "\n".join(parts)


def event_tables(comparison: Comparison) -> list[EventTable]:
    """The events of the first counted cell of each group: what happened when."""
    found = []
    for group in [group for group in comparison.groups if group.n][:_MOST_TIMELINES]:
        cell = group.cells[0]
        title = f"{group.label}, repetition {cell.record.repetition}"
        try:
            events = cell.events
        except ResultError as error:
            events = [Event(t_s=0.0, source="report", kind="events cannot be read", detail=str(error))]
        if events:
            lines = tuple(_event_line(event) for event in events[:_MOST_EVENTS])
            found.append(EventTable(title, lines, max(0, len(events) - _MOST_EVENTS)))
    return found


def _keep_units(text: str) -> str:
    """Spaces between a number and its unit that a line never breaks at."""
    return re.sub(r"(?<=\d) (?=(?:[kMG]?bit/s|[KMG]?B|m?s|%|repetitions?|planes?|times)(?![A-Za-z]))", "\u00a0", text)


def _event_line(event: Event) -> EventLine:
    detail = event.detail
    if isinstance(detail, dict):
        text = ", ".join(f"{key} = {value}" for key, value in detail.items())
    else:
        text = "" if detail is None else str(detail)
    if len(text) > _LONG_DETAIL:
        text = text[: _LONG_DETAIL - 1] + "…"
    return EventLine(f"{event.t_s:.3f}", event.source, event.kind, event.name, text)


def _title(comparison: Comparison) -> str:
    names = list(dict.fromkeys(run.manifest.name for run in comparison.runs))
    return f"Comparison of {len(comparison.runs)} runs" if len(comparison.runs) > 1 else names[0]


def _provenance(run: Run) -> list[tuple[str, str]]:
    manifest = run.manifest
    machine = manifest.provenance
    versions = [(name, version) for name, version in machine.packages.items()]
    pairs: list[tuple[str, Any]] = [
        ("run", run.id),
        ("started", manifest.created.replace("T", " ").partition(".")[0] + " UTC"),
        ("ended as", run.status),
        ("verdict", manifest.verdict),
        ("command", manifest.command),
        ("experiment", manifest.files.experiment),
        ("topology", manifest.files.topology),
        ("seed", manifest.seed),
        ("data plane", manifest.dataplane),
        ("Open vSwitch datapath", manifest.datapath),
        ("substitutes", "; ".join(manifest.substitutes) or "none"),
        ("git commit", machine.git),
        ("kernel", machine.kernel),
        ("Open vSwitch", machine.ovs),
        ("Mininet", machine.mininet),
        ("Python", machine.python),
        ("packages", ", ".join(f"{name} {version}" for name, version in versions)),
        ("processor", f"{machine.cpu or 'not known'}, {machine.cores or '?'} cores"),
        ("memory", data(machine.memory_bytes) if machine.memory_bytes else None),
    ]
    return [(name, str(value)) for name, value in pairs if value not in (None, "")]


def _inputs(run: Run) -> list[tuple[str, str]]:
    found = []
    for name in ("experiment.yaml", "topology.yaml"):
        file = run.path / name
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if text.strip():
            found.append((f"{run.id}/{name}", text))
    return found


def _write(file: Path, content: str | bytes) -> Path:
    try:
        make_directories(file.parent)
        write_atomically(file, content)
    except OSError as error:
        raise write_error(file, error) from error
    return file
