"""How late does this machine wake a process that has asked to be woken? ``python -m testbed.canary``.

A run is only as good as the machine's timing: a pause longer than a round trip looks like a loss to any transport.
Once a second, one line: CLOCK_MONOTONIC seconds, then how late the latest tenth of that second's wake-ups was at
least (the 90th percentile) and the very latest, in seconds.
"""

from __future__ import annotations

import sys
import time

PERIOD_S = 0.005
REPORT_S = 1.0
SHARE = 0.9


def main() -> None:
    """Sleep and measure until killed or until nobody reads."""
    until = time.monotonic() + REPORT_S
    late: list[float] = []
    while True:
        wanted = time.monotonic() + PERIOD_S
        time.sleep(PERIOD_S)
        now = time.monotonic()
        late.append(max(0.0, now - wanted))
        if now >= until:
            late.sort()
            sys.stdout.write(f"{now:.6f} {late[int(len(late) * SHARE)]:.6f} {late[-1]:.6f}\n")
            sys.stdout.flush()
            until, late = now + REPORT_S, []


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
