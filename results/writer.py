"""Writes one run: a new directory, whole files, nothing of an earlier run touched."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal

from results.errors import ResultError
from results.files import give_to_caller, hold_lock, make_directories, write_atomically, write_error
from results.schema import (
    CELL_FILE,
    CELLS_DIR,
    EVENTS_FILE,
    LOCK_FILE,
    MANIFEST_FILE,
    CellRecord,
    CellStatus,
    Event,
    InputFiles,
    Manifest,
    Provenance,
    RunStatus,
    Verdict,
    dump_record,
)
from results.tables import Rows, table_named, to_parquet

_MAX_NAME = 60
# A second start within one second takes the next number; nobody starts this many.
_MAX_SAME_SECOND = 10_000


def default_root() -> Path:
    """``results/runs`` of this checkout, where runs land unless the user says otherwise."""
    return Path(__file__).resolve().parent / "runs"


class RunWriter:
    """The writer of one run. As a context manager it records how the run ended, whatever ends it.

    Leaving the block normally marks the run ``done`` (unless ``finish`` said otherwise), with KeyboardInterrupt or
    SystemExit ``interrupted``, with any other exception ``failed``; the exception goes on.

    Attributes:
        path: the run's directory.
        manifest: what is stored in it so far.
    """

    def __init__(self, path: Path, manifest: Manifest, lock: IO[bytes]) -> None:
        self.path = path
        self.manifest = manifest
        self._lock: IO[bytes] | None = lock
        self._open_cells: list[CellWriter] = []

    @classmethod
    def create(
        cls,
        root: Path,
        name: str,
        *,
        command: str = "",
        experiment_yaml: str = "",
        topology_yaml: str = "",
        files: Mapping[str, str | None] | None = None,
        provenance: Provenance | Mapping[str, Any] | None = None,
        datapath: str | None = None,
        dataplane: str | None = None,
        substitutes: Sequence[str] = (),
        seed: int | None = None,
        now: datetime | None = None,
    ) -> RunWriter:
        """Make ``root/<id>/`` with a manifest of status ``running`` and the resolved YAML.

        Args:
            root: the directory of all runs; it and its parents are created if missing.
            name: becomes part of the id; anything but letters, digits, ``.``, ``_`` and ``-`` turns into ``-``.
            files: paths as the user gave them, under ``experiment`` and ``topology``.
            now: the time to name the run after, in UTC; the clock's if None.

        Raises:
            ResultError: the directory or a file cannot be written.
        """
        created = (now or datetime.now(timezone.utc)).astimezone(timezone.utc)
        try:
            path = _new_directory(Path(root), f"{created:%Y%m%dT%H%M%SZ}-{slug(name)}")
            lock = hold_lock(path / LOCK_FILE)
        except OSError as error:
            raise write_error(Path(error.filename or root), error) from error
        manifest = Manifest(
            id=path.name,
            created=created.isoformat(timespec="microseconds"),
            name=name,
            command=command,
            files=InputFiles.model_validate(dict(files or {})),
            provenance=Provenance.model_validate(
                provenance.model_dump() if isinstance(provenance, Provenance) else dict(provenance or {})
            ),
            datapath=datapath,
            dataplane=dataplane,
            substitutes=list(substitutes),
            seed=seed,
        )
        writer = cls(path, manifest, lock)
        writer.write_text("experiment.yaml", experiment_yaml)
        writer.write_text("topology.yaml", topology_yaml)
        writer._store()
        return writer

    def write_text(self, relative: str, text: str) -> Path:
        """Write a further text file of the run, for example a controller's log. Returns its path.

        Raises:
            ResultError: it cannot be written.
        """
        file = self.path / relative
        self._write(file, text)
        return file

    def update(self, **changes: Any) -> None:
        """Change fields of the manifest, for example ``substitutes`` or ``provenance``, and store it.

        Raises:
            ResultError: it cannot be written.
        """
        for key, value in changes.items():
            setattr(self.manifest, key, value)
        self._store()

    def cell(self, record: CellRecord) -> CellWriter:
        """Start a cell: its directory, ``cell.json`` saying ``running``, its id in the manifest.

        Raises:
            ResultError: it cannot be written, or the run already has a cell of that id.
        """
        if slug(record.id) != record.id:
            raise ValueError(f"cell id {record.id!r} is not fit for a directory name")
        directory = self.path / CELLS_DIR / record.id
        try:
            make_directories(directory.parent)
            directory.mkdir()
            give_to_caller(directory)
        except FileExistsError as error:
            raise ResultError(directory, "this run already has a cell of that id") from error
        except OSError as error:
            raise write_error(directory, error, self.path) from error
        cell = CellWriter(self, directory, record.model_copy(update={"status": "running"}))
        self._open_cells.append(cell)
        self.update(cells=[*self.manifest.cells, record.id])
        return cell

    def finish(
        self, status: RunStatus = "done", *, verdict: Verdict | None = None, reasons: Sequence[str] = ()
    ) -> None:
        """Store how the run ended. Cells still open are stored as ``interrupted``. A second call does nothing.

        Raises:
            ResultError: it cannot be written.
        """
        if self._lock is None:
            return
        try:
            for cell in list(self._open_cells):
                cell.finish("interrupted", error="the run ended before this cell did")
            self.manifest.reasons = [*self.manifest.reasons, *reasons]
            if verdict is not None:
                self.manifest.verdict = verdict
            self.update(status=status)
        finally:
            self._lock.close()
            self._lock = None
        (self.path / LOCK_FILE).unlink(missing_ok=True)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.finish("done")
            elif isinstance(error, (KeyboardInterrupt, SystemExit)):
                self.finish("interrupted", reasons=["stopped by the user"])
            else:
                self.finish("failed", reasons=[str(error) or type(error).__name__])
        except ResultError:
            # The exception on its way says what went wrong; a full disk must not hide it.
            if error is None:
                raise

    def _store(self) -> None:
        self._write(self.path / MANIFEST_FILE, dump_record(self.manifest))

    def _write(self, file: Path, data: bytes | str) -> None:
        try:
            make_directories(file.parent)
            write_atomically(file, data)
        except OSError as error:
            raise write_error(file, error, self.path) from error

    def _closed(self, cell: CellWriter) -> None:
        self._open_cells = [other for other in self._open_cells if other is not cell]


class CellWriter:
    """The writer of one cell. As a context manager it records how the cell ended, like :class:`RunWriter`.

    Tables may be written in any order and once each; ``cell.json`` is written last, so a cell whose record says
    ``done`` has all its tables.

    Attributes:
        path: the cell's directory.
        record: set its fields freely before ``finish``; they are stored by it.
    """

    def __init__(self, run: RunWriter, path: Path, record: CellRecord) -> None:
        self.path = path
        self.record = record
        self._run = run
        self._done = False
        run._write(path / CELL_FILE, dump_record(record))
        events = path / EVENTS_FILE
        try:
            # Unbuffered: one event is one write, complete or (disk full) taken back.
            self._events = events.open("ab", buffering=0)
            give_to_caller(events)
        except OSError as error:
            raise write_error(events, error, run.path) from error

    def write_table(self, name: Literal["messages", "goodput", "evs", "links", "hosts", "machine"], rows: Rows) -> Path:
        """Write one table from a list of row mappings or a mapping from column to values. Returns its path.

        Raises:
            ResultError: it cannot be written, or was written before.
            ValueError: the rows do not fit the table's columns.
        """
        table = table_named(name)
        file = self.path / table.file_name
        if file.exists():
            raise ResultError(file, "was already written")
        self._run._write(file, to_parquet(table, rows))
        return file

    def event(self, t_s: float, source: str, kind: str, name: str = "", detail: object = None) -> None:
        """Append one event and hand it to the operating system at once, so that a killed run keeps it.

        Args:
            t_s: time since the start of traffic; negative before it.
            source: ``failure``, ``controller``, ``ovs``, ``agent`` or ``runner``.

        Raises:
            ResultError: it cannot be written.
        """
        event = Event(t_s=t_s, source=source, kind=kind, name=name, detail=detail)
        line = (json.dumps(event.model_dump(), default=str) + "\n").encode("utf-8")
        try:
            size = self._events.seek(0, os.SEEK_END)
            if self._events.write(line) != len(line):
                self._events.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise write_error(self.path / EVENTS_FILE, error, self._run.path) from error

    def finish(self, status: CellStatus = "done", *, error: str | None = None, **changes: Any) -> None:
        """Store ``cell.json`` for good. A second call does nothing.

        Args:
            changes: further fields of the record, for example ``failures`` or ``verdict``.

        Raises:
            ResultError: it cannot be written.
        """
        if self._done:
            return
        for key, value in changes.items():
            setattr(self.record, key, value)
        self.record.status = status
        if error is not None:
            self.record.error = error
        self._done = True
        self._run._closed(self)
        self._events.close()
        self._run._write(self.path / CELL_FILE, dump_record(self.record))

    def __enter__(self) -> CellWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.finish("done")
            elif isinstance(error, (KeyboardInterrupt, SystemExit)):
                self.finish("interrupted", error="stopped by the user")
            else:
                self.finish("failed", error=str(error) or type(error).__name__)
        except ResultError:
            if error is None:
                raise


def slug(name: str) -> str:
    """``name`` as part of a directory name: letters, digits, ``.``, ``_`` and ``-`` only, at most 60 characters."""
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
    return cleaned[:_MAX_NAME].rstrip("-.") or "run"


def _new_directory(root: Path, wanted: str) -> Path:
    """Make a directory of that name, or of the first free ``<name>-2``, ``<name>-3``...; mkdir decides races."""
    make_directories(root)
    for number in range(1, _MAX_SAME_SECOND):
        path = root / (wanted if number == 1 else f"{wanted}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        give_to_caller(path)
        return path
    raise ResultError(root, f"{_MAX_SAME_SECOND} runs of the name {wanted} exist already")


__all__ = ["CellWriter", "RunWriter", "default_root", "slug"]
