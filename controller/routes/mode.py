"""What a routing mode is. A new mode is a file that defines one :class:`Mode` and a line in ``routes/__init__.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controller.program import FlowRecord, GroupRecord
from controller.routes.reach import Reach
from topologies.graph import Fabric, Node


@dataclass(frozen=True)
class Context:
    """What a mode may look at.

    Attributes:
        reach: shortest paths on the fabric without the failed links.
        intact: the same on the whole fabric.
        seed: the experiment's seed for the switches' hash seeds; None: all switches hash alike.
    """

    fabric: Fabric
    reach: Reach
    intact: Reach
    seed: int | None


SwitchRoutes = Callable[[Node], tuple[list[FlowRecord], list[GroupRecord]]]


@dataclass(frozen=True)
class Mode:
    """A routing mode.

    Attributes:
        name: as in YAML.
        summary: one line for help and reports.
        reacts: True when the controller computes new routes after a link has failed; False when routes are static and
            the hosts avoid the failure.
        prepare: given the context, returns what to ask for each switch's unicast flows (to leaves other than itself)
            and groups. Whatever is common to the whole fabric is worked out once in ``prepare``.
    """

    name: str
    summary: str
    reacts: bool
    prepare: Callable[[Context], SwitchRoutes]
