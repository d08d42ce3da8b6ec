"""Each metric gives the exact number its definition gives on files whose content is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from results.metrics.completion import completion, percentile
from results.metrics.fairness import cell_jain_index, jain_index
from results.metrics.goodput import capacity_bps, mean_capacity_bps, mean_goodput_bps
from results.metrics.integrity import message_counts
from results.metrics.intervals import mean_interval, ratio_interval
from results.metrics.planes import mean_plane_shares, plane_shares
from results.metrics.retransmissions import retransmitted_packets, retransmitted_share
from results.metrics.timeline import timeline
from tests.unit.results.fabricate import (
    PAIRS,
    constant,
    goodput_rows,
    make_cell,
    message_rows,
    with_rate,
)


def test_goodput_is_the_mean_over_the_window_without_the_warm_up(tmp_path: Path) -> None:
    rates = with_rate(constant(8e6, 4.0), 0.0, 1.0, 80e6)
    assert mean_goodput_bps(make_cell(tmp_path, rates=rates, warmup_s=1.0)) == 8e6


def test_bins_without_a_row_count_as_nothing_delivered(tmp_path: Path) -> None:
    rows = [row for row in goodput_rows(constant(8e6, 4.0)) if row["t_s"] < 1.0 or row["t_s"] >= 2.0]
    assert mean_goodput_bps(make_cell(tmp_path, rows=rows, duration_s=4.0)) == 6e6


def test_a_bin_cut_by_the_warm_up_or_the_end_is_left_out(tmp_path: Path) -> None:
    rates = with_rate(constant(8e6, 2.0), 0.5, 0.55, 80e6)
    assert mean_goodput_bps(make_cell(tmp_path, rates=rates, warmup_s=0.51, duration_s=1.98)) == 8e6


def test_a_cell_shorter_than_its_warm_up_has_no_goodput(tmp_path: Path) -> None:
    assert mean_goodput_bps(make_cell(tmp_path, rates=constant(8e6, 1.0), warmup_s=2.0)) is None


def test_capacity_is_averaged_over_the_window_and_within_a_bin(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rates=constant(1e6, 4.0), capacity=[(0.0, 40e6), (2.01, 30e6), (3.0, 40e6)])
    capacity = capacity_bps(cell, timeline(cell))
    assert capacity is not None
    assert capacity[40] == pytest.approx(0.2 * 40e6 + 0.8 * 30e6)
    assert (capacity[39], capacity[41], capacity[60]) == pytest.approx((40e6, 30e6, 40e6))
    assert mean_capacity_bps(cell) == pytest.approx(40e6 - 10e6 * 0.99 / 4)


def test_a_cell_that_does_not_know_its_capacity_says_so(tmp_path: Path) -> None:
    assert mean_capacity_bps(make_cell(tmp_path, rates=constant(1e6, 1.0))) is None


def test_completion_percentiles_are_samples_of_all_repetitions_together(tmp_path: Path) -> None:
    cells = [
        make_cell(tmp_path, messages=message_rows(times), duration_s=9.0)
        for times in (np.arange(1, 51) / 100, np.arange(51, 101) / 100)
    ]
    found = completion(cells)
    assert (found.n, found.p50_s, found.p99_s, found.p999_s) == (100, 0.5, 0.99, None)


@pytest.mark.parametrize(("samples", "expected"), [(999, None), (1000, 0.999)])
def test_the_999th_permille_needs_a_thousand_samples(tmp_path: Path, samples: int, expected: float | None) -> None:
    cell = make_cell(tmp_path, messages=message_rows(np.arange(1, samples + 1) / 1000), duration_s=9.0)
    assert completion([cell]).p999_s == expected


def test_only_whole_messages_posted_after_the_warm_up_have_a_completion_time(tmp_path: Path) -> None:
    good, corrupt, lost, open_ended = (message_rows([0.25], posted_s=2.0)[0] for _ in range(4))
    corrupt["ok"] = False
    lost.update(status="lost", delivered_s=None)
    open_ended.update(status="unfinished", delivered_s=None)
    early = message_rows([5.0], posted_s=0.5)
    cell = make_cell(tmp_path, messages=[good, corrupt, lost, open_ended, *early], warmup_s=1.0, duration_s=9.0)
    found = completion([cell])
    assert (found.n, found.p99_s) == (1, 0.25)
    counts = message_counts(cell)
    assert (counts.total, counts.delivered, counts.corrupt, counts.lost, counts.unfinished) == (5, 2, 1, 1, 1)


def test_percentile_of_nothing_is_nothing() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.99) == 3.0


def test_an_interval_is_reproducible_and_covers_the_mean() -> None:
    values = [9.0, 10.0, 11.0, 10.5, 9.5]
    first, second = mean_interval(values), mean_interval(values)
    assert first == second
    assert first is not None and first.low is not None and first.high is not None
    assert first.mean == 10.0
    assert 9.0 <= first.low < 10.0 < first.high <= 11.0


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        interval = mean_interval(list(random.normal(5.0, 1.0, 20)), resamples=1000)
        assert interval is not None and interval.low is not None and interval.high is not None
        hits += interval.low <= 5.0 <= interval.high
    assert 175 <= hits <= 199


def test_one_repetition_gives_a_mean_and_no_interval() -> None:
    interval = mean_interval([4.0])
    assert interval is not None
    assert (interval.mean, interval.low, interval.high, interval.n) == (4.0, None, None, 1)
    assert mean_interval([]) is None


def test_a_paired_ratio_is_tighter_than_the_spread_between_repetitions() -> None:
    ratio = ratio_interval([20.0, 40.0, 60.0], [10.0, 20.0, 30.0])
    assert ratio is not None
    assert (ratio.mean, ratio.low, ratio.high) == (2.0, 2.0, 2.0)
    assert ratio_interval([1.0], [0.0]) is None


@pytest.mark.parametrize(
    ("rates", "expected"), [([1, 1, 1, 1], 1.0), ([1, 0, 0, 0], 0.25), ([2, 1], 0.9), ([0, 0], None), ([], None)]
)
def test_jain_index(rates: list[float], expected: float | None) -> None:
    assert jain_index(rates) == (expected if expected is None else pytest.approx(expected))


def test_a_pair_that_got_nothing_through_counts_in_the_fairness(tmp_path: Path) -> None:
    cell = make_cell(
        tmp_path, rates=constant(8e6, 1.0), messages=[*message_rows([0.1]), *message_rows([0.1], pair=PAIRS[1])]
    )
    assert cell_jain_index(cell) == pytest.approx(0.5)


def test_plane_shares_add_up_to_one_and_name_idle_planes(tmp_path: Path) -> None:
    rows = goodput_rows(constant(6e6, 1.0), planes=[1]) + goodput_rows(constant(2e6, 1.0), planes=[3])
    cell = make_cell(tmp_path, rows=rows, duration_s=1.0, planes=4)
    assert plane_shares(cell) == {1: 0.75, 2: 0.0, 3: 0.25, 4: 0.0}
    assert mean_plane_shares([cell, cell]) == plane_shares(cell)


def test_goodput_without_planes_has_no_plane_shares(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rows=goodput_rows(constant(6e6, 1.0), planes=[0]), duration_s=1.0, planes=4)
    assert plane_shares(cell) == {}


def test_retransmissions_come_from_the_hosts_counters(tmp_path: Path) -> None:
    counters = {
        "h1": {"retransmitted_packets": 3, "sent_packets": 60},
        "h2": {"retransmitted_packets": 2, "sent_packets": 40},
    }
    cell = make_cell(tmp_path, rates=constant(1e6, 1.0), counters=counters)
    assert retransmitted_packets([cell, cell]) == 10
    assert retransmitted_share([cell, cell]) == pytest.approx(0.05)


def test_an_unknown_number_of_retransmissions_is_not_zero(tmp_path: Path) -> None:
    unknown = make_cell(tmp_path, rates=constant(1e6, 1.0))
    known = make_cell(tmp_path, rates=constant(1e6, 1.0), counters={"h1": {"retransmitted_packets": 3}})
    assert retransmitted_packets([unknown]) is None
    assert retransmitted_packets([known, unknown]) is None
