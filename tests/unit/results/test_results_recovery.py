"""Recovery time and dip: exact on clean dips, steady under noise, never 0 where there was a hole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from results.metrics.recovery import Outcome, outcomes
from results.schema import FailureRecord
from tests.unit.results.fabricate import constant, make_cell, with_rate

FULL = 40e6
DURATION_S = 10.0


def failure(at_s: float = 4.0, until_s: float | None = None) -> FailureRecord:
    return FailureRecord(name="cut", at_s=at_s, until_s=until_s)


def outcome(tmp_path: Path, rates: list[float], *failures: FailureRecord, capacity: object = ((0.0, FULL),)) -> Outcome:
    cell = make_cell(
        tmp_path,
        rates=rates,
        warmup_s=1.0,
        failures=failures or (failure(),),
        capacity=capacity,  # type: ignore[arg-type]
    )
    return outcomes(cell)[0]


@pytest.mark.parametrize("outage_s", [0.05, 0.1, 0.35, 1.0, 3.0])
def test_a_clean_outage_is_measured_to_the_sample_and_to_the_byte(tmp_path: Path, outage_s: float) -> None:
    found = outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.0, 4.0 + outage_s, 0.0))
    assert found.recovery_s == pytest.approx(outage_s)
    assert found.dip_bytes == round(FULL * outage_s / 8)
    assert found.window_s == pytest.approx(0.2)


def test_no_dip_is_no_recovery_time(tmp_path: Path) -> None:
    found = outcome(tmp_path, constant(FULL, DURATION_S))
    assert (found.recovery_s, found.dip_bytes) == (0.0, 0)


def test_an_outage_that_begins_after_queues_have_drained_is_still_seen(tmp_path: Path) -> None:
    found = outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.15, 4.3, 0.0))
    assert found.recovery_s == pytest.approx(0.3)
    assert found.dip_bytes == round(FULL * 0.15 / 8)


def test_the_burst_after_an_outage_does_not_hide_it(tmp_path: Path) -> None:
    rates = with_rate(with_rate(constant(FULL, DURATION_S), 4.0, 4.1, 0.0), 4.1, 4.2, 2 * FULL)
    found = outcome(tmp_path, rates)
    assert found.recovery_s == pytest.approx(0.1)
    assert found.dip_bytes == round(FULL * 0.1 / 8)


def test_a_short_hole_made_good_at_once_is_a_hole_all_the_same(tmp_path: Path) -> None:
    rates = with_rate(with_rate(constant(FULL, DURATION_S), 4.1, 4.15, 0.0), 4.15, 4.2, 2 * FULL)
    found = outcome(tmp_path, rates)
    assert found.recovery_s == pytest.approx(0.15)
    assert found.dip_bytes == round(FULL * 0.05 / 8)


def test_time_counts_from_when_the_failure_was_applied(tmp_path: Path) -> None:
    cut = FailureRecord(name="cut", at_s=3.0, planned_s=3.0, applied_s=4.02, deviation_s=1.02)
    found = outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.05, 4.5, 0.0), cut)
    assert found.start_s == 4.02
    assert found.recovery_s == pytest.approx(0.48)


def test_a_partial_loss_above_a_tenth_is_not_recovered_while_it_lasts(tmp_path: Path) -> None:
    found = outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.0, 6.0, 0.85 * FULL))
    assert found.recovery_s == pytest.approx(2.0)
    assert found.dip_bytes == round(0.15 * FULL * 2.0 / 8)


def test_what_never_recovers_has_no_recovery_time_and_says_how_long_it_was_watched(tmp_path: Path) -> None:
    found = outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.0, DURATION_S, 0.5 * FULL))
    assert found.recovery_s is None
    assert found.observed_s == pytest.approx(6.0)
    assert found.dip_bytes == round(0.5 * FULL * 6.0 / 8)


def test_less_than_half_a_second_of_good_times_at_the_end_is_not_a_recovery(tmp_path: Path) -> None:
    assert outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.0, 9.55, 0.0)).recovery_s is None
    assert outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.0, 9.5, 0.0)).recovery_s == pytest.approx(5.5)


def test_a_relapse_within_half_a_second_postpones_recovery(tmp_path: Path) -> None:
    rates = with_rate(with_rate(constant(FULL, DURATION_S), 4.0, 4.2, 0.0), 4.5, 4.6, 0.0)
    assert outcome(tmp_path, rates).recovery_s == pytest.approx(0.6)


def test_one_low_sample_after_recovery_does_not_undo_it(tmp_path: Path) -> None:
    rates = with_rate(with_rate(constant(FULL, DURATION_S), 4.0, 4.2, 0.0), 4.4, 4.45, 0.7 * FULL)
    assert outcome(tmp_path, rates).recovery_s == pytest.approx(0.2)


def test_the_level_is_the_capacity_that_is_left(tmp_path: Path) -> None:
    rates = with_rate(with_rate(constant(FULL, DURATION_S), 4.0, DURATION_S, 0.75 * FULL), 4.0, 4.3, 0.0)
    left = ((0.0, FULL), (4.0, 0.75 * FULL))
    found = outcome(tmp_path, rates, capacity=left)
    assert found.recovery_s == pytest.approx(0.3)
    assert found.level_bps == 0.75 * FULL
    assert found.dip_bytes == round(0.75 * FULL * 0.3 / 8)
    assert found.after_share == pytest.approx(1.0)


def test_a_transport_is_asked_for_what_it_had_before_not_for_the_whole_fabric(tmp_path: Path) -> None:
    rates = with_rate(constant(0.4 * FULL, DURATION_S), 4.0, 5.0, 0.3 * FULL)
    found = outcome(tmp_path, rates, capacity=((0.0, FULL), (4.0, 0.75 * FULL)))
    assert found.recovery_s == pytest.approx(1.0)
    assert found.level_bps == pytest.approx(0.4 * FULL)


def test_a_failure_without_time_before_it_is_judged_by_capacity_alone(tmp_path: Path) -> None:
    found = outcome(tmp_path, constant(0.4 * FULL, DURATION_S), failure(1.2))
    assert (found.recovery_s, found.level_bps) == (None, FULL)


def test_recovery_that_needed_the_repair_is_marked(tmp_path: Path) -> None:
    found = outcome(tmp_path, with_rate(constant(FULL, DURATION_S), 4.0, 7.2, 0.5 * FULL), failure(4.0, 7.0))
    assert found.recovery_s == pytest.approx(3.2)
    assert found.after_repair


def test_with_no_path_left_recovery_waits_for_the_repair(tmp_path: Path) -> None:
    capacity = ((0.0, FULL), (4.0, 0.0), (5.0, FULL))
    found = outcome(
        tmp_path, with_rate(constant(FULL, DURATION_S), 4.0, 5.1, 0.0), failure(4.0, 5.0), capacity=capacity
    )
    assert found.recovery_s == pytest.approx(1.1)
    assert found.dip_bytes == round(FULL * 0.1 / 8)


def test_a_second_failure_is_judged_against_the_time_before_the_first(tmp_path: Path) -> None:
    rates = with_rate(constant(FULL, DURATION_S), 4.0, DURATION_S, 0.5 * FULL)
    cell = make_cell(tmp_path, rates=rates, warmup_s=1.0, failures=[failure(4.0), failure(6.0)])
    assert [found.recovery_s for found in outcomes(cell)] == [None, None]


def test_without_capacity_or_time_before_nothing_is_claimed(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rates=constant(FULL, 4.0), failures=[failure(0.0)])
    (found,) = outcomes(cell)
    assert (found.level_bps, found.recovery_s, found.dip_bytes) == (None, None, None)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sigma", [0.03, 0.1, 0.2])
def test_noise_moves_the_recovery_by_a_few_samples_only(tmp_path: Path, seed: int, sigma: float) -> None:
    noise = np.random.default_rng(seed).normal(1.0, sigma, round(DURATION_S / 0.05))
    rates = with_rate([FULL * max(0.0, factor) for factor in noise], 4.0, 4.4, 0.0)
    found = outcome(tmp_path, rates, capacity=((0.0, 1.1 * FULL),))
    assert found.recovery_s is not None
    assert 0.4 <= found.recovery_s <= (0.45 if sigma < 0.05 else 2.0)


def test_goodput_that_came_in_bursts_before_is_judged_by_a_longer_mean(tmp_path: Path) -> None:
    bursts = [2 * FULL if index % 8 < 4 else 0.0 for index in range(round(DURATION_S / 0.05))]
    found = outcome(tmp_path, with_rate(bursts, 4.0, 5.2, 0.0), capacity=((0.0, 2 * FULL),))
    assert found.window_s == pytest.approx(0.4)
    assert found.recovery_s == pytest.approx(1.2)
