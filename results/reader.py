"""Reads runs back: whole, unfinished or partly damaged, from any directory, without writing to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from results.errors import ResultError
from results.files import is_locked
from results.schema import (
    CELL_FILE,
    CELLS_DIR,
    EVENTS_FILE,
    LOCK_FILE,
    MANIFEST_FILE,
    REPORT_DIR,
    CellRecord,
    Event,
    Manifest,
    RunStatus,
    parse_json,
    read_record,
    validate,
)
from results.tables import EVS, GOODPUT, HOSTS, LINKS, MACHINE, MESSAGES, Table, from_parquet


@dataclass(frozen=True)
class Cell:
    """One cell of a run. Tables are read when first asked for, and raise ResultError if damaged.

    A table nobody wrote is empty, except ``messages`` and ``goodput`` of a finished cell, which must exist.

    Attributes:
        path: the cell's directory.
        record: its ``cell.json``; status ``interrupted`` where the writer died before it could say more.
    """

    path: Path
    record: CellRecord

    @cached_property
    def messages(self) -> pd.DataFrame:
        """One row for each message of the workload."""
        return self._table(MESSAGES, needed=True)

    @cached_property
    def goodput(self) -> pd.DataFrame:
        """Payload bytes delivered, by bin, pair and plane."""
        return self._table(GOODPUT, needed=True)

    @cached_property
    def evs(self) -> pd.DataFrame:
        """Counters of each entropy value at the end; empty for transports without them."""
        return self._table(EVS)

    @cached_property
    def links(self) -> pd.DataFrame:
        """Counters of each link direction over time."""
        return self._table(LINKS)

    @cached_property
    def hosts(self) -> pd.DataFrame:
        """State of each host's agent over time."""
        return self._table(HOSTS)

    @cached_property
    def machine(self) -> pd.DataFrame:
        """Idle CPU over time."""
        return self._table(MACHINE)

    @cached_property
    def events(self) -> list[Event]:
        """The event log, in order of time. A last line cut off by a crash is left out.

        Raises:
            ResultError: another line is damaged; the message has its number.
        """
        file = self.path / EVENTS_FILE
        if not file.is_file():
            return []
        try:
            lines = file.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ResultError(file, f"cannot be read: {error}") from error
        found = []
        for number, line in enumerate(lines[:-1], start=1):
            if line.strip():
                where = Path(f"{file}:{number}")
                found.append(validate(Event, parse_json(line, where), where))
        return sorted(found, key=lambda event: event.t_s)

    def _table(self, table: Table, *, needed: bool = False) -> pd.DataFrame:
        file = self.path / table.file_name
        if not file.exists() and not (needed and self.record.status == "done"):
            return table.empty()
        return from_parquet(table, file)


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        path: its directory.
        manifest: its ``manifest.json``.
        status: as stored, but ``interrupted`` when it says ``running`` and its writer is gone.
        cells: those that could be read, in the order they were started.
        problems: what could not be read; one error for each damaged cell.
    """

    path: Path
    manifest: Manifest
    status: RunStatus
    cells: tuple[Cell, ...]
    problems: tuple[ResultError, ...] = ()

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def report_dir(self) -> Path:
        """Where ``report`` puts its files."""
        return self.path / REPORT_DIR

    @property
    def files(self) -> tuple[str, ...]:
        """The stored files, relative to ``path``, sorted; reports and hidden files left out."""
        relative = (file.relative_to(self.path) for file in self.path.rglob("*") if file.is_file())
        return tuple(
            sorted(str(file) for file in relative if file.parts[0] != REPORT_DIR and not file.name.startswith("."))
        )


@dataclass(frozen=True)
class RunInfo:
    """What a list of runs shows of one, from its manifest alone.

    Attributes:
        manifest: None if it cannot be read; ``problem`` then says why.
    """

    path: Path
    status: RunStatus
    manifest: Manifest | None = None
    problem: ResultError | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def name(self) -> str:
        return self.manifest.name if self.manifest else self.id.partition("-")[2]

    @property
    def created(self) -> str:
        """ISO 8601 in UTC, empty if not known."""
        return self.manifest.created if self.manifest else ""

    @property
    def sort_key(self) -> tuple[str, str]:
        """Orders runs by their start; without a manifest by the time in their id."""
        stamp = self.created.replace("-", "").replace(":", "")
        return (stamp or self.id, self.id)


def load_run(path: Path | str) -> Run:
    """Read a run: its directory, or its ``manifest.json``.

    Cells that cannot be read are left out and listed in ``problems``; the others still load.

    Raises:
        ResultError: there is no run there, or its manifest is damaged or of a newer version.
    """
    directory = Path(path)
    if directory.name == MANIFEST_FILE:
        directory = directory.parent
    if not directory.is_dir():
        raise ResultError(directory, "no such run", "`list` shows the runs there are")
    manifest = read_record(Manifest, directory / MANIFEST_FILE)
    status = _status(directory, manifest)
    cells: list[Cell] = []
    problems: list[ResultError] = []
    for cell_id in _cell_ids(directory, manifest):
        cell_path = directory / CELLS_DIR / cell_id
        try:
            cells.append(_load_cell(cell_path, status))
        except ResultError as error:
            problems.append(error)
    return Run(directory, manifest, status, tuple(cells), tuple(problems))


def list_runs(root: Path | str) -> list[RunInfo]:
    """All runs below ``root``, newest first. A run with a damaged manifest is listed with its problem.

    Raises:
        ResultError: ``root`` exists and cannot be read.
    """
    directory = Path(root)
    if not directory.exists():
        return []
    try:
        entries = [entry for entry in directory.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    except OSError as error:
        raise ResultError(directory, f"cannot be read: {error.strerror or error}") from error
    runs = [_info(entry) for entry in entries if _looks_like_run(entry)]
    return sorted(runs, key=lambda info: info.sort_key, reverse=True)


def find_run(root: Path | str, reference: str | Path = "latest") -> Path:
    """The directory of the run a user means.

    Args:
        root: the directory of all runs.
        reference: ``latest``, an id, the unique beginning of an id, a name (the newest run of that name), or a path.

    Raises:
        ResultError: there is no such run, or several begin like that; the message lists near ones.
    """
    text = str(reference)
    for path in (Path(text), Path(text).parent):
        if "/" in text and (path / MANIFEST_FILE).is_file():
            return path
    runs = list_runs(root)
    if not runs:
        raise ResultError(root, "there are no runs yet", "start one with: sudo ./run.py quickstart")
    if text == "latest":
        return runs[0].path
    for info in runs:
        if info.id == text:
            return info.path
    for info in runs:
        if info.name == text:
            return info.path
    beginning = [info for info in runs if text and info.id.startswith(text)]
    if len(beginning) == 1:
        return beginning[0].path
    if len(beginning) > 1:
        raise ResultError(root, f"{len(beginning)} runs begin with {text!r}", f"newest: {beginning[0].id}")
    if (Path(text) / MANIFEST_FILE).is_file():
        return Path(text)
    known = list(dict.fromkeys([info.id for info in runs] + [info.name for info in runs]))
    near = difflib.get_close_matches(text, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"newest: {runs[0].id}"
    raise ResultError(root, f"no run {text!r}", hint)


def _cell_ids(directory: Path, manifest: Manifest) -> Iterator[str]:
    """Ids from the manifest first, then directories it does not know (a crash between the two)."""
    cells = directory / CELLS_DIR
    # An id from a manifest that came from elsewhere must not lead out of the run.
    known = [cell_id for cell_id in manifest.cells if Path(cell_id).name == cell_id]
    yield from known
    if cells.is_dir():
        yield from sorted(entry.name for entry in cells.iterdir() if entry.is_dir() and entry.name not in known)


def _load_cell(path: Path, run_status: RunStatus) -> Cell:
    record = read_record(CellRecord, path / CELL_FILE)
    if record.status == "running" and run_status != "running":
        record = record.model_copy(update={"status": "interrupted", "error": "the run ended before this cell did"})
    return Cell(path, record)


def _status(directory: Path, manifest: Manifest) -> RunStatus:
    if manifest.status == "running" and not is_locked(directory / LOCK_FILE):
        return "interrupted"
    return manifest.status


def _looks_like_run(directory: Path) -> bool:
    return any((directory / name).exists() for name in (MANIFEST_FILE, LOCK_FILE, CELLS_DIR))


def _info(directory: Path) -> RunInfo:
    try:
        manifest = read_record(Manifest, directory / MANIFEST_FILE)
    except ResultError as error:
        return RunInfo(directory, "running" if is_locked(directory / LOCK_FILE) else "failed", None, error)
    return RunInfo(directory, _status(directory, manifest), manifest)
