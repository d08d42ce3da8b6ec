"""What a host may send when."""

from experiments.driver.schedule import Schedule
from experiments.workloads.base import Message, Stream


def test_a_stream_keeps_so_many_messages_under_way_and_no_more():
    stream = Stream(channel=3, size=100, outstanding=2)
    schedule = Schedule([], [stream])
    first = schedule.due(0.0)
    assert first == [(3, stream.message_id(0), 100), (3, stream.message_id(1), 100)]
    assert schedule.due(1.0) == []
    schedule.completed(stream.message_id(0))
    assert schedule.due(1.0) == [(3, stream.message_id(2), 100)]
    assert not schedule.finished()


def test_a_counted_stream_ends_when_its_last_message_is_confirmed():
    stream = Stream(channel=0, size=10, outstanding=4, count=2)
    schedule = Schedule([], [stream])
    assert len(schedule.due(0.0)) == 2
    schedule.completed(stream.message_id(1))
    assert not schedule.finished()
    schedule.completed(stream.message_id(0))
    assert schedule.finished()
    assert schedule.due(9.0) == []


def test_a_message_waits_for_all_that_it_depends_on_and_for_its_time():
    schedule = Schedule([Message(id=7, channel=0, size=5, after=(1, 2), at_s=4.0)], [])
    assert schedule.due(10.0) == []
    schedule.completed(1)
    assert schedule.due(10.0) == []
    schedule.completed(2)
    assert schedule.next_time_s() == 4.0
    assert schedule.due(3.9) == []
    assert schedule.due(4.0) == [(0, 7, 5)]
    assert schedule.due(5.0) == []


def test_a_completion_that_nobody_waits_for_changes_nothing():
    schedule = Schedule([Message(id=1, channel=0, size=5)], [])
    schedule.completed(99)
    schedule.completed(99)
    assert schedule.due(0.0) == [(0, 1, 5)]


def test_ids_of_different_channels_and_numbers_never_meet():
    streams = [Stream(channel, 10, 1) for channel in range(50)]
    ids = {stream.message_id(number) for stream in streams for number in range(100)}
    assert len(ids) == 5000
    assert min(ids) >= 1 << 32  # listed messages have the ids below
