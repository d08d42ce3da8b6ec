"""Where a result comes from: software, versions and machine, for the manifest."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

from results.schema import Provenance

PACKAGES = (
    "jinja2",
    "matplotlib",
    "mininet",
    "networkx",
    "numpy",
    "os-ken",
    "pandas",
    "pyarrow",
    "pydantic",
    "pyroute2",
    "pyyaml",
    "scapy",
    "scipy",
)
ROOT = Path(__file__).resolve().parent.parent


def _first_line(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cpu() -> str | None:
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match.group(1) if match else platform.machine()


def _git() -> str | None:
    # Under sudo the checkout belongs to another user, which git refuses unless told that it is meant.
    git = ["git", "-c", f"safe.directory={ROOT}"]
    commit = _first_line([*git, "rev-parse", "HEAD"])
    if commit is None:
        return None
    changed = _first_line([*git, "status", "--porcelain", "--untracked-files=no"])
    return f"{commit}, with changes" if changed else commit


def provenance() -> Provenance:
    """Versions of everything a result depends on; None for what cannot be told."""
    packages = _packages()
    return Provenance(
        git=_git(),
        kernel=platform.release(),
        ovs=_first_line(["ovs-vsctl", "--version"]),
        mininet=packages.get("mininet"),
        python=platform.python_version(),
        packages=packages,
        cpu=_cpu(),
        cores=os.cpu_count(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )
