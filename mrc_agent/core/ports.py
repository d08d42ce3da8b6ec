"""When a local port is free (MRC 1.0: an EV is chosen at transmit time and needs its port to be free).

A NIC knows; here each port is a clock that every packet moves on by its time on the wire. Data waits in the sender when
the clock is ahead of the present by more than an allowance, so the port's own queue stays short and acknowledgements,
which never wait here, do not stand behind data in it. The allowance keeps the port busy while this process is not
running.
"""

from __future__ import annotations

from mrc_agent.profile import WireProfile
from mrc_agent.wire.data import DATA_OVERHEAD_BYTES

ETHERNET_BYTES = 14
"""What a link carries besides the IPv6 packet, as shapers count it."""


class Ports:
    """The ports of a host, by plane (from 0).

    Attributes:
        free_at: when all that was given to the port so far has left it.
        seconds_per_byte: at the port's rate; 0 as long as no rate is known.
        allowance_s: how far `free_at` may lie ahead when data is added, on any of the ports.
        wake_at: when a sender that found a port busy should try again; infinite if none did.
    """

    def __init__(self, planes: int, profile: WireProfile) -> None:
        self.free_at = [0.0] * planes
        self.seconds_per_byte = [0.0] * planes
        self.allowance_s = profile.port_allowance_s
        self._allowance_bytes = profile.port_allowance_packets * (profile.payload_bytes + DATA_OVERHEAD_BYTES)
        self.wake_at = float("inf")

    def learn_rate(self, plane: int, rate_bps: float) -> None:
        """A peer is reached at this rate; the port is at least as fast."""
        if rate_bps > 0:
            known = self.seconds_per_byte[plane]
            self.seconds_per_byte[plane] = min(known, 8 / rate_bps) if known else 8 / rate_bps
            self.allowance_s = max(self.allowance_s, self._allowance_bytes * self.seconds_per_byte[plane])

    def charge(self, plane: int, size: int, now: float) -> None:
        """A packet of `size` bytes, IPv6 header included, was given to the port."""
        time_s = (size + ETHERNET_BYTES) * self.seconds_per_byte[plane]
        free_at = self.free_at[plane]
        self.free_at[plane] = (free_at if free_at > now else now) + time_s

    def busy(self, plane: int) -> None:
        """A sender found the port busy: wake it when half of the allowance is used up."""
        self.wake_at = min(self.wake_at, self.free_at[plane] - self.allowance_s / 2)
