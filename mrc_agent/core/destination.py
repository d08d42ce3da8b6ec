"""What the queue pairs to one peer share: addresses, the congestion window, the round trips of the planes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mrc_agent.core.errors import MrcError
from mrc_agent.core.nscc import Nscc
from mrc_agent.core.paths import PlaneTimes
from mrc_agent.profile import Profile
from mrc_agent.wire.data import DATA_OVERHEAD_BYTES


@dataclass(frozen=True)
class Peer:
    """Another host, as the fabric knows it. Planes are counted from 1 here.

    Attributes:
        name: unique name of the host.
        addresses: IPv6 address by plane.
        evs: by plane, the EVs that reach it (the universe: active ones and backups), opaque 32-bit values.
        base_rtt_s: round trip of a full packet and its SACK through an idle fabric.
        rates_bps: rate by plane of the slower of the two host ports.
    """

    name: str
    addresses: Mapping[int, str]
    evs: Mapping[int, tuple[int, ...]]
    base_rtt_s: float
    rates_bps: Mapping[int, int]


class Destination:
    """Shared state of all queue pairs to one peer.

    Attributes:
        addresses: packed IPv6 address by plane (from 0), empty where the peer has none.
        evs: EV universe by plane (from 0).
        nscc: the window.
        times: round trips by plane.
        queue_pairs: how many share the window.
    """

    def __init__(self, peer: Peer, planes: Sequence[int], profile: Profile, port_delay_s: float) -> None:
        """`planes`: numbers of the local planes; `port_delay_s`: allowance of the local ports.

        Raises MrcError when the peer's description is not usable.
        """
        if peer.base_rtt_s <= 0:
            raise MrcError(f"peer {peer.name}: base_rtt_s must be positive, not {peer.base_rtt_s}")
        try:
            self.addresses = [
                ipaddress.IPv6Address(peer.addresses[plane]).packed if plane in peer.addresses else b""
                for plane in planes
            ]
        except ValueError as error:
            raise MrcError(f"peer {peer.name}: {error}") from None
        self.evs = [
            tuple(peer.evs.get(plane, ())) if address else ()
            for plane, address in zip(planes, self.addresses, strict=True)
        ]
        rate_bps = sum(peer.rates_bps.get(plane, 0) for plane, evs in zip(planes, self.evs, strict=True) if evs)
        if rate_bps <= 0:
            raise MrcError(f"peer {peer.name}: no plane with an address, EVs and a rate")
        self.peer = peer
        self.name = peer.name
        self.base_rtt_s = peer.base_rtt_s
        self.nscc = Nscc(
            profile.nscc,
            base_rtt_s=peer.base_rtt_s,
            rate_bps=rate_bps,
            packet_bytes=profile.wire.payload_bytes + DATA_OVERHEAD_BYTES,
            port_delay_s=port_delay_s,
        )
        self.times = PlaneTimes(len(planes), peer.base_rtt_s, self.nscc.max_cwnd * 8 / rate_bps, profile.reliability)
        self.queue_pairs = 0
