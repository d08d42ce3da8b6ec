"""``python -m experiments.driver SPEC.json``: drive one host's part of a cell."""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from pathlib import Path

from experiments.driver.host import Driver, Runner
from experiments.driver.spec import driver_spec
from experiments.transports.base import UnsupportedTransport
from experiments.transports.registry import create

PR_SET_TIMERSLACK = 29
TIMER_SLACK_NS = 10_000


def main(path: str) -> int:
    """Exit code 0 when done, 1 when the transport failed; the reason is the last event."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0)
    spec = driver_spec(json.loads(Path(path).read_text()))
    runner = Runner()
    try:
        transport = create(spec.transport, spec.host)
    except UnsupportedTransport as error:
        runner.tell("unsupported", reason=str(error))
        return 0
    try:
        Driver(spec, transport, runner).run()
    except (OSError, RuntimeError) as error:
        runner.tell("error", reason=f"{type(error).__name__}: {error}")
        return 1
    finally:
        transport.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
