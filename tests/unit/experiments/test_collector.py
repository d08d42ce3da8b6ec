"""What a cell tells becomes tables: every message has one fate, and doubts about the machine are named."""

import pytest

from experiments.collector import Collector
from experiments.workloads.permutation import saturating
from results.reader import load_run
from results.schema import CellRecord
from results.writer import RunWriter

T0 = 1000.0


@pytest.fixture
def told(tmp_path):
    """Feed events to a collector; the collector, and the cell read back from its files."""

    def feed(*events, status="done"):
        with RunWriter.create(tmp_path, "test") as writer:
            record = CellRecord(id="000-x-r1", transport="x", duration_s=10.0, base_rtt_s=0.02)
            cell = writer.cell(record)
            workload = saturating([("h1", "h2")], size=100, outstanding=4)
            collector = Collector(workload, cell, ["a-b down"])
            collector.take({"event": "start", "mono": T0, "unix": 5.0})
            for event in events:
                collector.take(event)
            collector.take({"event": "done", "status": status, "reason": None})
            collector.write_tables()
            cell.finish("done", failures=list(collector.failures.values()))
        return collector, load_run(writer.path).cells[0]

    return feed


def host(name, *records, **fields):
    return {"event": "host", "host": name, "kind": "records", "records": list(records), **fields}


def posted(message, at):
    return ["posted", message, 0, 100, T0 + at]


def delivered(message, at, intact=True):
    return ["delivered", message, 0, 100, T0 + at, intact]


def fates(cell):
    return dict(zip(cell.messages.id, cell.messages.status, strict=True))


def test_times_count_from_the_start_of_traffic(told):
    _, cell = told(host("h1", posted(1, 0.5)), host("h2", delivered(1, 2.0)))
    (row,) = cell.messages.to_dict("records")
    assert (row["src"], row["dst"], row["bytes"]) == ("h1", "h2", 100)
    assert row["posted_s"] == pytest.approx(0.5)
    assert row["delivered_s"] == pytest.approx(2.0)
    assert row["ok"]


def test_a_changed_message_a_second_copy_and_one_that_nobody_sent_are_corrupt(told):
    _, cell = told(
        host("h1", posted(1, 0.1), posted(2, 0.2)),
        host("h2", delivered(1, 1.0, intact=False), delivered(2, 1.0), delivered(2, 1.1), delivered(77, 1.2)),
    )
    assert fates(cell) == {1: "corrupt", 2: "corrupt", 77: "corrupt"}


def test_a_message_that_a_later_one_overtook_for_good_is_lost(told):
    _, cell = told(host("h1", posted(1, 0.1), posted(2, 9.0)), host("h2", delivered(2, 11.0)))
    assert fates(cell) == {1: "lost", 2: "delivered"}


def test_messages_behind_one_that_still_arrives_were_only_waiting(told):
    _, cell = told(host("h1", posted(1, 0.1), posted(2, 0.2)), host("h2", delivered(1, 11.0)))
    assert fates(cell) == {1: "delivered", 2: "unfinished"}


def test_a_channel_that_delivers_nothing_after_the_end_has_lost_what_is_missing(told):
    _, cell = told(host("h1", posted(1, 0.1), posted(2, 0.2)), host("h2", delivered(1, 5.0)))
    assert fates(cell) == {1: "delivered", 2: "lost"}


def test_what_the_transport_gave_up_is_lost_and_what_the_user_cut_off_is_not(told):
    failed = ["failed", 2, "retry_exceeded", T0 + 4]
    _, cell = told(host("h1", posted(1, 0.1), posted(2, 0.2), failed), status="interrupted")
    assert fates(cell) == {1: "unfinished", 2: "lost"}


def test_a_failure_is_stored_with_its_deviation_and_its_end(told):
    cut = {"event": "failure", "failure": 0, "link": "a-b", "carrier": [False, False]}
    _, cell = told(
        {**cut, "up": False, "planned_s": 4.0, "applied": T0 + 4.002},
        {**cut, "up": True, "planned_s": 7.0, "applied": T0 + 7.001},
    )
    (failure,) = cell.record.failures
    assert failure.name == "a-b down"
    assert failure.deviation_s == pytest.approx(0.002)
    assert failure.until_s == pytest.approx(7.001)


def machine(second, late=0.001, share=0.1):
    fields = {"idle": 0.5, "hosts": {"h1": share}, "switches": 0.3, "late": [late, 9 * late]}
    return {"event": "machine", "at": T0 + second, **fields}


def test_a_machine_that_keeps_up_raises_no_doubt(told):
    collector, _ = told(*(machine(second) for second in range(1, 11)))
    assert collector.doubts() == []


def test_a_late_machine_and_a_busy_host_are_named(told):
    late, _ = told(*(machine(second, late=0.012 if second < 4 else 0.001) for second in range(1, 11)))
    (reason,) = late.doubts()
    assert "woke processes late in 3 of 10 s: a tenth of them by up to 12 ms" in reason
    busy, _ = told(*(machine(second, share=0.95) for second in range(1, 11)))
    (reason,) = busy.doubts()
    assert reason.startswith("h1 used more than 80%")


def test_a_link_that_carried_more_than_its_rate_makes_the_cell_invalid(told):
    def links(second, count):
        return {"event": "links", "at": T0 + second, "rows": [["a-b", "a>b", count, 1, 0, 0]]}

    collector, _ = told(links(0, 0), links(2, 1_250_000))
    assert collector.broken({"a-b": 5_000_000}) == []
    assert collector.broken({"a-b": 4_000_000}) == ["a-b a>b carried 125% of its rate"]
