"""Quantities: what is read, what is written back, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies import quantities as q


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (q.parse_rate, "20 Mbit/s", 20_000_000),
        (q.parse_rate, "1.5Gbit/s", 1_500_000_000),
        (q.parse_rate, " 64 kbit/s ", 64_000),
        (q.parse_rate, "9 bit/s", 9),
        (q.parse_duration, "2 ms", 0.002),
        (q.parse_duration, "0.1 ms", 0.0001),
        (q.parse_duration, "250 us", 0.00025),
        (q.parse_duration, "12 s", 12.0),
        (q.parse_size, "64 KB", 64_000),
        (q.parse_size, "64 KiB", 65_536),
        (q.parse_size, "1.5 MB", 1_500_000),
        (q.parse_size, "1 GiB", 2**30),
        (q.parse_share, "20 %", 0.2),
        (q.parse_share, "0.1%", 0.001),
        (q.parse_queue, "1.5 bdp", q.Queue(bdp=1.5)),
        (q.parse_queue, "64 KB", q.Queue(size_bytes=64_000)),
    ],
)
def test_text_with_a_unit_becomes_a_number_in_base_units(parse: object, text: str, value: object) -> None:
    assert parse(text) == value  # type: ignore[operator]


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (q.format_rate, 20_000_000, "20 Mbit/s"),
        (q.format_rate, 0, "0 Mbit/s"),
        (q.format_duration, 0.002, "2 ms"),
        (q.format_duration, 0.0, "0 ms"),
        (q.format_duration, 90.0, "90 s"),
        (q.format_size, 4200, "4200 B"),
        (q.format_size, 64_000, "64 KB"),
        (q.format_size, 86_680, "86.68 KB"),
        (q.format_share, 0.03, "3 %"),
        (q.format_queue, q.Queue(bdp=0.2), "0.2 bdp"),
        (q.format_queue, q.Queue(size_bytes=1000), "1 KB"),
    ],
)
def test_a_number_is_written_in_the_unit_that_reads_best(form: object, value: object, text: str) -> None:
    assert form(value) == text  # type: ignore[operator]


@given(st.integers(0, 10**15))
def test_rates_and_sizes_survive_writing_and_reading(value: int) -> None:
    assert q.parse_rate(q.format_rate(value)) == value
    assert q.parse_size(q.format_size(value)) == value


@given(st.floats(1e-9, 1e6))
def test_times_and_multiples_survive_writing_and_reading(value: float) -> None:
    assert q.parse_duration(q.format_duration(value)) == pytest.approx(value, rel=1e-9)
    assert q.parse_queue(q.format_queue(q.Queue(bdp=value))).bdp == pytest.approx(value, rel=1e-9)


@given(st.floats(0, 1))
def test_shares_survive_writing_and_reading(value: float) -> None:
    assert q.parse_share(q.format_share(value)) == pytest.approx(value, abs=1e-24)


@pytest.mark.parametrize("parse", [q.parse_rate, q.parse_duration, q.parse_size, q.parse_share, q.parse_queue])
@given(value=st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())))
def test_anything_else_is_a_quantity_error_and_never_another(parse: object, value: object) -> None:
    with pytest.raises(q.QuantityError):
        parse(value)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("parse", "value", "hint"),
    [
        (q.parse_rate, 20, "`20 Mbit/s`?"),
        (q.parse_rate, "20", "`20 Mbit/s`?"),
        (q.parse_rate, "20 mbps", "`20 Mbit/s`?"),
        (q.parse_duration, 5, "`5 ms`?"),
        (q.parse_size, "64 kb", "`64 KB`?"),
        (q.parse_size, 4200, "`4200 B`?"),
        (q.parse_share, 0.05, "`5 %` or `0.05 %`?"),
        (q.parse_queue, 5, "`5 KB` or `1 bdp`?"),
    ],
)
def test_a_bare_number_or_a_slip_is_refused_with_what_was_meant(parse: object, value: object, hint: str) -> None:
    with pytest.raises(q.QuantityError) as caught:
        parse(value)  # type: ignore[operator]
    assert caught.value.hint == hint
