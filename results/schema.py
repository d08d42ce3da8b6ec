"""What is stored: the documents of a run, their version, and how older versions are read.

Layout of one run (all times in seconds; every ``t_s`` of a cell counts from the start of its traffic)::

    results/runs/<run id>/
        manifest.json              Manifest: what was run, where, with which software, and how it ended
        experiment.yaml            the experiment as it was resolved
        topology.yaml              the fabric as it was resolved
        .running                   held (flock) by the writer while it lives; absent or free afterwards
        cells/<cell id>/
            cell.json              CellRecord; says "running" until every table beside it is complete
            events.jsonl           one Event a line, flushed line by line
            <table>.parquet        the tables of tables.py
        report/                    made later, from the files above

A number that is not known is ``null``, never 0. Additions keep the version; a change of meaning raises it and adds a
step to ``UPGRADES``. Documents of a newer version are refused with one clear error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from results.errors import ResultError

SCHEMA_VERSION = 1

RunStatus = Literal["running", "done", "failed", "interrupted"]
CellStatus = Literal["running", "done", "failed", "timed_out", "interrupted", "unsupported"]
Verdict = Literal["valid", "host-limited", "invalid"]

MANIFEST_FILE = "manifest.json"
CELL_FILE = "cell.json"
EVENTS_FILE = "events.jsonl"
LOCK_FILE = ".running"
CELLS_DIR = "cells"
REPORT_DIR = "report"


class Record(BaseModel):
    """Base of all stored documents. Keys this version does not know are kept, so that additions need no new version."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, validate_assignment=True)


class Provenance(Record):
    """Where a result comes from: the software and the machine."""

    git: str | None = None
    kernel: str | None = None
    ovs: str | None = None
    mininet: str | None = None
    python: str | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None


class InputFiles(Record):
    """Paths of the YAML files as the user gave them."""

    experiment: str | None = None
    topology: str | None = None


class Manifest(Record):
    """``manifest.json``: one run.

    Attributes:
        schema_version: stored under the key ``schema``.
        id: the run's directory name, ``<UTC time>-<name>``.
        created: ISO 8601 in UTC, to the microsecond.
        command: the command line that started the run.
        datapath: ``kernel`` or ``user``, what Open vSwitch forwarded with; None where there is none.
        dataplane: ``openflow`` or ``srv6``.
        substitutes: stand-ins used for what the machine lacks, each one sentence.
        reasons: why the verdict is not ``valid``, or why the run ended early.
        cells: cell ids in the order they were started.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_version: int = Field(default=SCHEMA_VERSION, alias="schema")
    id: str
    created: str
    name: str
    command: str = ""
    files: InputFiles = Field(default_factory=InputFiles)
    provenance: Provenance = Field(default_factory=Provenance)
    datapath: str | None = None
    dataplane: str | None = None
    substitutes: list[str] = Field(default_factory=list)
    seed: int | None = None
    verdict: Verdict = "valid"
    reasons: list[str] = Field(default_factory=list)
    cells: list[str] = Field(default_factory=list)
    status: RunStatus = "running"


class CapacityStep(Record):
    """From ``from_s`` on, the workload can move at most ``bps`` payload bits per second through the fabric."""

    from_s: float
    bps: float = Field(ge=0)


class FailureRecord(Record):
    """One injected failure, on the cell's time axis.

    Attributes:
        name: what failed and how, for example ``p1.leaf1-p1.spine2 down``.
        at_s: when it took effect; markers and recovery times count from here.
        until_s: when it was undone, None if it lasted to the end.
        planned_s: when the experiment asked for it.
        applied_s: when the last command that applied it returned; wins over ``at_s`` where it is known.
        deviation_s: ``applied_s - planned_s``.
    """

    name: str
    at_s: float
    until_s: float | None = None
    planned_s: float | None = None
    applied_s: float | None = None
    deviation_s: float | None = None

    @property
    def start_s(self) -> float:
        """When the failure really began, in seconds."""
        return self.at_s if self.applied_s is None else self.applied_s


class CellRecord(Record):
    """``cell.json``: one transport, one set of parameters, one repetition.

    Attributes:
        schema_version: stored under the key ``schema``.
        id: directory name, for example ``000-mrc-r1``.
        repetition: counted from 1.
        params: the swept keys and their values, empty without a sweep.
        error: why the cell did not end as ``done``.
        start_unix_s: wall-clock time of ``t_s = 0``.
        duration_s: length of the measurement from ``t_s = 0``, warm-up included.
        warmup_s: what lies before this is left out of goodput and completion times.
        bin_s: width of a bin of the goodput table, at most 0.05 s.
        planes: number of planes.
        plane_rate_bps: rate of one host port in each plane, in plane order, headers included.
        payload_share: payload bits per bit on the wire, at most 1.
        capacity: step function of the payload capacity for this workload, all pairs together; empty if not known.
        base_rtt_s: round-trip time without queueing.
        counters: the transport's named counters, by host.
        cpu: what the processors did, free-form.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_version: int = Field(default=SCHEMA_VERSION, alias="schema")
    id: str
    transport: str
    routing: str | None = None
    repetition: int = Field(default=1, ge=1)
    seed: int | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    status: CellStatus = "running"
    error: str | None = None
    verdict: Verdict = "valid"
    reasons: list[str] = Field(default_factory=list)
    start_unix_s: float | None = None
    duration_s: float = Field(default=0.0, ge=0)
    warmup_s: float = Field(default=0.0, ge=0)
    bin_s: float = Field(default=0.05, gt=0, le=0.05)
    planes: int = Field(default=1, ge=1)
    plane_rate_bps: list[float] = Field(default_factory=list)
    payload_share: float | None = Field(default=None, gt=0, le=1)
    capacity: list[CapacityStep] = Field(default_factory=list)
    failures: list[FailureRecord] = Field(default_factory=list)
    base_rtt_s: float | None = None
    counters: dict[str, dict[str, Any]] = Field(default_factory=dict)
    cpu: dict[str, Any] = Field(default_factory=dict)


