"""What the runner tells a host's driver, as one JSON document."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from experiments.transports.base import ChannelSpec, HostSpec, PeerSpec, PlanePort
from experiments.workloads.base import Message, Stream


@dataclass(frozen=True)
class DriverSpec:
    """One host's part of a cell.

    Attributes:
        transport: the transport's kind.
        bin_s: length of a goodput bin, in seconds.
        payload_seed: seed of the messages' bytes, the same on all hosts.
    """

    transport: str
    host: HostSpec
    messages: tuple[Message, ...]
    streams: tuple[Stream, ...]
    bin_s: float
    payload_seed: int

    def to_json(self) -> dict[str, Any]:
        """A JSON-able document."""
        return asdict(self)


def driver_spec(document: dict[str, Any]) -> DriverSpec:
    """The inverse of `DriverSpec.to_json`, after a round trip through JSON (whose keys are strings)."""
    host = document["host"]
    peers = {
        name: PeerSpec(
            name=name,
            addresses={int(plane): address for plane, address in peer["addresses"].items()},
            evs={int(plane): tuple(evs) for plane, evs in peer["evs"].items()},
            base_rtt_s=peer["base_rtt_s"],
        )
        for name, peer in host["peers"].items()
    }
    return DriverSpec(
        transport=document["transport"],
        host=HostSpec(
            name=host["name"],
            seed=host["seed"],
            ports=tuple(PlanePort(**port) for port in host["ports"]),
            peers=peers,
            sends=tuple(ChannelSpec(**channel) for channel in host["sends"]),
            receives=tuple(ChannelSpec(**channel) for channel in host["receives"]),
            payload_bytes=host["payload_bytes"],
            options=host["options"],
        ),
        messages=tuple(Message(**{**item, "after": tuple(item["after"])}) for item in document["messages"]),
        streams=tuple(Stream(**item) for item in document["streams"]),
        bin_s=document["bin_s"],
        payload_seed=document["payload_seed"],
    )
