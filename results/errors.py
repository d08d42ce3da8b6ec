"""The one error this room raises for a user's files: it names the file."""

from __future__ import annotations

from pathlib import Path


class ResultError(Exception):
    """A result file is missing, damaged, of a newer version, or could not be written.

    Attributes:
        file: the file or directory at fault.
        message: what is wrong with it, in one line.
        hint: what the user can do about it, or an empty string.
    """

    def __init__(self, file: Path | str, message: str, hint: str = "") -> None:
        self.file = Path(file)
        self.message = " ".join(message.split())
        self.hint = hint
        super().__init__(f"{self.file}: {self.message}" + (f" ({hint})" if hint else ""))
