"""The controller as a process: says when it listens, ends when told to, dies with its parent, says what is wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.framework import NAMES, ROOT, FrameworkError, Usable, interpreter, load, usable
from controller.process import ControllerError, ControllerProcess

DEADLINE_S = 20.0
TOPOLOGY = "version: 1\nkind: leaf_spine\nleaves: 2\nspines: 1\nhosts_per_leaf: 1\n"


@pytest.fixture(scope="module")
def frameworks() -> dict[str, Usable]:
    return usable()


@pytest.fixture(params=NAMES)
def framework(request: pytest.FixtureRequest, frameworks: dict[str, Usable]) -> str:
    name: str = request.param
    found = frameworks[name]
    if not found.ok:
        pytest.skip(f"{name} cannot be used here: {found.detail}")
    return name


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    file = tmp_path / "topology.yaml"
    file.write_text(TOPOLOGY)
    return file


@pytest.fixture
def start(topology: Path, tmp_path: Path) -> Iterator[Callable[..., ControllerProcess]]:
    started: list[ControllerProcess] = []

    def begin(**options: object) -> ControllerProcess:
        settings = {"mode": "ecmp", "port": 0, "log": tmp_path / "controller.log", **options}
        controller = ControllerProcess(topology, **settings)  # type: ignore[arg-type]
        started.append(controller)
        controller.start()
        return controller

    yield begin
    for controller in started:
        controller.stop()


def block(folder: Path, monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Makes modules impossible to import for processes started from now on."""
    for module in modules:
        (folder / f"{module}.py").write_text(f"raise ImportError('{module} is blocked')\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return b"Z" in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2][:3]


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_it_listens_names_its_framework_and_version_and_ends_on_ctrl_c(
    start: Callable[..., ControllerProcess], framework: str, frameworks: dict[str, Usable]
) -> None:
    controller = start(framework=framework)
    event = controller.wait_listening(DEADLINE_S)
    assert event["detail"]["framework"] == framework
    assert event["detail"]["version"] == frameworks[framework].detail
    with socket.create_connection((event["detail"]["host"], event["detail"]["port"]), timeout=DEADLINE_S) as switch:
        assert switch.recv(1) == b"\x06", "the first byte of a hello is the OpenFlow version: 1.5 is 6"
    assert controller.pid is not None
    os.kill(controller.pid, signal.SIGINT)
    assert eventually(lambda: not controller.alive())
    assert (controller.events()[-1]["kind"], controller.events()) == ("stopped", [])


def test_stop_and_restart(start: Callable[..., ControllerProcess]) -> None:
    controller = start()
    controller.wait_listening(DEADLINE_S)
    first = controller.pid
    controller.restart()
    controller.wait_listening(DEADLINE_S)
    assert controller.pid not in (None, first)
    assert [event["kind"] for event in controller.events()] == ["listening", "stopped", "listening"]
    controller.stop()
    assert not controller.alive()
    controller.stop()


def test_it_works_without_eventlet(
    start: Callable[..., ControllerProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """eventlet is about to be abandoned; os-ken needs it no longer."""
    block(tmp_path, monkeypatch, "eventlet")
    assert start(framework="os-ken").wait_listening(DEADLINE_S)["name"].startswith("os-ken")


def test_the_controller_dies_with_its_parent(topology: Path, tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from controller.process import ControllerProcess
        log = Path({str(tmp_path)!r}) / "controller.log"
        controller = ControllerProcess(Path({str(topology)!r}), mode="single", port=0, log=log)
        controller.start()
        controller.wait_listening({DEADLINE_S})
        print(controller.pid, flush=True)
        time.sleep({DEADLINE_S})
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
        assert eventually(lambda: gone(pid))


def test_ctrl_c_at_the_terminal_is_left_to_whoever_started_it(start: Callable[..., ControllerProcess]) -> None:
    controller = start()
    assert controller.pid is not None
    assert os.getpgid(controller.pid) != os.getpgid(0)


def test_a_port_that_is_taken_is_an_error_with_its_number(start: Callable[..., ControllerProcess]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(ControllerError, match=f"cannot listen on 127.0.0.1:{number}: Address already in use"):
            start(port=number).wait_listening(DEADLINE_S)


def test_a_deadline_names_the_switches_that_are_missing(start: Callable[..., ControllerProcess]) -> None:
    controller = start()
    controller.wait_listening(DEADLINE_S)
    with pytest.raises(ControllerError, match=r"not ready after 0\.1 s: not connected: leaf1, leaf2, spine1"):
        controller.wait_ready(0.1)


def test_an_end_before_its_time_is_told_with_the_last_words(
    topology: Path, start: Callable[..., ControllerProcess]
) -> None:
    controller = start()
    controller.stop()
    topology.write_text("version: 1\nkind: torus\n")
    controller.start()
    with pytest.raises(ControllerError, match=r"has ended \(exit code 2\): .*unknown kind 'torus'"):
        controller.wait_listening(DEADLINE_S)


def test_without_a_usable_framework_the_reason_is_given(
    start: Callable[..., ControllerProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    block(tmp_path, monkeypatch, "os_ken", "ryu")
    with pytest.raises(ControllerError, match=r"no usable controller framework: os-ken: .*; ryu: .*blocked"):
        start(framework="auto").wait_listening(DEADLINE_S)


def test_unknown_frameworks_are_refused_by_name() -> None:
    with pytest.raises(FrameworkError, match=r"unknown controller framework 'pox' \(known: auto, os-ken, ryu\)"):
        load("pox")


def test_ryu_runs_in_its_own_environment_where_there_is_one() -> None:
    assert interpreter("os-ken") == Path(sys.executable)
    own = ROOT / ".venv-ryu" / "bin" / "python"
    assert interpreter("ryu") == (own if own.exists() else Path(sys.executable))
