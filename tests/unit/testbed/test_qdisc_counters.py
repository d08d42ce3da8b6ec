"""Messages of the kernel about queues, byte by byte."""

import struct

from testbed.qdisc_counters import QueueCounters, parse_qdisc


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def message(parent, *attributes):
    return struct.pack("=BxxxiIII", 0, 7, 0x10000, parent, 2) + b"".join(attributes)


STATS = attribute(
    7,
    attribute(1, struct.pack("=QI4x", 1 << 33, 12)) + attribute(3, struct.pack("=IIIII", 3, 4500, 6, 0, 0)),
)


def test_a_root_queues_counters_are_read():
    found = parse_qdisc(message(0xFFFFFFFF, attribute(1, b"htb\0"), attribute(12, b"\1"), STATS))
    assert found == QueueCounters(ifindex=7, bytes=1 << 33, packets=12, drops=6, backlog_bytes=4500)


def test_queues_below_the_root_are_left_out():
    assert parse_qdisc(message(0x10010, attribute(1, b"bfifo\0"), STATS)) is None


def test_a_queue_without_counters_is_left_out():
    assert parse_qdisc(message(0xFFFFFFFF, attribute(1, b"noqueue\0"))) is None


def test_a_damaged_attribute_ends_the_reading():
    assert parse_qdisc(message(0xFFFFFFFF, struct.pack("=HH", 0, 7))) is None
