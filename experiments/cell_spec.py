"""What a cell's inside is told, as one JSON document: everything that is needed to run it, nothing that is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from experiments.failures import LinkAction
from experiments.workloads.base import Channel, Message, Stream, Workload

BIN_S = 0.05
"""Length of a goodput bin (recovery times are defined on samples of at most 50 ms)."""


@dataclass(frozen=True)
class CellSpec:
    """One cell: one transport, one repetition, a fresh network.

    Attributes:
        topology: path of the resolved topology.
        logs: directory for the log files of daemons, controller and hosts.
        drain_s: how long, after the end, messages under way may still arrive.
    """

    topology: str
    logs: str
    transport: str
    options: dict[str, Any]
    routing: str
    framework: str
    convergence_s: float
    datapath: str | None
    seed: int
    duration_s: float
    drain_s: float
    workload: Workload
    actions: tuple[LinkAction, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """A JSON-able document."""
        return asdict(self)


def cell_spec(document: dict[str, Any]) -> CellSpec:
    """The inverse of `CellSpec.to_json`, after a round trip through JSON."""
    work = document["workload"]
    workload = Workload(
        channels=tuple(Channel(**item) for item in work["channels"]),
        messages=tuple(Message(**{**item, "after": tuple(item["after"])}) for item in work["messages"]),
        streams=tuple(Stream(**item) for item in work["streams"]),
    )
    actions = tuple(LinkAction(**item) for item in document["actions"])
    return CellSpec(**{**document, "workload": workload, "actions": actions})
