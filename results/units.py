"""Numbers as people read them: three significant digits, always with their unit, a dash for what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

UNKNOWN = "–"

_NAMES = {"mrc": "MRC", "tcp": "TCP", "mptcp": "MPTCP", "rc": "RC", "spray": "Spray"}
# Recovery is found to the sample, so a shorter one cannot be told from none.
_RESOLUTION_S = 0.05


def transport_name(transport: str) -> str:
    """How a transport is written in tables and plots."""
    return _NAMES.get(transport, transport)


def number(value: float | None, digits: int = 3) -> str:
    """``digits`` significant digits, without an exponent: 0.0123, 1.23, 12.3, 12,345."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    # Rounded first, so that 99.96 becomes 100 and not 100.0.
    rounded = float(f"{value:.{digits}g}")
    decimals = max(0, digits - len(str(int(abs(rounded)))))
    if abs(rounded) < 1:
        decimals = digits - 1 - int(f"{rounded:e}".rpartition("e")[2])
    return f"{value:,.{decimals}f}"


def mbit(rate_bps: float | None) -> str:
    """A rate in Mbit/s, without the unit."""
    return number(None if rate_bps is None else rate_bps / 1e6)


def rate(rate_bps: float | None) -> str:
    """A rate with its unit."""
    if rate_bps is None:
        return UNKNOWN
    return f"{number(rate_bps / 1e9)} Gbit/s" if rate_bps >= 1e9 else f"{mbit(rate_bps)} Mbit/s"


def milliseconds(time_s: float | None) -> str:
    """A time in ms, without the unit."""
    return number(None if time_s is None else time_s * 1e3)


def duration(time_s: float | None) -> str:
    """A time with its unit, ms or s."""
    if time_s is None:
        return UNKNOWN
    return f"{number(time_s)} s" if time_s >= 1 else f"{milliseconds(time_s)} ms"


def data(size_bytes: float | None) -> str:
    """An amount of data with its unit (powers of ten)."""
    if size_bytes is None:
        return UNKNOWN
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size_bytes >= factor:
            return f"{number(size_bytes / factor)} {unit}"
    return f"{number(size_bytes)} B"


def percent(share: float | None) -> str:
    """A share in percent with its sign: whole numbers, one decimal below 10 %, two below 1 %."""
    if share is None:
        return UNKNOWN
    value = share * 100
    decimals = 0 if abs(value) >= 9.95 else 1 if abs(value) >= 0.995 or value == 0 else 2
    return f"{value:.{decimals if value else 0}f} %"


def recovery(times_s: Sequence[float | None], observed_s: Sequence[float]) -> str:
    """Recovery times of the repetitions: their median and range, and how many did not recover.

    ``observed_s``: how long each was watched, for those that are None.
    """
    if not times_s:
        return UNKNOWN
    found = sorted(time for time in times_s if time is not None)
    missing = [observed for time, observed in zip(times_s, observed_s, strict=True) if time is None]
    within = f"not within {number(min(missing), 2)} s" if missing else ""
    if not found:
        return within
    text = _recovery_time(median(found))
    if _recovery_time(found[0]) != _recovery_time(found[-1]):
        text += f" ({found[0]:.2f}–{found[-1]:.2f})"
    return f"{text}; {len(missing)} of {len(times_s)} {within}" if missing else text


def _recovery_time(time_s: float) -> str:
    return f"< {_RESOLUTION_S:g} s" if time_s < _RESOLUTION_S - 1e-9 else f"{time_s:.2f} s"
