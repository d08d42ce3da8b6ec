"""Open vSwitch daemons of the run's own: database, switch and sockets all in the sandbox's private /run."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from testbed.commands import run
from testbed.errors import CommandError, MachineLacks, TestbedError

RUN = Path("/run/openvswitch")
DATABASE = RUN / "conf.db"
SOCKET = RUN / "db.sock"
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
START_DEADLINE_S = 10.0


def kernel_datapath_available() -> bool:
    """Whether the kernel has Open vSwitch's module; it is loaded if it can be."""
    if Path("/sys/module/openvswitch").exists():
        return True
    try:
        run(["modprobe", "--quiet", "openvswitch"], timeout_s=10)
    except CommandError:
        return False
    return Path("/sys/module/openvswitch").exists()


class OpenVSwitch:
    """`ovsdb-server` and `ovs-vswitchd`, as children of this process.

    Args:
        logs: directory for their log files.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.database: subprocess.Popen[bytes] | None = None
        self.switch: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start both daemons and wait until each answers.

        Raises:
            MachineLacks: Open vSwitch is not installed.
            TestbedError: a daemon ended or its socket did not appear within 10 s.
        """
        if not SCHEMA.exists():
            raise MachineLacks("Open vSwitch is not installed", "sudo apt install openvswitch-switch")
        run(["ovsdb-tool", "create", str(DATABASE), str(SCHEMA)])
        self.database = self._spawn("ovsdb-server", str(DATABASE), f"--remote=punix:{SOCKET}")
        self._await(self.database, "ovsdb-server", SOCKET)
        run(["ovs-vsctl", "--no-wait", "--timeout=10", "init"])
        self.switch = self._spawn("ovs-vswitchd", f"unix:{SOCKET}", "--pidfile")
        self._await(self.switch, "ovs-vswitchd", RUN / "ovs-vswitchd.pid")

    def _spawn(self, daemon: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self._logs / f"{daemon}.log"
        command = [daemon, *arguments, f"--log-file={log}", "-vconsole:off", "-vsyslog:off"]
        try:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        except FileNotFoundError as error:
            raise MachineLacks(f"{daemon} is not installed", "sudo apt install openvswitch-switch") from error

    def _await(self, process: subprocess.Popen[bytes], daemon: str, sign: Path) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while not sign.exists():
            if process.poll() is not None:
                raise TestbedError(f"{daemon} ended with code {process.returncode}; see {self._logs}/{daemon}.log")
            if time.monotonic() > deadline:
                raise TestbedError(f"{daemon}: {sign} did not appear within {START_DEADLINE_S:g} s")
            time.sleep(0.005)

    def dead(self) -> str | None:
        """Name and exit code of a daemon that has ended, or None while both run."""
        for name, process in (("ovsdb-server", self.database), ("ovs-vswitchd", self.switch)):
            if process is not None and process.poll() is not None:
                return f"{name} ended with code {process.returncode}"
        return None
