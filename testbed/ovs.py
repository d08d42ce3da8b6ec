"""Open vSwitch, one pair of daemons for each switch, in the switch's own network namespace.

Why a pair each: the userspace datapath's main loop looks at every port and every bridge it has whenever any packet
arrives, and runs on one core, so one daemon for a whole fabric makes each packet wait for all switches. Small daemons
look at a handful of ports each, run on all cores, and a switch can die alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from testbed.commands import run
from testbed.errors import CommandError, MachineLacks, TestbedError
from testbed.netns import in_network_of

RUN = Path("/run/openvswitch")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
START_DEADLINE_S = 10.0
COMMAND_TIMEOUT_S = 30


def kernel_datapath_available() -> bool:
    """Whether the kernel has Open vSwitch's module; it is loaded if it can be."""
    if Path("/sys/module/openvswitch").exists():
        return True
    try:
        run(["modprobe", "--quiet", "openvswitch"], timeout_s=10)
    except CommandError:
        return False
    return Path("/sys/module/openvswitch").exists()


def make_template(logs: Path) -> Path:
    """An empty database that every switch starts from. Raises MachineLacks, CommandError."""
    if not SCHEMA.exists():
        raise MachineLacks("Open vSwitch is not installed", "sudo apt install openvswitch-switch")
    template = logs / "template.db"
    template.unlink(missing_ok=True)
    run(["ovsdb-tool", "create", str(template), str(SCHEMA)])
    return template


class SwitchDaemons:
    """`ovsdb-server` and `ovs-vswitchd` of one switch, as children of this process.

    Args:
        name: the switch's name; its sockets are in /run/openvswitch/<name>.
        pid: a process in the switch's network namespace.
        logs: directory for log files.
    """

    def __init__(self, name: str, pid: int, logs: Path) -> None:
        self.name = name
        self.folder = RUN / name
        self._pid = pid
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make Open vSwitch's commands talk to this switch."""
        return {"OVS_RUNDIR": str(self.folder), "OVS_DBDIR": str(self.folder), "OVS_SYSCONFDIR": str(self.folder)}

    @property
    def database(self) -> str:
        """Where `ovs-vsctl --db` finds this switch."""
        return f"unix:{self.folder}/db.sock"

    @property
    def forwarder(self) -> int | None:
        """Process id of `ovs-vswitchd`."""
        process = self._running.get("ovs-vswitchd")
        return process.pid if process else None

    def start_database(self, template: Path) -> None:
        """Start `ovsdb-server` with an empty database; see `await_database`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        database = self.folder / "conf.db"
        shutil.copyfile(template, database)
        self._spawn("ovsdb-server", str(database), f"--remote=punix:{self.folder}/db.sock")

    def start_forwarder(self) -> None:
        """Start `ovs-vswitchd` once the database answers. Raises TestbedError."""
        self._await("ovsdb-server", self.folder / "db.sock")
        run(["ovs-vsctl", f"--db={self.database}", "--no-wait", "--timeout=10", "init"])
        self._spawn("ovs-vswitchd", self.database, f"--pidfile={self.folder}/ovs-vswitchd.pid")

    def await_forwarder(self) -> None:
        """Wait until `ovs-vswitchd` runs. Raises TestbedError."""
        self._await("ovs-vswitchd", self.folder / "ovs-vswitchd.pid")

    def _spawn(self, daemon: str, *arguments: str) -> None:
        log = self._logs / f"{self.name}.{daemon}.log"
        command = [daemon, *arguments, f"--log-file={log}", "-vconsole:off", "-vsyslog:off"]
        try:
            with in_network_of(self._pid):
                self._running[daemon] = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **self.environment},
                )
        except FileNotFoundError as error:
            raise MachineLacks(f"{daemon} is not installed", "sudo apt install openvswitch-switch") from error

    def _await(self, daemon: str, sign: Path) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while not sign.exists():
            dead = self.dead()
            if dead:
                raise TestbedError(dead)
            if time.monotonic() > deadline:
                raise TestbedError(f"{self.name}: {daemon}: no {sign} within {START_DEADLINE_S:g} s")
            time.sleep(0.002)

    def vsctl(self, arguments: Iterable[str]) -> subprocess.Popen[str]:
        """Begin an `ovs-vsctl` that waits until the switch has done it; see `finish`."""
        command = ["ovs-vsctl", f"--db={self.database}", f"--timeout={COMMAND_TIMEOUT_S}", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, command: subprocess.Popen[str]) -> str:
        """Standard output of a command that `vsctl` began. Raises CommandError."""
        out, err = command.communicate()
        if command.returncode != 0:
            raise CommandError(f"{self.name}: ovs-vsctl: exit code {command.returncode}: {err.strip()}")
        return out

    def dead(self) -> str | None:
        """Name and exit code of a daemon that has ended, or None while all run."""
        for daemon, process in self._running.items():
            if process.poll() is not None:
                return f"{self.name}: {daemon} ended with code {process.returncode}"
        return None
