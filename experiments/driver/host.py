"""The loop on a host: post what is due, step the transport, record what was delivered.

Talks to the runner in JSON lines: requests on standard input (``accept``, ``start``, ``stop``, ``quit``), events on
standard output (``offer``, ``ready``, ``records``, ``drained``, ``result``, ``unsupported``, ``error``). Times in
events are CLOCK_MONOTONIC seconds, which all emulated hosts share.
"""

from __future__ import annotations

import gc
import json
import os
import select
import time
from typing import Any

from experiments.driver.payload import Payload
from experiments.driver.schedule import Schedule
from experiments.driver.spec import DriverSpec
from experiments.transports.base import Delivered, Event, Failed, Note, Sent, Transport

STEP_S = 0.005
REPORT_S = 0.1


class Runner:
    """The other end of the pipes: requests come in without blocking, events go out a line each."""

    def __init__(self) -> None:
        self._pending = b""
        self.closed = False

    def requests(self, timeout_s: float = 0.0) -> list[dict[str, Any]]:
        """Requests that have arrived; waits at most ``timeout_s`` seconds for the first."""
        if self.closed or not select.select([0], [], [], timeout_s)[0]:
            return []
        data = os.read(0, 1 << 20)
        self.closed = not data
        *lines, self._pending = (self._pending + data).split(b"\n")
        return [json.loads(line) for line in lines if line]

    def wait(self, operation: str) -> dict[str, Any]:
        """The next request, which must be ``operation``. Raises EOFError when the runner has gone."""
        while not self.closed:
            for request in self.requests(timeout_s=1.0):
                if request["op"] != operation:
                    raise RuntimeError(f"expected {operation}, got {request['op']}")
                return request
        raise EOFError("the runner has gone")

    def tell(self, event: str, **fields: Any) -> None:
        """Send one event."""
        data = json.dumps({"event": event, **fields}).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]


class Driver:
    """One host's part of a cell."""

    def __init__(self, spec: DriverSpec, transport: Transport, runner: Runner) -> None:
        self._spec = spec
        self._transport = transport
        self._runner = runner
        largest = max((c.largest for c in (*spec.host.sends, *spec.host.receives)), default=0)
        self._payload = Payload(spec.payload_seed, largest)
        self._schedule = Schedule(spec.messages, spec.streams)
        self._source = {channel.id: channel.src for channel in spec.host.receives}
        self._buffers: dict[int, tuple[int, bytearray]] = {}
        self._free: dict[int, list[bytearray]] = {}
        self._records: list[list[Any]] = []
        self._bins: list[list[Any]] = []
        self._last_bytes: dict[tuple[str, int], int] = {}
        self._posting = True
        self._start = 0.0
        self._next_bin = 0.0
        self._next_report = 0.0

    def run(self) -> None:
        """Everything, from the first offer to the result."""
        self._connect()
        self._start = float(self._runner.wait("start")["at"])
        # Collections would pause the host for milliseconds; what the loop makes, it does not make in cycles.
        gc.collect()
        gc.freeze()
        gc.disable()
        self._wait_for_start()
        self._next_bin = self._start + self._spec.bin_s
        self._next_report = self._start + REPORT_S
        drained = False
        while True:
            for request in self._runner.requests():
                if request["op"] == "stop":
                    self._posting = False
                elif request["op"] == "quit":
                    self._flush()
                    self._result()
                    # Stay until the runner goes: closing now would look like a failure to hosts that are a step behind.
                    while not self._runner.closed:
                        self._runner.requests(timeout_s=1.0)
                    return
            if self._runner.closed:
                return
            self._turn()
            if not drained and self._drained():
                drained = True
                self._flush()
                self._runner.tell("drained")

    def _connect(self) -> None:
        self._runner.tell("offer", offers=self._transport.offers())
        offers = {int(channel): offer for channel, offer in self._runner.wait("accept")["offers"].items()}
        self._transport.accept(offers)
        while not self._transport.ready():
            self._transport.step(STEP_S)
            if self._runner.closed or self._runner.requests():
                return
        self._runner.tell("ready")

    def _wait_for_start(self) -> None:
        while (left := self._start - time.monotonic()) > 0:
            self._handle(self._transport.step(min(left, STEP_S)))

    def _drained(self) -> bool:
        return not self._buffers and (not self._posting or self._schedule.finished())

    def _turn(self) -> None:
        now = time.monotonic()
        if self._posting:
            for channel, message, size in self._schedule.due(now - self._start):
                self._post(channel, message, size)
        self._handle(self._transport.step(min(STEP_S, max(0.0, self._next_bin - now))))
        now = time.monotonic()
        if now >= self._next_bin:
            self._close_bin(now)
        if now >= self._next_report:
            self._flush()
            self._next_report = now + REPORT_S

    def _post(self, channel: int, message: int, size: int) -> None:
        free = self._free.setdefault(size, [])
        buffer = free.pop() if free else bytearray(size)
        self._payload.fill(message, memoryview(buffer))
        self._buffers[message] = (channel, buffer)
        self._records.append(["posted", message, channel, size, time.monotonic()])
        self._transport.post(channel, message, memoryview(buffer))

    def _release(self, message: int) -> None:
        _, buffer = self._buffers.pop(message)
        self._free.setdefault(len(buffer), []).append(buffer)
        self._schedule.completed(message)

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Delivered):
                message, intact = self._payload.check(event.data)
                self._records.append(["delivered", message, event.channel, len(event.data), event.at_s, intact])
                self._schedule.completed(message)
            elif isinstance(event, Sent):
                self._records.append(["sent", event.message, event.at_s])
                self._release(event.message)
            elif isinstance(event, Failed):
                self._records.append(["failed", event.message, event.reason, time.monotonic()])
                self._release(event.message)
            elif isinstance(event, Note):
                self._records.append(["note", event.kind, event.name, event.detail, event.at_s])

    def _close_bin(self, now: float) -> None:
        """Bytes delivered since the last bin belong to the bin that has just ended."""
        end = self._next_bin
        while end + self._spec.bin_s <= now:
            end += self._spec.bin_s
        for (source, plane), total in self._transport.delivered_bytes().items():
            fresh = total - self._last_bytes.get((source, plane), 0)
            if fresh:
                self._bins.append([end - self._spec.bin_s, source, plane, fresh])
                self._last_bytes[source, plane] = total
        self._next_bin = end + self._spec.bin_s

    def _flush(self) -> None:
        sample = self._transport.sample()
        self._runner.tell("records", records=self._records, bins=self._bins, sample=sample, cpu_s=time.process_time())
        self._records, self._bins = [], []

    def _result(self) -> None:
        self._runner.tell("result", evs=self._transport.ev_rows(), counters=self._transport.counters())
