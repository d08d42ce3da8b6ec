"""A run is written into a directory of its own, whole or not at all, and says how it ended."""

from __future__ import annotations

import errno
import json
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from results.errors import ResultError
from results.schema import CellRecord, Manifest, read_record
from results.tables import MESSAGES, from_parquet
from results.writer import RunWriter, default_root, slug

NOON = datetime(2025, 3, 1, 12, 0, 0, 250_000, tzinfo=timezone.utc)
MESSAGE = {
    "id": 1,
    "src": "h1",
    "dst": "h2",
    "bytes": 1_000_000,
    "posted_s": 0.5,
    "delivered_s": 0.75,
    "ok": True,
    "status": "delivered",
}


def cell_record(cell_id: str = "000-mrc-r1") -> CellRecord:
    return CellRecord(id=cell_id, transport="mrc", duration_s=4.0, planes=2)


def test_a_run_is_named_after_its_utc_start_and_its_name(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "deep" / "runs", "fail over!", now=NOON) as run:
        assert run.path == tmp_path / "deep" / "runs" / "20250301T120000Z-fail-over"
    manifest = read_record(Manifest, run.path / "manifest.json")
    assert (manifest.name, manifest.status) == ("fail over!", "done")
    assert manifest.created == "2025-03-01T12:00:00.250000+00:00"


def test_two_runs_of_one_second_get_directories_of_their_own(tmp_path: Path) -> None:
    first = RunWriter.create(tmp_path, "a", now=NOON)
    second = RunWriter.create(tmp_path, "a", now=NOON)
    assert first.path != second.path
    assert first.manifest.id != second.manifest.id


def test_an_earlier_run_is_left_byte_for_byte_as_it_was(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a", now=NOON, command="first") as first:
        pass
    before = {file: file.read_bytes() for file in first.path.rglob("*") if file.is_file()}
    with RunWriter.create(tmp_path, "a", now=NOON, command="second"):
        pass
    assert {file: file.read_bytes() for file in first.path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("name", "expected"), [("a/../b", "a-..-b"), ("..", "run"), ("ü x", "x"), ("y" * 99, "y" * 60)]
)
def test_a_name_never_leaves_the_directory_of_runs(name: str, expected: str) -> None:
    assert slug(name) == expected


def test_a_cell_says_running_until_its_tables_are_complete(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a") as run:
        cell = run.cell(cell_record())
        assert read_record(CellRecord, cell.path / "cell.json").status == "running"
        cell.write_table("messages", [MESSAGE])
        cell.finish("done", verdict="host-limited", reasons=["agent of h1 used 92 % of a core"])
    stored = read_record(CellRecord, cell.path / "cell.json")
    assert (stored.status, stored.verdict) == ("done", "host-limited")
    assert from_parquet(MESSAGES, cell.path / "messages.parquet").to_dict("records") == [MESSAGE]
    assert read_record(Manifest, run.path / "manifest.json").cells == ["000-mrc-r1"]


def test_a_table_is_written_once(tmp_path: Path) -> None:
    cell = RunWriter.create(tmp_path, "a").cell(cell_record())
    cell.write_table("messages", [MESSAGE])
    with pytest.raises(ResultError, match=r"messages\.parquet: was already written"):
        cell.write_table("messages", [])


def test_two_cells_of_one_id_are_refused(tmp_path: Path) -> None:
    run = RunWriter.create(tmp_path, "a")
    run.cell(cell_record())
    with pytest.raises(ResultError, match="already has a cell"):
        run.cell(cell_record())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"bytes": "many"}, "'bytes' must be int64"),
        ({"src": None}, "'src' has 1 empty values"),
        ({"size": 3}, "unknown or missing columns: size"),
    ],
)
def test_rows_that_do_not_fit_the_table_are_refused_by_column(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    cell = RunWriter.create(tmp_path, "a").cell(cell_record())
    with pytest.raises(ValueError, match=complaint):
        cell.write_table("messages", [{**MESSAGE, **change}])
    assert not (cell.path / "messages.parquet").exists()


def test_columns_may_be_given_instead_of_rows_and_optional_ones_left_out(tmp_path: Path) -> None:
    cell = RunWriter.create(tmp_path, "a").cell(cell_record())
    path = cell.write_table("hosts", {"t_s": [0.2, 0.4], "host": ["h1", "h1"], "cpu_share": [0.5, 0.25]})
    assert path.name == "hosts.parquet"


def test_events_are_on_disk_line_by_line_before_the_cell_ends(tmp_path: Path) -> None:
    cell = RunWriter.create(tmp_path, "a").cell(cell_record())
    cell.event(4.0, "failure", "down", "p1.leaf1-p1.spine2", {"deviation_s": 0.001})
    cell.event(4.5, "controller", "recomputed", detail=Path("x"))
    lines = [json.loads(line) for line in (cell.path / "events.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["down", "recomputed"]
    assert lines[0]["detail"] == {"deviation_s": 0.001}


@pytest.mark.parametrize(
    ("raised", "run_status", "cell_status"),
    [(KeyboardInterrupt(), "interrupted", "interrupted"), (RuntimeError("no route"), "failed", "failed")],
)
def test_whatever_ends_a_run_is_recorded(
    tmp_path: Path, raised: BaseException, run_status: str, cell_status: str
) -> None:
    with pytest.raises(type(raised)), RunWriter.create(tmp_path, "a") as run, run.cell(cell_record()) as cell:
        raise raised
    assert read_record(Manifest, run.path / "manifest.json").status == run_status
    assert read_record(CellRecord, cell.path / "cell.json").status == cell_status


def test_a_full_disk_is_one_clear_error_and_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunWriter.create(tmp_path, "a")
    cell = run.cell(cell_record())
    cell.write_table("messages", [MESSAGE])

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultError) as caught:
        cell.write_table("goodput", [])
    assert str(caught.value) == (
        f"{cell.path}/goodput.parquet: cannot be written: the disk is full "
        f"(what was measured before is kept in {run.path})"
    )
    assert sorted(file.name for file in cell.path.iterdir()) == ["cell.json", "events.jsonl", "messages.parquet"]
    assert len(from_parquet(MESSAGES, cell.path / "messages.parquet")) == 1


def test_a_full_disk_at_the_end_does_not_hide_the_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(RuntimeError, match="no route"), RunWriter.create(tmp_path, "a"):
        monkeypatch.setattr(os, "fsync", full)
        raise RuntimeError("no route")


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="file"):
        RunWriter.create(tmp_path / "file" / "runs", "a")


def test_under_sudo_everything_made_belongs_to_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners: dict[Path, tuple[int, int]] = {}

    def chown(path: Path, uid: int, gid: int, *, follow_symlinks: bool) -> None:
        owners[Path(path)] = (uid, gid)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "5678")
    with RunWriter.create(tmp_path / "new" / "runs", "a") as run, run.cell(cell_record()) as cell:
        cell.write_table("messages", [MESSAGE])
    for made in (tmp_path / "new", tmp_path / "new" / "runs", run.path, cell.path.parent, cell.path):
        assert owners[made] == (1234, 5678), made
    assert tmp_path not in owners
    # A file is handed over under its temporary name, before it takes its place.
    handed = {path.name.strip(".").rsplit(f".{os.getpid()}", 1)[0] for path in owners}
    assert {"manifest.json", "experiment.yaml", "cell.json", "messages.parquet", "events.jsonl"} <= handed


def test_runs_land_beside_this_room_by_default() -> None:
    assert default_root().parts[-2:] == ("results", "runs")
