"""``run.py clean``: leftovers, of which there should be none."""

from __future__ import annotations

from cli.console import say
from testbed.leftovers import remove_leftovers


def command() -> None:
    """Remove scratch folders of runs that have died. Networks need no cleaning: they end with their run."""
    removed = remove_leftovers()
    for item in removed:
        print(f"removed {item}")
    if not removed:
        say("nothing to clean")
