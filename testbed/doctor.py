"""What this machine can do, and the command that helps where it cannot.

Each check is a function that returns a Finding and changes nothing on the machine; what needs a network namespace is
tried in one that is thrown away.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controller.framework import usable
from testbed.commands import run
from testbed.errors import CommandError
from testbed.ovs import kernel_datapath_available

SMALLEST_OVS = (2, 13)
SMALLEST_KERNEL = (5, 6)
FRAMEWORK_FIXES = {"ryu": "sudo ./setup.sh --with-ryu"}


@dataclass(frozen=True)
class Finding:
    """One feature.

    Attributes:
        ok: whether it is there.
        detail: version, or what is missing and what that means.
        fix: a command that helps, or empty.
        needed: whether nothing can be run without it; the others have a named substitute or are optional.
    """

    ok: bool
    detail: str
    fix: str = ""
    needed: bool = False


def _version_line(*command: str) -> str | None:
    try:
        return run(command, timeout_s=5).strip().splitlines()[0]
    except (CommandError, IndexError):
        return None


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else (0, 0)


def _root() -> Finding:
    ok = os.geteuid() == 0
    return Finding(ok, "running as root" if ok else "making networks needs root", "" if ok else "sudo ./run.py", True)


def _python() -> Finding:
    version = sys.version_info
    ok = version[:2] >= (3, 10)
    return Finding(ok, f"Python {platform.python_version()}", "" if ok else "use Python 3.10 or newer", True)


def _mininet() -> Finding:
    if importlib.util.find_spec("mininet") is None:
        return Finding(False, f"{sys.executable} cannot import Mininet", "sudo ./setup.sh", True)
    try:
        version = importlib.metadata.version("mininet")
    except importlib.metadata.PackageNotFoundError:
        version = "of unknown version"
    if shutil.which("mnexec") is None:
        return Finding(False, f"Mininet {version}, but no mnexec", "sudo apt install mininet", True)
    return Finding(True, f"Mininet {version}", needed=True)


def _open_vswitch() -> Finding:
    line = _version_line("ovs-vswitchd", "--version")
    if line is None:
        return Finding(False, "Open vSwitch is not installed", "sudo apt install openvswitch-switch", True)
    ok = _numbers(line) >= SMALLEST_OVS
    return Finding(ok, line, "" if ok else "install Open vSwitch 2.13 or newer", True)


def _kernel() -> Finding:
    ok = _numbers(platform.release()) >= SMALLEST_KERNEL
    return Finding(ok, f"Linux {platform.release()}", "" if ok else "install Linux 5.6 or newer", True)


def _kernel_datapath() -> Finding:
    if kernel_datapath_available():
        return Finding(True, "the kernel's openvswitch module is there")
    return Finding(
        False,
        "no openvswitch module: Open vSwitch forwards in user space, which is slower",
        "sudo modprobe openvswitch (if your kernel has it)",
    )


def _in_namespace(script: str) -> str | None:
    """Run a shell script in a throw-away network namespace; None when it succeeds, else its complaint."""
    command = ["unshare", "--net", "sh", "-ec", script]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]


def _namespaces() -> Finding:
    complaint = _in_namespace("ip link set lo up")
    if complaint:
        return Finding(False, f"network namespaces cannot be made: {complaint}", "run as root", True)
    return Finding(True, "network namespaces can be made", needed=True)


def _devices() -> Finding:
    """Open vSwitch in user space needs /dev/net/tun, Mininet a pseudo-terminal for each node."""
    if not Path("/dev/net/tun").exists():
        return Finding(False, "no /dev/net/tun, which Open vSwitch needs", "sudo modprobe tun", True)
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return Finding(False, f"no pseudo-terminals: {error.strerror}", "sudo mount -t devpts devpts /dev/pts", True)
    return Finding(True, "/dev/net/tun and pseudo-terminals are there", needed=True)


def _qdisc(name: str, arguments: str, missing: str, needed: bool = False) -> Finding:
    complaint = _in_namespace(f"ip link add v0 type veth peer name v1; tc qdisc add dev v0 root {arguments}")
    if complaint is None:
        return Finding(True, f"tc {name} works", needed=needed)
    fix = f"sudo modprobe sch_{name} (if your kernel has it)"
    return Finding(False, f"no {name} ({complaint}): {missing}", fix, needed)


def _htb() -> Finding:
    return _qdisc("htb", "htb default 1", "link rates cannot be set", needed=True)


def _netem() -> Finding:
    return _qdisc("netem", "netem limit 10", "links with delay or loss are refused")


def _congestion_controls() -> Finding:
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    names = path.read_text().split() if path.exists() else []
    ok = "cubic" in names
    return Finding(ok, f"TCP congestion controls: {', '.join(names)}", "" if ok else "sudo modprobe tcp_cubic")


def _controllers() -> dict[str, Finding]:
    findings = {}
    for name, framework in usable().items():
        fix = "" if framework.ok else FRAMEWORK_FIXES.get(name, "sudo ./setup.sh")
        detail = f"{name} {framework.detail}" if framework.ok else framework.detail
        findings[f"controller {name}"] = Finding(framework.ok, detail, fix)
    return findings


def _network_managers() -> Finding:
    found = []
    for process in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = process.read_text().strip()
        except OSError:
            continue
        if name in ("NetworkManager", "systemd-network"):
            found.append(name)
    if found:
        return Finding(True, f"{', '.join(sorted(set(found)))} runs; it does not see a run's namespaces")
    return Finding(True, "nothing else configures interfaces")


def _processors() -> Finding:
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]
    ok = cores >= 2 and load < cores
    return Finding(ok, f"{cores} cores, load {load:.2f}", "" if ok else "end other programs, or lower the link rates")


CHECKS: dict[str, Callable[[], Finding]] = {
    "root": _root,
    "python": _python,
    "kernel": _kernel,
    "mininet": _mininet,
    "open vswitch": _open_vswitch,
    "namespaces": _namespaces,
    "devices": _devices,
    "htb": _htb,
    "kernel datapath": _kernel_datapath,
    "netem": _netem,
    "tcp": _congestion_controls,
    "network managers": _network_managers,
    "processors": _processors,
}


def examine() -> dict[str, Finding]:
    """Every check, by name."""
    findings = {name: check() for name, check in CHECKS.items()}
    frameworks = _controllers()
    if not any(finding.ok for finding in frameworks.values()):
        frameworks = {name: Finding(False, finding.detail, finding.fix, True) for name, finding in frameworks.items()}
    return {**findings, **frameworks}


def able(findings: dict[str, Finding]) -> bool:
    """Whether experiments can be run here."""
    return all(finding.ok for finding in findings.values() if finding.needed)
