"""Rate and queue of a link end: the `tc` lines as pure text, and what was applied read back.

Every link is shaped at both of its ends, so in both directions. HTB holds the rate, a byte-limited FIFO is the queue.
Rates are given in bit/s and quanta in bytes, so HTB neither caps nor warns, whatever the rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from topologies.graph import LinkParams

ETHERNET_HEADER_BYTES = 14
BURST_S = 0.001
"""Time at link rate that HTB may catch up after the kernel woke it late."""

DATA_CLASS = "1:10"


def frame_bytes(mtu: int) -> int:
    """Largest frame that HTB charges for: IP MTU and Ethernet header, in bytes."""
    return mtu + ETHERNET_HEADER_BYTES


def burst_bytes(rate_bps: int, mtu: int) -> int:
    """HTB bucket: two frames, or 1 ms at the link's rate if that is more."""
    return max(2 * frame_bytes(mtu), round(rate_bps / 8 * BURST_S))


def tc_lines(interface: str, params: LinkParams, mtu: int) -> list[str]:
    """The `tc -batch` lines for one end of a link."""
    burst = burst_bytes(params.rate_bps, mtu)
    rate = f"rate {params.rate_bps}bit ceil {params.rate_bps}bit burst {burst}b cburst {burst}b"
    lines = [
        f"qdisc replace dev {interface} root handle 1: htb default 10",
        f"class replace dev {interface} parent 1: classid 1:1 htb {rate} quantum {frame_bytes(mtu)}",
        f"class replace dev {interface} parent 1:1 classid {DATA_CLASS} htb {rate} quantum {frame_bytes(mtu)}",
        f"qdisc replace dev {interface} parent {DATA_CLASS} handle 10: bfifo limit {params.queue_bytes}b",
    ]
    if params.delay_s or params.loss:
        lines[-1] = _netem_line(interface, params, mtu)
    return lines


def _netem_line(interface: str, params: LinkParams, mtu: int) -> str:
    """Delay and loss by netem, whose limit counts packets: those on the wire and those in the queue both fit."""
    on_the_wire = params.rate_bps / 8 * params.delay_s
    limit = max(16, round((on_the_wire + params.queue_bytes) / frame_bytes(mtu)) + 1)
    loss = f" loss {params.loss * 100:.6g}%" if params.loss else ""
    delay = f" delay {params.delay_s * 1e6:.0f}us" if params.delay_s else ""
    return f"qdisc replace dev {interface} parent {DATA_CLASS} handle 10: netem limit {limit}{delay}{loss}"


def needs_netem(params: Iterable[LinkParams]) -> bool:
    """Whether any link delays or loses packets, which only the kernel's netem does."""
    return any(link.delay_s or link.loss for link in params)


def applied_rate_bps(classes: Iterable[Any]) -> int | None:
    """Rate of the data class in bit/s out of a pyroute2 class dump; None when there is none."""
    for entry in classes:
        if entry["handle"] != 0x0001_0010:
            continue
        options = entry.get_attr("TCA_OPTIONS")
        wide = options.get_attr("TCA_HTB_RATE64")
        narrow = options.get_attr("TCA_HTB_PARMS")
        if wide is not None or narrow is not None:
            return 8 * int(wide if wide is not None else narrow["rate"])
    return None
