"""Whole runs: real packets, a cut link, and everything that can go wrong in the middle."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from results.reader import load_run
from tests.support.machine import descendants, eventually, processes, snapshot

ROOT = Path(__file__).resolve().parents[3]
FABRIC = "{version: 1, kind: multi_plane, planes: 2, leaves: 2, spines: 2, hosts_per_leaf: 1}"
EXPERIMENT = """\
version: 1
name: small
topology: %s
transports: [%s]
workload: {kind: permutation, message: 200 KB}
duration: %s
warmup: 500 ms
convergence: 100 ms
failures:
  - {at: 1500 ms, link: p1.leaf1-p1.spine1, do: down, for: 1 s}
"""
TIME_LIMIT_S = 120


class Started:
    """A run in a process of its own."""

    def __init__(self, folder, transports="tcp", duration="4 s", extra=()):
        self.root = folder / "runs"
        file = folder / "small.yaml"
        file.write_text(EXPERIMENT % (FABRIC, transports, duration))
        command = [sys.executable, str(ROOT / "run.py"), "run", str(file), "--out", str(self.root), *extra]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, start_new_session=True
        )

    def inside(self, *words):
        """Processes of this run whose command line holds all words."""
        return sorted(set(processes(*words)) & set(descendants(self.process.pid)))

    def traffic(self):
        """Wait until a message has been posted (the drivers' streams are under way)."""
        assert eventually(lambda: len(self.inside("-m experiments.driver")) >= 2, 60.0), self.end()

    def end(self):
        """(exit code, standard output, standard error)."""
        out, err = self.process.communicate(timeout=TIME_LIMIT_S)
        return self.process.returncode, out, err

    def result(self):
        """The run, read back from its files."""
        (path,) = self.root.iterdir()
        return load_run(path)


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(**keywords):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        run = Started(folder, **keywords)
        started.append(run)
        return run

    before = snapshot()
    yield begin
    for run in started:
        run.process.kill()
        run.process.communicate()
    assert eventually(lambda: snapshot() == before, 10.0), (before, snapshot())


@pytest.mark.parametrize("transport", ["tcp", "mrc"])
def test_every_message_arrives_intact_though_a_link_is_cut(start, transport):
    run = start(transports=transport, extra=["--json"])
    code, out, err = run.end()
    assert code == 0, err
    (cell,) = run.result().cells
    assert cell.record.status == "done"
    assert set(cell.messages.status) == {"delivered"}
    assert cell.messages.ok.all()
    assert len(cell.messages) >= 4
    document = json.loads(out)
    assert document["cells"][0]["transport"] == transport
    assert document["cells"][0]["lost_messages"] == document["cells"][0]["corrupt_messages"] == 0


def test_interface_switch_and_controller_see_the_cut_alike(start):
    run = start()
    assert run.end()[0] == 0
    (cell,) = run.result().cells
    seen = [(event.source, event.kind) for event in cell.events if event.t_s >= 0]
    assert ("failure", "link_down") in seen
    assert ("failure", "link_up") in seen
    down = next(event for event in cell.events if event.kind == "link_down")
    assert down.detail["carrier"] == [False, False]
    state = next(event for event in cell.events if event.source == "ovs")
    assert set(state.detail.values()) == {"down"}
    ports = [event for event in cell.events if event.kind == "port_down"]
    assert {event.name.split(":")[0] for event in ports} == {"p1.leaf1", "p1.spine1"}
    assert [event.kind for event in cell.events if event.kind == "reroute"] == ["reroute", "reroute"]
    (failure,) = cell.record.failures
    assert failure.planned_s == 1.5
    assert failure.until_s > failure.at_s >= 1.5


def test_two_runs_at_once_do_not_meet(start):
    first, second = start(), start()
    assert first.end()[0] == 0
    assert second.end()[0] == 0
    for run in (first, second):
        assert set(run.result().cells[0].messages.status) == {"delivered"}


def test_ctrl_c_keeps_what_was_measured(start):
    run = start(duration="60 s")
    run.traffic()
    assert eventually(lambda: any(run.root.glob("*/cells/*/events.jsonl")), 30)
    events = next(run.root.glob("*/cells/*/events.jsonl"))
    assert eventually(lambda: "link_down" in events.read_text(), 30)
    run.process.send_signal(signal.SIGINT)
    code, _, err = run.end()
    assert code == 1
    assert "Traceback" not in err
    result = run.result()
    assert result.manifest.status == "interrupted"
    (cell,) = result.cells
    assert cell.record.status == "interrupted"
    assert (cell.messages.status == "delivered").sum() > 0
    assert len(cell.goodput) > 0


def test_sigkill_leaves_nothing_and_the_next_run_starts(start):
    run = start(duration="60 s")
    run.traffic()
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.communicate()
    assert eventually(lambda: processes(str(run.root)) == [] and processes("ovs-vswitchd") == [], 5.0)
    assert load_run(next(run.root.iterdir())).manifest.status in ("running", "interrupted")
    subprocess.run([sys.executable, str(ROOT / "run.py"), "clean"], check=True, capture_output=True)
    assert start().end()[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [(("-m experiments.driver",), "its driver"), (("ovs-vswitchd", "unix:"), "ovs-vswitchd ended")],
)
def test_what_dies_inside_is_named_and_the_rest_is_kept(start, words, told):
    run = start(duration="60 s")
    run.traffic()
    os.kill(run.inside(*words)[-1], signal.SIGKILL)
    code, _, err = run.end()
    assert code == 1
    assert "Traceback" not in err
    (cell,) = run.result().cells
    assert cell.record.status == "failed"
    assert told in cell.record.error
    assert list((cell.path / "logs").glob("*.log"))


def test_a_controller_that_dies_is_on_the_timeline_and_traffic_goes_on(start):
    run = start(duration="6 s")
    run.traffic()
    os.kill(run.inside("controller.launcher")[-1], signal.SIGKILL)
    code, _, err = run.end()
    assert code == 0, err
    (cell,) = run.result().cells
    kinds = [event.kind for event in cell.events if event.source == "controller"]
    assert "died" in kinds
    assert "restarted" in kinds
    assert kinds.count("ready") == 2
    assert set(cell.messages.status) == {"delivered"}


def test_a_foreign_bridge_namespace_file_and_ping_survive(start, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.write_text("mine")
    script = "ip link set lo up; ip link add p1.leaf1 type bridge; exec ping -i 0.2 127.0.0.1"
    ping = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert "PING" in ping.stdout.readline()
        run = start(duration="60 s")
        run.traffic()
        os.kill(run.process.pid, signal.SIGKILL)
        assert start(duration="3 s").end()[0] == 0
        assert ping.poll() is None
        shown = subprocess.run(
            ["nsenter", "-t", str(ping.pid), "-n", "ip", "link", "show", "p1.leaf1"], capture_output=True, check=True
        )
        assert b"p1.leaf1" in shown.stdout
        assert foreign.read_text() == "mine"
    finally:
        ping.kill()
        ping.communicate()
