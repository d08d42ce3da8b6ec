#!/usr/bin/env python3
"""The only entry point: ``./run.py COMMAND``, from any directory, by any Python from 3.8 on.

It makes sure that the project's own Python environment (``.venv``, made by ``setup.sh``) is there and up to date,
continues under that Python, and hands over to ``cli/``. It uses the standard library alone.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
SYSTEM_PYTHON = "/usr/bin/python3"  # the Python that the distribution's Mininet is installed for
NEEDS_SETUP = 3


def wanted_stamp():
    """What ``setup.sh`` writes to ``.venv/.setup-stamp``: its recipe's hash and the Python that it was made from."""
    recipe = (ROOT / name for name in ("setup.sh", "requirements.txt", "constraints.txt"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in recipe)).hexdigest()
    return [digest, os.path.realpath(SYSTEM_PYTHON)]


def is_set_up():
    """Whether the environment is there and current. Root also needs the system packages, so a stamp of
    ``setup.sh --python-only`` is enough for everyone else alone."""
    try:
        *made_from, extent = (VENV / ".setup-stamp").read_text().split()
    except (OSError, ValueError):
        return False
    enough = ("full",) if os.geteuid() == 0 else ("full", "python-only")
    return made_from == wanted_stamp() and extent in enough and (VENV / "bin" / "python").exists()


def environment():
    """The variables to continue with: no packages of the user's own before ours, and under sudo no compiled files
    that would belong to root in the user's work tree."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    kept.update(PYTHONPATH=str(ROOT), PYTHONNOUSERSITE="1")
    if os.geteuid() == 0 and int(kept.get("SUDO_UID") or 0) != 0:
        kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept


def main():
    if Path(sys.prefix).resolve() == VENV.resolve():
        from cli.main import main as command_line

        return command_line(sys.argv[1:])
    if not is_set_up():
        print("run.py: this machine is not set up yet, or the setup changed: running setup.sh", file=sys.stderr)
        # Standard output stays clean for --json.
        if subprocess.call(["bash", str(ROOT / "setup.sh")], stdout=sys.stderr):
            return NEEDS_SETUP
    python = str(VENV / "bin" / "python")
    sys.stdout.flush()
    os.execve(python, [python, str(ROOT / "run.py"), *sys.argv[1:]], environment())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(1)
