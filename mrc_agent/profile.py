"""Every constant of the transport, in frozen profiles: one field, one unit, one default, one source.

Times that scale with the network are given in base round-trip times ("rtts"), sizes in bandwidth-delay products
("bdp"), so one profile fits a 15 ms emulated fabric and a 15 us real one. ``describe`` lists all fields as rows.

"Choice" as a source means that no published text fixes the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def constant(default: T, unit: str, source: str) -> T:
    """A profile field that carries its unit and source as metadata."""
    return field(default=default, metadata={"unit": unit, "source": source})


@dataclass(frozen=True)
class WireProfile:
    """How packets look."""

    payload_bytes: int = constant(4096, "bytes", "MRC verbs API: MTU 256 to 4096, default 4096")
    udp_port: int = constant(4791, "port", "RoCEv2; readers of the specification disagree (4791 or 4971)")
    icrc: bool = constant(True, "on or off", "MRC 1.0 section 7.5; here CRC32 over BTH to payload")
    timestamp_unit_s: float = constant(16e-6, "seconds", "Choice: TSETH with tsr=1; 16 bits wrap after 1.05 s")
    port_allowance_s: float = constant(0.015, "seconds", "Choice: work given to a port in advance, see core/ports.py")
    port_allowance_packets: float = constant(4.0, "packets", "Choice: the same at low rates; the larger one counts")
    coalesce_s: float = constant(
        0.002, "seconds", "Choice: least time between two passes of a host agent that has input"
    )
    dscp_data: int = constant(4, "DSCP", "MRC 1.0 class TRIMMABLE, configurable")
    dscp_retransmission: int = constant(8, "DSCP", "MRC 1.0 class TRIMMABLE_RETX, configurable")
    dscp_control: int = constant(46, "DSCP", "MRC 1.0 class CONTROL, configurable")
    pkey: int = constant(0xFFFF, "key", "IBTA default partition")


@dataclass(frozen=True)
class ReliabilityProfile:
    """Windows, acknowledgements, loss recovery."""

    mpr: int = constant(8, "128 PSNs", "MRC verbs API example: 8, a window of 1024 packets; at most 255")
    sack_threshold_bytes: int = constant(8192, "bytes", "MRC 1.0 section 7.5.2 leaves it open; 1 to 4 packets")
    reorder_rtts: float = constant(1.0, "base RTT", "Choice, as RACK (RFC 8985): at least one round trip")
    reorder_spread: float = constant(1.5, "times the measured RTT spread", "Choice: queues of unequal length reorder")
    jitter_s: float = constant(0.010, "seconds", "Choice: scheduling delay of hosts and switches in software")
    rto_rtts: float = constant(20.0, "base RTT", "MRC verbs API example: 262 us against an RTT of about 13 us")
    rto_min_s: float = constant(0.200, "seconds", "Linux TCP; a peer in software may not run for tens of milliseconds")
    linear_retries: int = constant(7, "timeouts", "MRC 1.0: at most 7 at a constant timeout")
    exponential_retries: int = constant(4, "timeouts", "MRC 1.0: at most 25, which means for ever; choice: an end")
    max_transmissions: int = constant(32, "times", "Choice: bounds repair by SACK of a packet that never arrives")
    probe_rtts: float = constant(2.0, "base RTT", "MRC 1.0 reliability probe after silence; RFC 8985: 2 RTT")
    probe_smoothed_rtts: float = constant(1.25, "smoothed RTT", "Choice: the same while queues are long")


@dataclass(frozen=True)
class EvProfile:
    """Entropy values: how many, when they leave, how they come back."""

    active_max: int = constant(128, "EVs per plane", "Araujo et al., section 2.1: typically 128 to 256 per QP")
    backup_share: float = constant(0.25, "of the EVs of a plane", "Choice: the size of the backup set is unpublished")
    min_active: int = constant(2, "EVs over all planes", "MRC control API ev_min_active; default unpublished")
    skip_rtts: float = constant(
        0.5, "base RTT", "Choice: a path so much slower than its plane counts as marked; 0: off"
    )
    silent_plane_evs: int = constant(3, "EVs", "Choice: so many in a row without any answer condemn their plane")
    probe_interval_rtts: float = constant(10.0, "base RTT", "Choice: 10 to 20; unpublished")
    probe_timeout_rtts: float = constant(4.0, "base RTT", "Choice; unpublished")
    probe_successes: int = constant(3, "answers in a row", "Choice; 'if enough probes succeed', Araujo et al. 2.1")
    reverse_probe_rtts: float = constant(2.0, "base RTT", "Araujo et al., section 2.4 says each RTT; choice: fewer")
    reverse_stale_rounds: float = constant(
        2.5, "rounds of reverse probes over all planes", "Choice: a plane this much less fresh carries no control"
    )


@dataclass(frozen=True)
class NsccProfile:
    """Congestion control: UET 1.0 NSCC, constants of the reference simulator, scaled by BDP.

    The reference scales increases by BDP and by RTT. Here they scale by BDP alone, so that growth in one round trip is
    the same share of the window at 15 ms as at 12 us.
    """

    reference_bdp_bytes: int = constant(150_000, "bytes", "UET simulator: 100 Gbit/s x 12 us")
    target_rtts: float = constant(1.0, "base RTT", "UET simulator: queueing delay aimed at, without trimming")
    alpha: float = constant(4.0, "packets per RTT at no delay", "UET simulator: proportional increase")
    fair_increase: float = constant(5.0, "packets per RTT", "UET simulator: fi")
    eta: float = constant(0.15, "packets per period", "UET simulator")
    gamma: float = constant(0.8, "factor", "UET simulator: multiplicative decrease")
    max_md_jump: float = constant(0.5, "factor", "UET simulator: largest decrease at once")
    fast_increase_scale: float = constant(0.25, "factor", "UET simulator: fi_scale")
    fast_increase_rtts: float = constant(0.05, "base RTT", "UET simulator: 1 us; scaled to the RTT here")
    delay_weight: float = constant(0.45, "per BDP acknowledged", "UET simulator: 0.0125 per packet, BDP of 36")
    unmarked_delay: float = constant(0.25, "of base RTT", "UET simulator: where unmarked delay pulls the average")
    quick_adapt: bool = constant(True, "on or off", "MRC control API disable_qa")
    quick_adapt_gate: int = constant(3, "bits of max cwnd", "UET simulator: qa_gate")
    quick_adapt_targets: float = constant(4.0, "target delays", "UET simulator: qa_threshold")
    adjust_rtts: float = constant(1.0, "base RTT", "UET simulator: adjust_period_threshold")
    adjust_packets: int = constant(8, "packets", "UET simulator: adjust_bytes_threshold")
    host_delay_s: float = constant(0.010, "seconds", "Choice: hosts and switches in software; the window covers it too")
    max_cwnd_bdp: float = constant(1.5, "BDP", "UET simulator: also the initial window")
    delay_stands_for_ecn: bool = constant(
        True, "on or off", "Choice: in a fabric that marks nothing, delay above target counts as a mark"
    )


@dataclass(frozen=True)
class Profile:
    """All constants of an agent."""

    wire: WireProfile = WireProfile()
    reliability: ReliabilityProfile = ReliabilityProfile()
    evs: EvProfile = EvProfile()
    nscc: NsccProfile = NsccProfile()


def describe(profile: Any, prefix: str = "") -> Iterator[tuple[str, Any, str, str]]:
    """Rows (name, value, unit, source) of all constants in a profile."""
    for item in fields(profile):
        value = getattr(profile, item.name)
        if is_dataclass(value):
            yield from describe(value, f"{prefix}{item.name}.")
        else:
            yield f"{prefix}{item.name}", value, item.metadata["unit"], item.metadata["source"]
