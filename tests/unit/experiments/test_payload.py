"""The bytes of messages: any change of any byte, any mix-up of messages, must show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.driver.payload import Payload


@given(st.integers(0, 2**63), st.integers(16, 5000))
def test_what_was_filled_is_found_intact(message, size):
    buffer = bytearray(size)
    Payload(seed=1, largest=5000).fill(message, memoryview(buffer))
    assert Payload(seed=1, largest=5000).check(memoryview(buffer)) == (message, True)


@given(st.data())
def test_one_changed_byte_anywhere_shows(data):
    size = data.draw(st.integers(16, 3000))
    place = data.draw(st.integers(0, size - 1))
    payload = Payload(seed=1, largest=3000)
    buffer = bytearray(size)
    payload.fill(12, memoryview(buffer))
    buffer[place] ^= data.draw(st.integers(1, 255))
    assert payload.check(memoryview(buffer)) != (12, True)


def test_the_rest_of_the_message_before_does_not_pass_for_this_one():
    payload = Payload(seed=1, largest=4000)
    before, after = bytearray(4000), bytearray(4000)
    payload.fill(1, memoryview(before))
    payload.fill(2, memoryview(after))
    after[2000:3000] = before[2000:3000]
    assert payload.check(memoryview(after)) == (2, False)


def test_two_packets_in_each_others_place_show():
    payload = Payload(seed=1, largest=16384)
    buffer = bytearray(16384)
    payload.fill(5, memoryview(buffer))
    buffer[4096:8192], buffer[8192:12288] = buffer[8192:12288], buffer[4096:8192]
    assert payload.check(memoryview(buffer)) == (5, False)


@pytest.mark.parametrize("size", [0, 1, 15])
def test_less_than_a_header_is_no_message(size):
    assert Payload(seed=1, largest=64).check(memoryview(bytearray(size)))[1] is False
