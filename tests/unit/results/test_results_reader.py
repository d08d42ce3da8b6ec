"""Runs are found and read whatever became of them."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from results.errors import ResultError
from results.metrics.goodput import mean_goodput_bps
from results.reader import find_run, list_runs, load_run
from results.schema import CellRecord
from results.writer import RunWriter
from tests.unit.results.fabricate import make_run

NOON = datetime(2025, 3, 1, 12, tzinfo=timezone.utc)


def start(root: Path, name: str, minutes: int = 0) -> RunWriter:
    return RunWriter.create(root, name, now=NOON + timedelta(minutes=minutes))


def small_run(root: Path) -> Path:
    return make_run(root, repetitions=1, duration_s=2.0, tables=False)


def test_a_run_reads_back_with_its_cells_tables_and_events(tmp_path: Path) -> None:
    run = load_run(small_run(tmp_path))
    assert run.status == "done"
    assert [cell.record.transport for cell in run.cells] == ["tcp", "mrc"]
    assert run.cells[1].goodput["bytes"].sum() > 0
    assert [event.kind for event in run.cells[1].events] == ["link down", "port down", "link up"]
    assert run.cells[0].evs.empty and "sent_packets" in run.cells[0].evs.columns
    assert "cells/000-tcp-r1/messages.parquet" in run.files


def test_a_run_reads_the_same_after_moving_elsewhere_and_without_write_permission(tmp_path: Path) -> None:
    original = small_run(tmp_path / "a")
    moved = tmp_path / "b" / "renamed"
    shutil.copytree(original, moved)
    for directory, _, _ in os.walk(moved):
        Path(directory).chmod(0o555)
    run = load_run(moved / "manifest.json")
    assert run.id == original.name
    assert mean_goodput_bps(run.cells[0]) == mean_goodput_bps(load_run(original).cells[0])


def test_a_living_run_is_running_and_a_killed_one_interrupted(tmp_path: Path) -> None:
    writer = start(tmp_path, "a")
    writer.cell(CellRecord(id="000-mrc-r1", transport="mrc"))
    assert load_run(writer.path).status == "running"
    assert load_run(writer.path).cells[0].record.status == "running"
    # What the kernel does when the process dies.
    assert writer._lock is not None
    writer._lock.close()
    killed = load_run(writer.path)
    assert killed.status == "interrupted"
    assert killed.cells[0].record.status == "interrupted"
    assert list_runs(tmp_path)[0].status == "interrupted"


def test_a_copy_of_a_living_run_is_not_taken_for_a_living_one(tmp_path: Path) -> None:
    writer = start(tmp_path / "a", "a")
    shutil.copytree(writer.path, tmp_path / "copy")
    assert load_run(tmp_path / "copy").status == "interrupted"
    writer.finish()


def test_a_damaged_cell_is_named_and_the_others_still_load(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    damaged = path / "cells" / "000-tcp-r1" / "cell.json"
    damaged.write_text(damaged.read_text()[:50])
    run = load_run(path)
    assert [cell.record.transport for cell in run.cells] == ["mrc"]
    assert [problem.file for problem in run.problems] == [damaged]


def test_a_cell_a_crash_left_without_a_record_is_named(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    (path / "cells" / "007-x").mkdir()
    assert str(load_run(path).problems[0]).endswith("cells/007-x/cell.json: missing")


def test_a_damaged_table_is_an_error_only_when_it_is_asked_for(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    (path / "cells" / "000-tcp-r1" / "goodput.parquet").write_bytes(b"PAR1")
    (path / "cells" / "000-tcp-r1" / "messages.parquet").unlink()
    cell = load_run(path).cells[0]
    with pytest.raises(ResultError, match=r"goodput\.parquet: damaged"):
        _ = cell.goodput
    with pytest.raises(ResultError, match=r"messages\.parquet: missing"):
        _ = cell.messages


def test_an_event_line_cut_off_by_a_crash_is_dropped_and_a_damaged_one_named(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    log = path / "cells" / "000-tcp-r1" / "events.jsonl"
    log.write_text(log.read_text() + '{"t_s": 8.0, "sour')
    assert len(load_run(path).cells[0].events) == 3
    log.write_text("nonsense\n" + log.read_text())
    with pytest.raises(ResultError, match=r"events\.jsonl:1: damaged"):
        _ = load_run(path).cells[0].events


def test_runs_are_listed_newest_first_with_the_damaged_ones(tmp_path: Path) -> None:
    for minutes, name in enumerate(("old", "middle", "new")):
        start(tmp_path, name, minutes).finish()
    (tmp_path / "20250301T120100Z-middle" / "manifest.json").write_text("{")
    (tmp_path / "notes").mkdir()
    found = list_runs(tmp_path)
    assert [info.name for info in found] == ["new", "middle", "old"]
    assert [info.problem is None for info in found] == [True, False, True]
    assert list_runs(tmp_path / "nowhere") == []


def test_a_run_is_found_by_latest_id_beginning_name_and_path(tmp_path: Path) -> None:
    start(tmp_path, "failover").finish()
    start(tmp_path, "failover", 1).finish()
    start(tmp_path, "incast", 2).finish()
    first, second, third = (
        tmp_path / f"20250301T120{i}00Z-{n}" for i, n in enumerate(["failover", "failover", "incast"])
    )
    assert find_run(tmp_path) == third
    assert find_run(tmp_path, first.name) == first
    assert find_run(tmp_path, "20250301T1200") == first
    assert find_run(tmp_path, "failover") == second
    assert find_run(tmp_path, str(first)) == first
    assert find_run(tmp_path, first / "manifest.json") == first


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("failovr", "no run 'failovr' \\(did you mean failover"),
        ("2025", "2 runs begin with '2025'"),
        ("zzz", "no run 'zzz' \\(newest: 20250301T120100Z-incast"),
    ],
)
def test_a_run_that_is_not_there_is_answered_with_near_ones(tmp_path: Path, reference: str, complaint: str) -> None:
    start(tmp_path, "failover").finish()
    start(tmp_path, "incast", 1).finish()
    with pytest.raises(ResultError, match=complaint):
        find_run(tmp_path, reference)


def test_before_the_first_run_the_answer_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"no runs yet .*quickstart"):
        find_run(tmp_path, "latest")
    with pytest.raises(ResultError, match="no such run"):
        load_run(tmp_path / "nothing")
