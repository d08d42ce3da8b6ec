"""What a run that was killed can leave: its scratch folder. Networks, processes and mounts end with it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "mrc-testbed-"
LOCK = ".lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the files of one cell. It holds a lock while its owner lives, which tells it from a leftover."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (path / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def remove_leftovers() -> list[Path]:
    """Remove the scratch folders, of this user, whose owners have died; returns what was removed."""
    removed = []
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        lock = path / LOCK
        if path.is_symlink() or not lock.is_file() or path.stat().st_uid != os.geteuid():
            continue
        with lock.open("r+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed
