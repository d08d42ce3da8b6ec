"""The tables of a cell: names, columns, types and units. Stored as parquet, one file for each table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from results.errors import ResultError
from results.schema import SCHEMA_VERSION, check_version

ColumnType = Literal["int64", "float64", "string", "bool"]
VERSION_KEY = b"mrc_testbed_schema"

Rows = Iterable[Mapping[str, Any]] | Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column. ``optional`` columns may be left out of a row; the value is then null (NaN in pandas)."""

    name: str
    type: ColumnType
    meaning: str
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """One table of a cell, stored as ``<name>.parquet``."""

    name: str
    columns: tuple[Column, ...]

    @property
    def file_name(self) -> str:
        return f"{self.name}.parquet"

    def empty(self) -> pd.DataFrame:
        """The table without rows, columns typed as stored."""
        return _arrow_schema(self).empty_table().to_pandas()  # type: ignore[no-any-return]


MESSAGES = Table(
    "messages",
    (
        Column("id", "int64", "unique within the cell"),
        Column("src", "string", "sending host"),
        Column("dst", "string", "receiving host"),
        Column("bytes", "int64", "payload bytes"),
        Column("posted_s", "float64", "handed to the transport, s"),
        Column("delivered_s", "float64", "complete at the receiver, s; null if it never was", optional=True),
        Column("ok", "bool", "the receiver's content hash matched"),
        Column("status", "string", "delivered, lost, corrupt or unfinished"),
    ),
)
GOODPUT = Table(
    "goodput",
    (
        Column("t_s", "float64", "start of the bin, s; bins without a byte may be left out"),
        Column("src", "string", "sending host"),
        Column("dst", "string", "receiving host"),
        Column("plane", "int64", "plane counted from 1; 0 = not known"),
        Column("bytes", "int64", "payload bytes delivered for the first time in this bin"),
    ),
)
EVS = Table(
    "evs",
    (
        Column("host", "string", "sending host"),
        Column("peer", "string", "receiving host"),
        Column("plane", "int64", "plane counted from 1"),
        Column("ev", "int64", "entropy value, 32 bit"),
        Column("path", "int64", "index of the path it names inside its plane"),
        Column("state", "string", "state at the end"),
        Column("sent_packets", "int64", "data packets sent, retransmissions included"),
        Column("retransmitted_packets", "int64", "of these, retransmissions"),
        Column("acked_packets", "int64", "acknowledged"),
        Column("lost_packets", "int64", "declared lost"),
        Column("state_changes", "int64", "changes of state"),
    ),
)
LINKS = Table(
    "links",
    (
        Column("t_s", "float64", "time of the sample, s"),
        Column("link", "string", "name of the link"),
        Column("direction", "string", "a>b or b>a"),
        Column("bytes", "int64", "bytes sent so far"),
        Column("packets", "int64", "packets sent so far"),
        Column("drops", "int64", "packets dropped so far"),
        Column("backlog_bytes", "int64", "bytes in the queue now"),
    ),
)
HOSTS = Table(
    "hosts",
    (
        Column("t_s", "float64", "time of the sample, s"),
        Column("host", "string", "host"),
        Column("cpu_share", "float64", "share of one core its processes used since the last sample", optional=True),
        Column("cwnd_bytes", "float64", "congestion window, all connections together", optional=True),
        Column("rtt_s", "float64", "smoothed round-trip time, s", optional=True),
        Column("inflight_bytes", "float64", "payload sent and not acknowledged", optional=True),
    ),
)
MACHINE = Table(
    "machine",
    (
        Column("t_s", "float64", "time of the sample, s"),
        Column("cpu_idle_share", "float64", "share of all cores that was idle since the last sample"),
    ),
)

TABLES: tuple[Table, ...] = (MESSAGES, GOODPUT, EVS, LINKS, HOSTS, MACHINE)
MESSAGE_STATES = ("delivered", "lost", "corrupt", "unfinished")


def table_named(name: str) -> Table:
    """The table of that name.

    Raises:
        ValueError: there is none.
    """
    for table in TABLES:
        if table.name == name:
            return table
    raise ValueError(f"no table {name!r}; there are {', '.join(table.name for table in TABLES)}")


def to_parquet(table: Table, rows: Rows) -> bytes:
    """The parquet file of ``rows``: a list of row mappings, or a mapping from column to its values.

    Raises:
        ValueError: a column is unknown, missing, of the wrong type, or null where null is not allowed.
    """
    columns = _columns(table, rows)
    arrays = []
    for column in table.columns:
        try:
            array = pa.array(columns[column.name], type=_arrow_type(column.type), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"table {table.name}: column {column.name!r} must be {column.type}: {error}") from error
        if array.null_count and not column.optional:
            raise ValueError(f"table {table.name}: column {column.name!r} has {array.null_count} empty values")
        arrays.append(array)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=_arrow_schema(table)), sink, compression="zstd")
    return bytes(sink.getvalue())


def from_parquet(table: Table, file: Path) -> pd.DataFrame:
    """Read one table; NaN stands for null in number columns.

    Raises:
        ResultError: missing, damaged, of a newer version, or without an expected column.
    """
    if not file.is_file():
        raise ResultError(file, "missing")
    try:
        # Read through Python, so that a directory or partitioned data set is never guessed from the path.
        stored = pq.read_table(pa.BufferReader(file.read_bytes()))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ResultError(file, f"damaged: not a readable parquet file ({error})") from error
    version = (stored.schema.metadata or {}).get(VERSION_KEY, b"")
    check_version(int(version) if version.isdigit() else None, file)
    missing = [column.name for column in table.columns if column.name not in stored.column_names]
    if missing:
        raise ResultError(file, f"damaged: no column {', '.join(missing)}")
    frame: pd.DataFrame = stored.to_pandas()
    return frame


def _columns(table: Table, rows: Rows) -> dict[str, Any]:
    known = [column.name for column in table.columns]
    optional = {column.name for column in table.columns if column.optional}
    if isinstance(rows, Mapping):
        columns: dict[str, Any] = dict(rows)
        length = max((len(values) for values in columns.values()), default=0)
        for name in optional - columns.keys():
            columns[name] = [None] * length
    else:
        listed = list(rows)
        for row in listed:
            if row.keys() - set(known) or set(known) - row.keys() - optional:
                wrong = sorted(row.keys() ^ set(known))
                raise ValueError(f"table {table.name}: row with unknown or missing columns: {', '.join(wrong)}")
        columns = {name: [row.get(name) for row in listed] for name in known}
    if set(columns) != set(known):
        raise ValueError(
            f"table {table.name}: unknown or missing columns: {', '.join(sorted(set(columns) ^ set(known)))}"
        )
    return columns


def _arrow_type(kind: ColumnType) -> Any:
    types: dict[ColumnType, Any] = {
        "int64": pa.int64(),
        "float64": pa.float64(),
        "string": pa.string(),
        "bool": pa.bool_(),
    }
    return types[kind]


def _arrow_schema(table: Table) -> Any:
    fields = [pa.field(column.name, _arrow_type(column.type), nullable=column.optional) for column in table.columns]
    return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION).encode(), b"table": table.name.encode()})
