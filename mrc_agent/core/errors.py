"""What a caller can do wrong."""

from __future__ import annotations


class MrcError(ValueError):
    """The transport was used in a way it does not allow; the message says which."""
