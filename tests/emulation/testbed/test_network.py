"""The network that is built is the one that was described."""

import json
import sys
from pathlib import Path

import pytest

from testbed.doctor import examine
from testbed.sandbox import Sandbox

LAB = Path(__file__).with_name("network_lab.py")
SMALL = "version: 1\nkind: leaf_spine\nleaves: 2\nspines: 1\nhosts_per_leaf: 1\n"


@pytest.fixture
def inside(tmp_path):
    """Run an action of network_lab.py on a topology; what it told."""

    def run(action, topology):
        file = tmp_path / "topology.yaml"
        file.write_text(topology)
        log = tmp_path / "log"
        with Sandbox([sys.executable, str(LAB), action, str(file), str(tmp_path)], log) as sandbox:
            told = [event for event in sandbox.events(deadline_s=120, wake_s=1) if event]
            code = sandbox.wait(10)
        assert code == 0, log.read_text() + json.dumps(told)
        return told

    return run


def test_any_rate_from_1_mbit_to_10_gbit_is_set_at_both_ends_of_every_link(inside):
    told = inside(
        "rates",
        SMALL + "links:\n  host: {rate: 1 Mbit/s}\n  fabric: {rate: 10 Gbit/s}\n"
        "  overrides: {leaf1-spine1: {rate: 1500 Mbit/s}}\n",
    )
    rows = [event for event in told if "interface" in event]
    assert len(rows) == 8
    assert {row["wanted"] for row in rows} == {1_000_000, 1_500_000_000, 10_000_000_000}
    assert all(row["applied"] == row["wanted"] for row in rows)


@pytest.mark.parametrize("action", ["rates", "disjoint"])
def test_every_pair_reaches_each_other_in_every_plane(inside, action):
    planes = "version: 1\nkind: multi_plane\nplanes: 3\nleaves: 2\nspines: 2\nhosts_per_leaf: 2\n"
    assert inside(action, planes)[0]["pairs"] == 3 * 4 * 3


def test_a_cut_is_seen_by_both_interfaces_and_the_switch_and_ends_without_a_trace(inside):
    told = inside("cut_link", SMALL)
    down = next(event for event in told if "down" in event)
    assert down["carrier"] == [False, False]
    assert set(down["ovs"].values()) == {"down"}
    missing = next(event for event in told if "missing" in event)
    assert sorted(missing["missing"]) == [["h1", "h2", 1], ["h2", "h1", 1]]
    assert "h1 -> h2 in plane 1" in missing["message"]
    assert next(event for event in told if "up" in event)["carrier"] == [True, True]
    assert told[-1] == {"pairs": 2}


def test_packets_are_counted_on_the_links_that_they_cross_and_nowhere_else(inside):
    told = inside("counters", SMALL.replace("spines: 1", "spines: 2"))
    assert next(event for event in told if "ping" in event)["ping"] == 0
    sent = told[-1]["sent"]
    crossed = {way: count for way, count in sent.items() if count >= 100}
    assert sum(way.startswith("h1-leaf1") for way in crossed) == 2  # there and back
    assert len(crossed) == 8
    assert all(count < 10 for way, count in sent.items() if way not in crossed)


def test_delay_without_netem_is_refused_by_name_and_with_it_is_set(inside):
    told = inside("rates", SMALL + "links: {default: {delay: 1 ms}}\n")
    if examine()["netem"].ok:
        assert told[0]["pairs"] == 2
    else:
        assert told[0]["error"] == "MachineLacks"
        assert "netem" in told[0]["message"]
