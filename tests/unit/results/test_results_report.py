"""The report is one page without the network, plots carry their origin, and unfinished runs say so."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from results.errors import ResultError
from results.groups import Group
from results.plots import completion_cdf, goodput_time, style
from results.plots.catalogue import Drawing, drawings
from results.reader import Run, load_run
from results.report import html, write_report
from results.schema import CapacityStep, CellRecord, FailureRecord
from results.summary import Comparison, compare
from results.words import sentences, warnings
from results.writer import RunWriter
from tests.unit.results.fabricate import constant, goodput_rows, make_run, message_rows

FIXTURE = Path(__file__).parents[2] / "fixtures" / "results_v1" / "20250301T120000Z-failover"
PLOT_NAMES = {
    "goodput-over-time",
    "completion-time-cdf",
    "recovery-time",
    "plane-share",
    "planes-over-time",
    "ev-packets",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """TCP (host-limited, one repetition timed out) against MRC, two planes."""
    path = make_run(
        tmp_path_factory.mktemp("runs"), planes=2, duration_s=8.0, failed=[("tcp", 2)], host_limited=["tcp"]
    )
    return load_run(path)


@pytest.fixture(scope="module")
def comparison(run: Run) -> Comparison:
    return compare([run])


@pytest.fixture(scope="module")
def drawn(comparison: Comparison) -> dict[str, Drawing]:
    return {drawing.name: drawing for drawing in drawings(comparison)}


@pytest.fixture(scope="module")
def written(run: Run) -> dict[str, Path]:
    return {path.name: path for path in write_report(run)}


def legend_texts(figure: matplotlib.figure.Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_results_of_schema_1_load_and_plot_for_ever(tmp_path: Path) -> None:
    run = load_run(FIXTURE)
    assert (run.status, run.problems, len(run.cells)) == ("done", (), 4)
    comparison = compare([run])
    tcp, mrc = comparison.rows
    assert (tcp.group.n, mrc.group.n) == (1, 2)
    assert mrc.goodput is not None and mrc.goodput.mean == pytest.approx(33_728_558, abs=1)
    assert mrc.capacity_share == pytest.approx(0.94058, abs=1e-5)
    assert (mrc.fct.n, mrc.fct.p99_s) == pytest.approx((107, 0.305544), abs=1e-6)
    assert mrc.failures[0].recovery_s == pytest.approx((0.147, 0.147))
    assert tcp.failures[0].recovery_s == pytest.approx((1.497,))
    for cell in run.cells[:2]:
        assert len(cell.links) and len(cell.hosts) and len(cell.machine)
    paths = write_report(run, ("svg",), tmp_path)
    assert {path.stem for path in paths if path.suffix == ".svg"} == PLOT_NAMES
    assert not (FIXTURE / "report").exists()


def test_the_report_has_the_page_the_summaries_and_every_plot(written: dict[str, Path]) -> None:
    assert written.keys() == {"report.html", "summary.md", "summary.json", *(f"{name}.png" for name in PLOT_NAMES)}
    assert json.loads(written["summary.json"].read_text())["cells"][1]["transport"] == "mrc"


def test_the_page_needs_nothing_from_anywhere_else(written: dict[str, Path]) -> None:
    text = written["report.html"].read_text()
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']+)|url\(([^)]*)\)|@import""", text)
    assert len(links) == len(PLOT_NAMES)
    assert all(link[0].startswith("data:image/svg+xml;base64,") for link in links)
    assert "<script" not in text


def test_the_page_says_first_what_was_compared_what_failed_and_what_came_out(written: dict[str, Path]) -> None:
    text = written["report.html"].read_text().replace("\u00a0", " ")
    order = [
        "TCP: host-limited",
        "TCP: 1 of 3 repetitions failed",
        "Compared: TCP (routing ecmp) and MRC (routing disjoint); 2 to 3 repetitions each",
        "Failure: p1.leaf1-p1.spine2 down, 4 s to 7 s.",
        "MRC delivered 33.",
        "times (95 % interval",
        "Time to recover from p1.leaf1-p1.spine2 down",
        "none was lost or corrupt",
        "Substitute: no netem",
        ">Comparison<",
        "timed out: no progress for 10 s",
        'id="goodput-over-time"',
        "port down",
        "What the numbers mean",
        "71aaef6",
        "kind: multi_plane",
    ]
    positions = [text.find(part) for part in order]
    assert -1 not in positions, order[positions.index(-1)]
    assert positions == sorted(positions)


def test_what_a_user_wrote_cannot_become_part_of_the_page(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "<b>x</b>", experiment_yaml="a: <script>alert(1)</script>") as writer:
        pass
    text = html(compare([load_run(writer.path)]), [])
    assert "<script" not in text and "<b>x" not in text
    assert "&lt;script&gt;" in text


