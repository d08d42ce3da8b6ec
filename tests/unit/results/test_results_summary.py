"""The comparison counts what was measured, and only that."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from results.reader import load_run
from results.schema import CapacityStep, CellRecord, FailureRecord, Verdict
from results.summary import as_json, compare, summary
from results.table import main_grid, markdown, rich_tables
from results.units import data, duration, mbit, number, percent, rate, recovery
from results.writer import RunWriter
from tests.unit.results.fabricate import constant, goodput_rows, make_run, message_rows


def add_cell(run: RunWriter, transport: str, repetition: int, rate_bps: float, **fields: Any) -> None:
    record = CellRecord(
        id=f"{len(run.manifest.cells):03d}-{transport}-r{repetition}",
        transport=transport,
        repetition=repetition,
        duration_s=2.0,
        capacity=[CapacityStep(from_s=0, bps=40e6)],
        **{key: value for key, value in fields.items() if key in CellRecord.model_fields and key != "status"},
    )
    cell = run.cell(record)
    cell.write_table("goodput", goodput_rows(constant(rate_bps, 2.0)))
    cell.write_table("messages", message_rows([0.1 * repetition] * 10))
    cell.finish(fields.get("status", "done"), error=fields.get("error"))


@pytest.fixture
def mixed(tmp_path: Path) -> dict[str, Any]:
    """TCP: two good repetitions and one that timed out; MRC: three good ones; RC: unsupported."""
    with RunWriter.create(tmp_path, "mixed") as run:
        add_cell(run, "tcp", 1, 10e6)
        add_cell(run, "tcp", 2, 0.0, status="timed_out", error="no progress")
        add_cell(run, "tcp", 3, 14e6)
        for repetition in (1, 2, 3):
            add_cell(run, "mrc", repetition, 36e6)
        add_cell(run, "rc", 1, 0.0, status="unsupported", error="not built")
    return summary(load_run(run.path))


def of(document: dict[str, Any], transport: str) -> dict[str, Any]:
    return next(cell for cell in document["cells"] if cell["transport"] == transport)


def test_the_document_has_every_key_programs_rely_on_and_is_json(mixed: dict[str, Any]) -> None:
    assert json.loads(json.dumps(mixed, allow_nan=False)) == mixed
    assert mixed["schema"] == 1
    assert mixed.keys() >= {"schema", "run", "path", "verdict", "cells"}
    wanted = {"transport", "n", "failed", "verdict", "capacity_bps", "goodput_bps", "capacity_share", "fct_s"}
    wanted |= {"failures", "retransmitted_packets", "corrupt_messages", "lost_messages"}
    for cell in mixed["cells"]:
        assert cell.keys() >= wanted
        assert cell["goodput_bps"].keys() == {"mean", "low", "high"}
        assert cell["fct_s"].keys() == {"n", "p50", "p99", "p999"}


def test_a_failed_repetition_lowers_n_and_not_the_mean(mixed: dict[str, Any]) -> None:
    tcp = of(mixed, "tcp")
    assert (tcp["n"], tcp["failed"]) == (2, 1)
    assert tcp["goodput_bps"]["mean"] == pytest.approx(12e6)
    assert tcp["capacity_share"] == pytest.approx(0.3)
    assert tcp["fct_s"]["n"] == 20
    assert tcp["failed_reasons"] == ["001-tcp-r2: timed out: no progress"]


def test_what_was_never_measured_is_null_and_not_zero(mixed: dict[str, Any]) -> None:
    rc = of(mixed, "rc")
    assert (rc["n"], rc["failed"], rc["unsupported"], rc["verdict"]) == (0, 0, 1, "invalid")
    assert rc["goodput_bps"] == {"mean": None, "low": None, "high": None}
    assert rc["capacity_share"] is None and rc["retransmitted_packets"] is None
    assert mixed["verdict"] == "valid"


def test_ratios_pair_the_repetitions_both_transports_have(mixed: dict[str, Any]) -> None:
    (ratio,) = mixed["ratios"]
    assert (ratio["of"], ratio["to"]) == ("mrc", "tcp")
    assert ratio["goodput"]["mean"] == pytest.approx(3.0)
    assert ratio["p99"] == pytest.approx(1.0)


def test_failures_have_one_entry_for_each_repetition(tmp_path: Path) -> None:
    document = summary(load_run(make_run(tmp_path, repetitions=2, tables=False)))
    (cut,) = of(document, "mrc")["failures"]
    assert (cut["name"], cut["at_s"]) == ("p1.leaf1-p1.spine2 down", 4.0)
    assert cut["recovery_s"] == [pytest.approx(0.147), pytest.approx(0.147)]
    assert len(cut["dip_bytes"]) == 2
    (cut,) = of(document, "tcp")["failures"]
    assert cut["recovery_s"] == [pytest.approx(1.497), pytest.approx(1.497)]


@pytest.mark.parametrize(
    ("verdict", "n", "expected"),
    [("host-limited", 1, "host-limited"), ("invalid", 0, "invalid"), ("valid", 1, "valid")],
)
def test_a_verdict_reaches_its_row_and_the_whole(tmp_path: Path, verdict: Verdict, n: int, expected: str) -> None:
    with RunWriter.create(tmp_path, "a") as run:
        add_cell(run, "mrc", 1, 1e6, verdict=verdict, reasons=["because"])
    document = summary(load_run(run.path))
    assert (document["cells"][0]["n"], document["cells"][0]["verdict"], document["verdict"]) == (n, expected, expected)


def test_a_damaged_table_lowers_n_and_is_named(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a") as run:
        add_cell(run, "mrc", 1, 1e6)
        add_cell(run, "mrc", 2, 3e6)
    (run.path / "cells" / "000-mrc-r1" / "messages.parquet").write_bytes(b"")
    (cell,) = summary(load_run(run.path))["cells"]
    assert (cell["n"], cell["failed"], cell["goodput_bps"]["mean"]) == (1, 1, pytest.approx(3e6))
    assert "messages.parquet: damaged" in cell["failed_reasons"][0]


def test_swept_parameters_make_groups_of_their_own(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a") as run:
        for planes in (1, 2):
            for transport, rate_bps in (("tcp", 1e6), ("mrc", planes * 2e6)):
                add_cell(run, transport, 1, rate_bps, params={"topology.planes": planes})
    document = summary(load_run(run.path))
    assert [cell["label"] for cell in document["cells"]] == [
        "TCP, planes = 1",
        "MRC, planes = 1",
        "TCP, planes = 2",
        "MRC, planes = 2",
    ]
    assert [ratio["goodput"]["mean"] for ratio in document["ratios"]] == [pytest.approx(2.0), pytest.approx(4.0)]


def test_one_transport_over_two_routings_is_two_groups_named_apart(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a") as run:
        add_cell(run, "mrc", 1, 1e6, routing="ecmp")
        add_cell(run, "mrc", 1, 1e6, routing="disjoint")
    assert [row.label for row in compare([load_run(run.path)]).rows] == ["MRC over ecmp", "MRC over disjoint"]


def test_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    runs = []
    for name in ("before", "after"):
        with RunWriter.create(tmp_path, name) as run:
            add_cell(run, "mrc", 1, 1e6)
        runs.append(load_run(run.path))
    document = as_json(compare(runs))
    assert [cell["label"] for cell in document["cells"]] == ["MRC [before]", "MRC [after]"]
    assert [cell["run"] for cell in document["cells"]] == [run.id for run in runs]


def test_an_empty_run_still_has_a_summary_and_a_table(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a") as run:
        pass
    comparison = compare([load_run(run.path)])
    assert as_json(comparison)["cells"] == []
    assert markdown(comparison).startswith("|")


def test_the_table_shows_n_failed_interval_recovery_and_verdict(tmp_path: Path) -> None:
    path = make_run(tmp_path, failed=[("tcp", 2)], host_limited=["tcp"], tables=False)
    comparison = compare([load_run(path)])
    lines = {line[0]: line[1:] for line in main_grid(comparison).lines}
    assert lines["n"] == ("2 (1 failed)", "3")
    assert lines["recovery time"] == ("1.50 s", "0.15 s")
    assert lines["verdict"] == ("host-limited", "valid")
    assert lines["corrupt / lost"] == ("0 / 0", "0 / 0")
    assert lines["goodput, Mbit/s"][1] == "34.3"
    assert lines["95 % interval"][1].startswith("34.")
    text = markdown(comparison)
    assert "| recovery time | 1.50 s | 0.15 s |" in text
    assert "- 002-tcp-r2: timed out: no progress for 10 s" in text


def test_the_table_fits_a_terminal_of_eighty_columns(tmp_path: Path) -> None:
    path = make_run(tmp_path, transports=("tcp", "mptcp", "mrc"), repetitions=2, duration_s=8.0, tables=False)
    comparison = compare([load_run(path)])
    out = io.StringIO()
    console = Console(file=out, width=80)
    for table in rich_tables(comparison):
        console.print(table)
    text = out.getvalue()
    assert "failure: p1.leaf1-p1.spine2 down, 4 s to 7 s" in text
    # Every metric on one line: nothing was folded.
    assert len([line for line in text.splitlines() if line.strip()]) == 3 + len(main_grid(comparison).lines) + 1


def test_many_groups_are_lines_instead_of_columns(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a") as run:
        for planes in range(1, 7):
            add_cell(run, "mrc", 1, 1e6, params={"planes": planes})
    grid = main_grid(compare([load_run(run.path)]))
    assert grid.header[:2] == ("", "n")
    assert [line[0] for line in grid.lines][-1] == "MRC, planes = 6"


def test_several_failures_get_a_table_of_their_own(tmp_path: Path) -> None:
    cuts = [FailureRecord(name="a down", at_s=0.8), FailureRecord(name="b down", at_s=1.2, until_s=1.5)]
    with RunWriter.create(tmp_path, "a") as run:
        add_cell(run, "mrc", 1, 1e6, failures=cuts)
    comparison = compare([load_run(run.path)])
    assert len(rich_tables(comparison)) == 2
    assert "| b down, 1.2 s to 1.5 s | MRC | < 0.05 s | 0 B | " in markdown(comparison)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number(None), "–"),
        (number(0), "0"),
        (number(0.01234), "0.0123"),
        (number(9.996), "10.0"),
        (number(99.96), "100"),
        (number(12345.6), "12,346"),
        (mbit(38e6), "38.0"),
        (rate(2.5e9), "2.50 Gbit/s"),
        (duration(0.25), "250 ms"),
        (duration(1.5), "1.50 s"),
        (data(712_345), "712 KB"),
        (data(12), "12.0 B"),
        (percent(0.9413), "94 %"),
        (percent(0.0607), "6.1 %"),
        (percent(0.00123), "0.12 %"),
        (percent(0), "0 %"),
        (percent(1.0), "100 %"),
        (recovery([0.0, 0.01], [5, 5]), "< 0.05 s"),
        (recovery([0.1, 0.2, 0.4], [5, 5, 5]), "0.20 s (0.10–0.40)"),
        (recovery([None, None], [6.0, 5.9]), "not within 5.9 s"),
        (recovery([0.2, None], [6.0, 6.0]), "0.20 s; 1 of 2 not within 6.0 s"),
        (recovery([], []), "–"),
    ],
)
def test_numbers_are_written_the_way_people_read_them(text: str, expected: str) -> None:
    assert text == expected
