"""How late does this machine wake a process that has asked to be woken? ``python -m testbed.canary``.

A run is only as good as the machine's timing: a pause longer than a round trip looks like a loss to any transport.
Once a second, one line: CLOCK_MONOTONIC seconds and the worst lateness of that second, in seconds.
"""

from __future__ import annotations

import sys
import time

PERIOD_S = 0.005
REPORT_S = 1.0


def main() -> None:
    """Sleep and measure until killed or until nobody reads."""
    until = time.monotonic() + REPORT_S
    worst = 0.0
    while True:
        wanted = time.monotonic() + PERIOD_S
        time.sleep(PERIOD_S)
        now = time.monotonic()
        worst = max(worst, now - wanted)
        if now >= until:
            sys.stdout.write(f"{now:.6f} {worst:.6f}\n")
            sys.stdout.flush()
            until, worst = now + REPORT_S, 0.0


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
