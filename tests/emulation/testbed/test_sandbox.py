"""Whoever dies, by whatever signal: nothing of a sandbox outlives it, and nothing outside is touched."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from testbed.sandbox import Sandbox
from tests.support.machine import descendants, eventually, network_namespaces, processes

ROOT = Path(__file__).resolve().parents[3]
# Interfaces, an orphan in a session of its own that ignores signals, a private mount; then tell, then wait.
SCRIPT = """\
ip link add name keepsake type veth peer name keepsake2
mount -t tmpfs none /mnt
setsid sh -c 'trap "" TERM HUP INT; sleep 1000; : {mark}' &
echo '{{"event": "up"}}'
sleep 1000; : {mark}
"""
CALLER = """\
import sys
from pathlib import Path
from testbed.sandbox import Sandbox
with Sandbox(["sh", "-c", sys.argv[1]], Path(sys.argv[2])) as sandbox:
    for event in sandbox.events(deadline_s=60, wake_s=1):
        print(event, flush=True)
"""


@pytest.fixture
def caller(tmp_path):
    """A process that holds a sandbox, which is up; with its mark in the command lines of all that is inside."""
    mark = f"mark-{uuid.uuid4().hex}"
    command = [sys.executable, "-c", CALLER, SCRIPT.format(mark=mark), str(tmp_path / "log")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert b"up" in process.stdout.readline(), (tmp_path / "log").read_text()
    yield process, mark
    process.kill()
    process.wait()
    process.stdout.close()


def inside(process):
    """(outer, pid 1, command): the three processes of the sandbox that can be killed."""
    chain = []
    pid = process.pid
    for _ in range(3):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pid = int(children[0])
        chain.append(pid)
    return chain


@pytest.mark.parametrize("victim", ["caller", "outer", "pid 1", "command"])
def test_sigkill_of_anyone_takes_everything_with_it(caller, victim):
    process, mark = caller
    outer, pid_one, command = inside(process)
    net = str(Path(f"/proc/{command}/ns/net").readlink())
    assert net in network_namespaces()
    assert len(processes(mark)) >= 3
    os.kill({"caller": process.pid, "outer": outer, "pid 1": pid_one, "command": command}[victim], signal.SIGKILL)
    assert eventually(lambda: processes(mark) == [process.pid] or processes(mark) == [], 5.0)
    assert eventually(lambda: net not in network_namespaces(), 5.0)


def test_what_happens_inside_is_not_seen_outside(caller):
    interfaces = {path.name for path in Path("/sys/class/net").iterdir()}
    assert "keepsake" not in interfaces
    assert " /mnt tmpfs" not in Path("/proc/self/mounts").read_text()


def test_closing_returns_when_the_last_process_has_gone(tmp_path):
    mark = f"mark-{uuid.uuid4().hex}"
    with Sandbox(["sh", "-c", SCRIPT.format(mark=mark)], tmp_path / "log") as sandbox:
        event = next(event for event in sandbox.events(deadline_s=20, wake_s=1) if event)
        assert event == {"event": "up"}
        assert descendants(sandbox.pid)
        sandbox.close()
        assert processes(mark) == []


def test_a_command_that_hangs_is_ended_at_its_deadline(tmp_path):
    with Sandbox(["sleep", "1000"], tmp_path / "log") as sandbox:
        assert [event for event in sandbox.events(deadline_s=0.5, wake_s=0.1) if event] == []
        assert sandbox.timed_out


def test_the_commands_exit_code_arrives(tmp_path):
    with Sandbox(["sh", "-c", "exit 7"], tmp_path / "log") as sandbox:
        assert list(sandbox.events(deadline_s=20, wake_s=1)) == []
        assert sandbox.wait(5) == 7