class Event(Record):
    """One line of ``events.jsonl``. ``source``: failure, controller, ovs, agent or runner."""

    t_s: float
    source: str
    kind: str
    name: str = ""
    detail: Any = None


Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

# Step i turns a document of version i + 1 into one of version i + 2. There is no older version yet.
UPGRADES: tuple[Upgrade, ...] = ()

RecordT = TypeVar("RecordT", bound=Record)


def check_version(version: object, file: Path, *, newest: int = SCHEMA_VERSION) -> int:
    """Return ``version`` as a number this code can read.

    Raises:
        ResultError: it is no version at all, or newer than ``newest``.
    """
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ResultError(file, "this is not a result file: it has no valid 'schema' number")
    if version > newest:
        raise ResultError(
            file,
            f"written by a newer version (schema {version}); this one reads up to schema {newest}",
            "update the testbed to read it",
        )
    return version


def upgrade(document: Mapping[str, Any], file: Path, *, steps: Sequence[Upgrade] = UPGRADES) -> dict[str, Any]:
    """Bring a document of any older version to the newest, one step at a time.

    Raises:
        ResultError: the document has no version or a newer one.
    """
    newest = len(steps) + 1
    version = check_version(document.get("schema"), file, newest=newest)
    current = dict(document)
    for step in steps[version - 1 :]:
        current = step(current)
    current["schema"] = newest
    return current


def parse_json(text: str, file: Path) -> dict[str, Any]:
    """Parse one JSON object.

    Raises:
        ResultError: it is not valid JSON, or not an object.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ResultError(file, f"damaged: not valid JSON ({error})") from error
    if not isinstance(document, dict):
        raise ResultError(file, "damaged: expected a JSON object")
    return document


def validate(model: type[RecordT], document: Mapping[str, Any], file: Path) -> RecordT:
    """Check a document of the newest version against its model.

    Raises:
        ResultError: a key is missing or has an impossible value; the message names the first one.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ResultError(file, f"damaged: {key}: {first['msg']}") from error


def read_record(model: type[RecordT], file: Path) -> RecordT:
    """Read ``manifest.json`` or ``cell.json``, upgrading older versions.

    Raises:
        ResultError: missing, unreadable, damaged, or of a newer version.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ResultError(file, "missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ResultError(file, f"cannot be read: {error}") from error
    return validate(model, upgrade(parse_json(text, file), file), file)


def dump_record(record: Record) -> str:
    """JSON text of a record, as it is stored."""
    return record.model_dump_json(by_alias=True, indent=2) + "\n"
