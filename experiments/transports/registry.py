"""Every transport by name. A new one is a file in this folder and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.transports.base import HostSpec, Transport


@dataclass(frozen=True)
class TransportKind:
    """What the rest of the room knows of a transport.

    Attributes:
        routing: the controller's mode that it runs over unless the experiment says otherwise.
        options: names of the options that its YAML entry may carry.
        summary: one line for ``run.py list`` and error hints.
    """

    routing: str
    options: frozenset[str]
    summary: str
    load: Callable[[HostSpec], Transport]


def _mrc(host: HostSpec) -> Transport:
    from experiments.transports.mrc import MrcTransport

    return MrcTransport(host)


def _tcp(host: HostSpec) -> Transport:
    from experiments.transports.tcp import TcpTransport

    return TcpTransport(host)


TRANSPORTS = {
    "mrc": TransportKind(
        routing="disjoint",
        options=frozenset({"evs_per_path", "udp_port"}),
        summary="Multipath Reliable Connection: every packet on another path",
        load=_mrc,
    ),
    "tcp": TransportKind(
        routing="ecmp",
        options=frozenset({"congestion"}),
        summary="kernel TCP, one connection a channel, placed by hash",
        load=_tcp,
    ),
}


def create(kind: str, host: HostSpec) -> Transport:
    """The transport ``kind`` on a host. Raises KeyError, UnsupportedTransport."""
    return TRANSPORTS[kind].load(host)