def test_the_markdown_shows_the_images_that_lie_beside_it(written: dict[str, Path]) -> None:
    text = written["summary.md"].read_text()
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert {f"{name}.png" for name in PLOT_NAMES} == set(shown)
    assert text.startswith("# failover\n")


def test_images_carry_the_run_and_its_files(written: dict[str, Path], run: Run, drawn: dict[str, Drawing]) -> None:
    with Image.open(written["completion-time-cdf.png"]) as image:
        origin = json.loads(image.text["Description"])
        assert image.text["Source"] == run.id
    assert origin["runs"] == [run.id]
    assert f"{run.id}/cells/001-mrc-r1/messages.parquet" in origin["files"]
    # The repetition that timed out has no part in it.
    assert not any("tcp-r2" in file for file in origin["files"])
    drawing = drawn["recovery-time"]
    assert run.id.encode() in drawing.image("pdf")
    svg = ElementTree.fromstring(drawing.image("svg"))
    assert run.id in [element.text for element in svg.iter() if element.tag.endswith("identifier")]


def test_the_same_files_give_the_same_images(run: Run) -> None:
    first, second = (next(iter(drawings(compare([run])))).image("svg") for _ in range(2))
    assert first == second


def test_a_plot_is_half_a_page_wide_and_nothing_runs_over_its_edge(written: dict[str, Path]) -> None:
    for name in PLOT_NAMES:
        with Image.open(written[f"{name}.png"]) as image:
            assert image.width == round(style.WIDTH_IN * style.DPI)
            grey = np.asarray(image.convert("L"))
        # A white margin all around: text or lines that reach the edge would be cut off.
        edges = np.concatenate([grey[:2].ravel(), grey[-2:].ravel(), grey[:, :2].ravel(), grey[:, -2:].ravel()])
        assert edges.min() == 255, name


def test_legends_name_n_and_what_was_limited_by_the_machine(drawn: dict[str, Drawing]) -> None:
    for drawing in drawn.values():
        if drawing.name in ("goodput-over-time", "recovery-time"):
            assert {"TCP (n = 2, host-limited)", "MRC (n = 3)"} <= set(legend_texts(drawing.figure))
        if drawing.name == "completion-time-cdf":
            assert any(text.startswith("TCP (n = 2, host-limited), ") for text in legend_texts(drawing.figure))
            assert any("host-limited: TCP" in text.get_text() for text in drawing.figure.axes[0].texts)


def test_axes_have_units(drawn: dict[str, Drawing]) -> None:
    labels = {name: drawing.figure.axes[0] for name, drawing in drawn.items()}
    assert labels["goodput-over-time"].get_ylabel() == "goodput, Mbit/s"
    assert labels["goodput-over-time"].get_xlabel().startswith("time since the start of traffic, s")
    assert labels["completion-time-cdf"].get_xlabel() == "completion time, ms"
    assert labels["recovery-time"].get_xlabel().endswith(", s")


def test_the_goodput_line_falls_where_the_failure_mark_is(comparison: Comparison) -> None:
    mrc = next(group for group in comparison.groups if group.transport == "mrc")
    marks = goodput_time.failure_marks([mrc])
    assert marks == [(4.003, 7.0, "p1.leaf1-p1.spine2 down")]
    starts, lines = goodput_time.stacked(mrc, marks)
    mean = lines.mean(axis=0)
    before, after = mean[starts < 3.99][-1], mean[starts > 3.99][0]
    assert before > 0.9 * 36e6 * 0.95
    assert after < 0.55 * 33e6


def test_smoothing_keeps_bytes_and_never_crosses_a_cut() -> None:
    values = np.array([10.0] * 6 + [0.0] * 6)
    assert goodput_time.smoothed(values, [6]).tolist() == values.tolist()
    assert goodput_time.smoothed(values, [])[5:7].tolist() == pytest.approx([20 / 3, 10 / 3])


def test_the_curve_of_completion_times_passes_through_its_percentiles(comparison: Comparison) -> None:
    figure = completion_cdf.draw(comparison.groups)
    assert figure is not None
    row = next(row for row in comparison.rows if row.group.transport == "mrc")
    assert row.fct.p99_s is not None
    marks = [line.get_xydata() for line in figure.axes[0].lines if line.get_marker() == "^"]
    assert any(np.allclose(mark, [[row.fct.p99_s * 1e3, 0.99]]) for mark in marks)


def test_a_transport_keeps_its_colour_whoever_it_is_compared_with(comparison: Comparison) -> None:
    tcp, mrc = comparison.groups
    assert style.looks([tcp, mrc])[1] == style.looks([mrc])[0] == style.looks([mrc, tcp])[0] == style.look("mrc")
    assert style.look("quic") == style.look("quic")


