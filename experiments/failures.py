"""The failure timeline: what the YAML asks for, as single actions in the order of time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.model import FailureModel


@dataclass(frozen=True)
class LinkAction:
    """Set a link up or down ``at_s`` seconds after traffic began. ``failure`` is the position in the YAML's list."""

    at_s: float
    link: str
    up: bool
    failure: int


def timeline(failures: Sequence[FailureModel]) -> tuple[LinkAction, ...]:
    """All actions, earliest first; a failure that lasts ``for`` some time ends with its own."""
    actions = []
    for number, failure in enumerate(failures):
        actions.append(LinkAction(failure.at, failure.link, failure.do == "up", number))
        if failure.do == "down" and failure.for_ is not None:
            actions.append(LinkAction(failure.at + failure.for_, failure.link, True, number))
    return tuple(sorted(actions, key=lambda action: action.at_s))


def failed_links(actions: Iterable[LinkAction], at_s: float) -> frozenset[str]:
    """Links that are down at a time, if every action takes effect when it should."""
    down: set[str] = set()
    for action in actions:
        if action.at_s <= at_s:
            (down.discard if action.up else down.add)(action.link)
    return frozenset(down)
