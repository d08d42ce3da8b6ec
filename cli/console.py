"""What the commands share: exit codes, the error that ends a command, JSON output, root and Mininet checks."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

DONE = 0
FAILED = 1
BAD_INPUT = 2
MACHINE_LACKS = 3


class CommandError(Exception):
    """Ends a command with one message for the user and no traceback.

    Attributes:
        code: the exit code: FAILED, BAD_INPUT or MACHINE_LACKS.
    """

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def say(message: str) -> None:
    """Tells the user something on standard error, so that standard output holds results alone."""
    print(message, file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """Prints one JSON document on standard output; not-a-number becomes an error, never invalid JSON."""
    print(json.dumps(document, indent=2, allow_nan=False))


def require_root(command: str, why: str) -> None:
    """Raises CommandError unless this is root. ``command`` is what follows ``run.py`` on the user's command line."""
    if os.geteuid() != 0:
        raise CommandError(f"{why}, which needs root; type: sudo ./run.py {command}", MACHINE_LACKS)


def require_mininet() -> None:
    """Raises CommandError, naming a Python that can, when this Python cannot import Mininet."""
    if importlib.util.find_spec("mininet") is not None:
        return
    for python in (str(ROOT / ".venv" / "bin" / "python"), "/usr/bin/python3"):
        if imports_mininet(python):
            fix = f"{python} can: start with sudo ./run.py, which uses it"
            break
    else:
        fix = "nor can another one here; sudo ./setup.sh installs it"
    raise CommandError(f"this Python ({sys.executable}) cannot import Mininet; {fix}", MACHINE_LACKS)


def imports_mininet(python: str) -> bool:
    """Whether the Python at this path can import Mininet. False also when there is no such Python."""
    try:
        # From the root directory: a folder of the user's that is named mininet must not answer for it.
        found = subprocess.run([python, "-c", "import mininet"], cwd="/", capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0


def give_to_caller(*paths: Path) -> None:
    """Under sudo, makes files and folders (with all that is in them) belong to who called sudo; else does nothing."""
    user = int(os.environ.get("SUDO_UID") or 0)
    if os.geteuid() != 0 or user == 0:
        return
    group = int(os.environ.get("SUDO_GID") or user)
    for path in paths:
        if not path.is_symlink() and path.is_dir():
            for inner in path.rglob("*"):
                os.chown(inner, user, group, follow_symlinks=False)
        if path.exists():
            os.chown(path, user, group, follow_symlinks=False)
