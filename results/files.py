"""Files that are either whole or absent, and that belong to the user who called sudo."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import IO

from results.errors import ResultError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_error(file: Path, error: OSError, kept: Path | None = None) -> ResultError:
    """The one error a user sees when a result could not be written."""
    reason = "the disk is full" if error.errno in _FULL else (error.strerror or str(error))
    hint = f"what was measured before is kept in {kept}" if kept else ""
    return ResultError(file, f"cannot be written: {reason}", hint)


def give_to_caller(path: Path) -> None:
    """Under sudo, hand a file or directory to the user who called it; otherwise do nothing."""
    if os.geteuid() != 0:
        return
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if not uid.isdigit():
        return
    try:
        os.chown(path, int(uid), int(gid) if gid.isdigit() else -1, follow_symlinks=False)
    except OSError as error:
        # File systems without owners (FAT, some network shares) refuse this; the result itself is fine.
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EINVAL):
            raise


def make_directories(directory: Path) -> None:
    """Create a directory and the parents that are missing, each handed to the caller of sudo.

    Raises:
        OSError: it cannot be created.
    """
    missing = []
    current = directory
    while not current.exists():
        missing.append(current)
        current = current.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        give_to_caller(path)


def write_atomically(file: Path, data: bytes | str) -> None:
    """Write ``file`` so that a reader, or a crash at any instant, sees the old content or the new one, never a part.

    Raises:
        OSError: it cannot be written; nothing of the attempt is left behind.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        give_to_caller(temporary)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(file.parent)


def hold_lock(file: Path) -> IO[bytes]:
    """Create ``file`` and lock it for as long as the returned stream is open and its process lives.

    The kernel drops the lock when the process dies, however it dies, so a killed run is never taken for a living one.

    Raises:
        OSError: it cannot be created or locked.
    """
    stream = file.open("wb")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        give_to_caller(file)
    except BaseException:
        stream.close()
        raise
    return stream


def is_locked(file: Path) -> bool:
    """True while another open stream holds the lock on ``file``. A missing file is not locked."""
    try:
        stream = file.open("rb")
    except OSError:
        return False
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            # Any other error means a file system without locks: a copy, which nobody is writing.
            return error.errno in (errno.EWOULDBLOCK, errno.EAGAIN)
    return False


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that cannot sync a directory
            raise
    finally:
        os.close(descriptor)