def test_groups_of_one_transport_are_told_apart(comparison: Comparison) -> None:
    mrc: Group = comparison.groups[1]
    looks = style.looks([mrc] * 5)
    assert looks[0] == style.look("mrc")
    assert len(set(looks)) == 5


def test_drawing_leaves_matplotlib_as_it_was(run: Run) -> None:
    before = dict(matplotlib.rcParams)
    for drawing in drawings(compare([run])):
        drawing.image("png")
        break
    assert dict(matplotlib.rcParams) == before


def test_a_report_of_an_interrupted_run_says_so_and_shows_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), RunWriter.create(tmp_path, "a") as writer:
        for repetition in (1, 2):
            record = CellRecord(id=f"{repetition:03d}", transport="mrc", repetition=repetition, duration_s=2.0)
            with writer.cell(record) as cell:
                cell.write_table("goodput", goodput_rows(constant(8e6, 2.0)))
                cell.write_table("messages", message_rows([0.1]))
                if repetition == 2:
                    raise KeyboardInterrupt
    run = load_run(writer.path)
    paths = {path.name: path for path in write_report(run)}
    comparison = compare([run])
    assert warnings(comparison)[0].startswith("This run was interrupted.")
    assert comparison.rows[0].group.n == 1
    assert "goodput-over-time.png" in paths
    assert "This run was interrupted." in paths["report.html"].read_text()


def test_a_report_of_a_run_without_a_result_is_still_a_report(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, "a")
    writer.cell(CellRecord(id="000", transport="mrc"))
    writer.finish("failed", reasons=["no space left"])
    run = load_run(writer.path)
    paths = write_report(run)
    assert [path.name for path in paths] == ["report.html", "summary.md", "summary.json"]
    assert sentences(compare([run])) == ["Nothing was measured to the end, so there is nothing to compare yet."]
    assert "This run failed: no space left." in paths[0].read_text()


def test_a_damaged_event_log_does_not_stop_the_report(tmp_path: Path) -> None:
    path = make_run(tmp_path, repetitions=1, planes=2, duration_s=8.0, tables=False)
    (path / "cells" / "000-tcp-r1" / "events.jsonl").write_text("nonsense\n")
    text = html(compare([load_run(path)]), [])
    assert "events.jsonl:1: damaged" in text


def test_a_sweep_is_drawn_against_its_numbers_and_once_for_each(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, "a") as writer:
        for planes in (1, 2):
            for transport in ("tcp", "mrc"):
                record = CellRecord(
                    id=f"{planes}-{transport}", transport=transport, duration_s=2.0, params={"topology.planes": planes}
                )
                with writer.cell(record) as cell:
                    cell.write_table("goodput", goodput_rows(constant(planes * 8e6, 2.0)))
                    cell.write_table("messages", message_rows([0.1]))
    found = {drawing.name: drawing for drawing in drawings(compare([load_run(writer.path)]))}
    assert {"goodput-sweep", "goodput-over-time-planes-1", "goodput-over-time-planes-2"} <= found.keys()
    axes = found["goodput-sweep"].figure.axes[0]
    assert next(line.get_ydata() for line in axes.lines) == pytest.approx([8.0, 16.0])
    assert axes.get_title(loc="left") == "Goodput by planes"


def test_many_failures_and_long_names_still_fit(tmp_path: Path) -> None:
    failures = [
        FailureRecord(
            name=f"p1.edge1.{index}-p1.agg1.{index} down for maintenance", at_s=1.0 + 0.3 * index, until_s=None
        )
        for index in range(12)
    ]
    with RunWriter.create(tmp_path, "a") as writer:
        record = CellRecord(
            id="000",
            transport="a-transport-of-somebody-else-with-a-long-name",
            duration_s=6.0,
            capacity=[CapacityStep(from_s=0.0, bps=8e6)],
            failures=failures,
        )
        with writer.cell(record) as cell:
            cell.write_table("goodput", goodput_rows(constant(8e6, 6.0)))
            cell.write_table("messages", message_rows([0.1] * 5))
    for drawing in drawings(compare([load_run(writer.path)])):
        with Image.open(io.BytesIO(drawing.image("png"))) as image:
            grey = np.asarray(image.convert("L"))
        assert min(grey[:, :2].min(), grey[:, -2:].min()) == 255, drawing.name


def test_several_runs_are_reported_side_by_side(run: Run, tmp_path: Path) -> None:
    paths = write_report([run, load_run(FIXTURE)], (), tmp_path / "both")
    text = paths[0].read_text()
    assert text.startswith("# Comparison of 2 runs")
    assert f"MRC [{run.id}]" in text and "MRC [20250301T120000Z-failover]" in text


def test_an_unknown_format_and_an_unwritable_place_are_one_clear_error(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown report format gif"):
        write_report(run, ("gif",))  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="cannot be written"):
        write_report(run, (), tmp_path / "file" / "x")
