"""What the core tells its caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["success", "retry_exceeded", "remote_access_error", "flushed"]


@dataclass(frozen=True, slots=True)
class WorkCompletion:
    """A posted operation has ended; with any status but ``success`` the queue pair is in ERROR.

    Attributes:
        qpn: local queue pair number.
        peer: name of the other host.
        wr_id: what the caller gave to ``post_write``.
        status: ``success`` (placed and acknowledged), ``retry_exceeded`` (timeouts or retransmissions used up),
            ``remote_access_error`` (the peer refused rkey or address), ``flushed`` (another operation failed).
        time_s: when.
    """

    qpn: int
    peer: str
    wr_id: int
    status: Status
    time_s: float


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """All bytes of a message are in memory. Messages may arrive in another order than they were posted in.

    Attributes:
        qpn: local queue pair number.
        peer: name of the host that wrote.
        msn: number of the message on its queue pair, from 0.
        address: where the message starts, in the address space of the registered regions.
        length: bytes.
        time_s: arrival of its last missing packet.
    """

    qpn: int
    peer: str
    msn: int
    address: int
    length: int
    time_s: float


@dataclass(frozen=True, slots=True)
class EvChanged:
    """An entropy value changed its state.

    Attributes:
        time_s: when.
        qpn: local queue pair number.
        peer: name of the other host.
        plane: plane, counted from 1.
        ev: the entropy value.
        before, after: names of states, for example ``GOOD`` and ``ASSUMED_BAD``.
        cause: ``loss``, ``timeout``, ``silent_plane``, ``always_skip`` or ``probes``. (A skipped EV makes no event.)
    """

    time_s: float
    qpn: int
    peer: str
    plane: int
    ev: int
    before: str
    after: str
    cause: str


Event = WorkCompletion | MessageArrived
