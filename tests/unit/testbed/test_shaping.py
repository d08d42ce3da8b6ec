"""Rate and queue of a link as `tc` lines."""

import pytest

from testbed.shaping import burst_bytes, frame_bytes, needs_netem, tc_lines
from topologies.graph import LinkParams

RATES = [1_000_000, 10_000_000, 999_999_999, 1_000_000_001, 10_000_000_000]


def params(**changes):
    return LinkParams(**{"rate_bps": 10_000_000, "delay_s": 0.0, "loss": 0.0, "queue_bytes": 50_000, **changes})


@pytest.mark.parametrize("rate", RATES)
def test_any_rate_is_given_in_full_and_with_a_quantum_so_that_tc_neither_caps_nor_warns(rate):
    lines = tc_lines("x", params(rate_bps=rate), 4200)
    classes = [line for line in lines if line.startswith("class")]
    assert len(classes) == 2
    assert all(f"rate {rate}bit ceil {rate}bit " in line and "quantum 4214" in line for line in classes)


def test_the_queue_is_limited_in_bytes():
    assert tc_lines("x", params(), 4200)[-1] == "qdisc replace dev x parent 1:10 handle 10: bfifo limit 50000b"


@pytest.mark.parametrize("rate", RATES)
def test_the_bucket_holds_two_frames_at_least_and_a_millisecond_at_most(rate):
    bucket = burst_bytes(rate, 4200)
    assert bucket >= 2 * frame_bytes(4200)
    assert bucket == 2 * frame_bytes(4200) or bucket * 8 / rate == pytest.approx(0.001)


def test_netem_is_asked_for_only_by_delay_or_loss_and_holds_what_is_on_the_wire():
    assert not needs_netem([params()])
    assert needs_netem([params(), params(loss=0.01)])
    line = tc_lines("x", params(delay_s=0.1, rate_bps=100_000_000), 1500)[-1]
    limit = int(line.split("limit ")[1].split()[0])
    assert limit >= (100e6 / 8 * 0.1 + 50_000) / 1514
    assert "delay 100000us" in line
    assert "loss" not in line
