"""Turn what a cell tells, as it tells it, into the tables of the results. Whatever has arrived can be stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from experiments.workloads.base import Workload
from results.schema import FailureRecord
from results.writer import CellWriter
from topologies.ev import EvLayout

BUSY_HOST_SHARE = 0.8
"""A host process that uses more of a core than this may itself be the bottleneck."""
LATE_RTTS = 0.1
"""A second in which a tenth of the wake-ups were later than this share of the base RTT is late: the machine's delays
pass for the network's."""
TOLERATED_SECONDS = 0.2
"""Share of the seconds in which a host may be busy, or the machine late, before the cell is called host-limited."""


@dataclass
class _Message:
    channel: int
    size: int
    posted_s: float | None = None
    delivered_s: float | None = None
    ok: bool = False
    failed: str = ""


@dataclass
class Collector:
    """Everything told by one cell.

    Attributes:
        start_mono: CLOCK_MONOTONIC seconds of the start of traffic; None before it.
        datapath: what Open vSwitch forwards with.
        status, reason: how the cell ended.
    """

    workload: Workload
    writer: CellWriter
    failure_names: list[str]
    start_mono: float | None = None
    start_unix: float | None = None
    datapath: str | None = None
    pairs: int = 0
    proof_s: float | None = None
    status: str | None = None
    reason: str | None = None
    delivered_bytes: int = 0
    finished_early: bool = False
    failures: dict[int, FailureRecord] = field(default_factory=dict)
    counters: dict[str, dict[str, Any]] = field(default_factory=dict)
    link_rows: list[dict[str, Any]] = field(default_factory=list)
    _messages: dict[int, _Message] = field(default_factory=dict)
    _goodput: list[dict[str, Any]] = field(default_factory=list)
    _evs: list[dict[str, Any]] = field(default_factory=list)
    _hosts: list[dict[str, Any]] = field(default_factory=list)
    _machine: list[dict[str, Any]] = field(default_factory=list)
    _cpu: dict[str, float] = field(default_factory=dict)
    _busy: dict[str, int] = field(default_factory=dict)
    _switch_cpu: list[float] = field(default_factory=list)
    _newest: dict[int, tuple[float, float]] = field(default_factory=dict)
    _late: list[tuple[float, float]] = field(default_factory=list)
    _early: list[tuple[float, str, str, str, Any]] = field(default_factory=list)

    def _t(self, mono: float) -> float:
        return mono - self.start_mono if self.start_mono is not None else 0.0

    def _note(self, at: float, source: str, kind: str, name: str, detail: Any) -> None:
        """Store an event; those from before the start of traffic wait until its time, the origin, is known."""
        if self.start_mono is None:
            self._early.append((at, source, kind, name, detail))
        else:
            self.writer.event(self._t(at), source, kind, name, detail)

    def _started(self, mono: float, unix: float) -> None:
        self.start_mono, self.start_unix = mono, unix
        self._write_early()

    def _write_early(self) -> None:
        early, self._early = self._early, []
        for at, source, kind, name, detail in early:
            self.writer.event(self._t(at), source, kind, name, detail)

    def take(self, event: dict[str, Any]) -> None:
        """Take one event of the cell."""
        kind = event["event"]
        if kind == "host":
            self._take_host(event)
        elif kind == "start":
            self._started(event["mono"], event["unix"])
        elif kind == "links":
            at = self._t(event["at"])
            names = ("link", "direction", "bytes", "packets", "drops", "backlog_bytes")
            self.link_rows += [{"t_s": at, **dict(zip(names, row, strict=True))} for row in event["rows"]]
        elif kind == "machine":
            self._take_machine(event)
        elif kind == "failure":
            self._take_failure(event)
        elif kind == "note":
            self._note(event["at"], event["source"], event["kind"], event["name"], event["detail"])
        elif kind == "network":
            self.datapath, self.pairs, self.proof_s = event["datapath"], event["pairs"], event["proof_s"]
        elif kind == "finished_early":
            self.finished_early = True
        elif kind == "done":
            self.status, self.reason = event["status"], event["reason"]

    def _take_host(self, event: dict[str, Any]) -> None:
        host = event["host"]
        if event["kind"] == "result":
            self.counters[host] = event["counters"]
            self._evs += event["evs"]
            return
        for record in event.get("records", ()):
            self._take_record(host, record)
        for begin, source, plane, count in event.get("bins", ()):
            row = {"t_s": self._t(begin), "src": source, "dst": host, "plane": plane, "bytes": count}
            self._goodput.append(row)
            self.delivered_bytes += count
        sample = event.get("sample")
        if sample:
            at = self._goodput[-1]["t_s"] if self._goodput else 0.0
            self._hosts.append({"t_s": at, "host": host, "cpu_share": self._cpu.get(host), **sample})

    def _take_record(self, host: str, record: list[Any]) -> None:
        kind = record[0]
        if kind == "posted":
            _, message, channel, size, at = record
            self._message(message, channel, size).posted_s = self._t(at)
        elif kind == "delivered":
            _, message, channel, size, at, intact = record
            entry = self._message(message, channel, size)
            # A second copy handed to the application would be a fault of the transport: it must show.
            entry.ok = bool(intact) and entry.delivered_s is None
            entry.delivered_s = self._t(at)
        elif kind == "failed":
            _, message, reason, _ = record
            self._message(message, -1, 0).failed = reason
        elif kind == "note":
            _, what, name, detail, at = record
            self._note(at, "agent", what, f"{host}: {name}", detail)

    def _message(self, message: int, channel: int, size: int) -> _Message:
        """The message of this id. A damaged id makes an entry of its own, which counts as corrupt."""
        return self._messages.setdefault(message, _Message(channel, size))

    def _take_machine(self, event: dict[str, Any]) -> None:
        at = self._t(event["at"])
        self._machine.append({"t_s": at, "cpu_idle_share": min(1.0, max(0.0, event["idle"]))})
        self._cpu = event["hosts"]
        self._switch_cpu.append(event["switches"])
        if event["late"] is not None:
            usual, worst = event["late"]
            self._late.append((usual, worst))
        for host, share in event["hosts"].items():
            self._busy[host] = self._busy.get(host, 0) + (share > BUSY_HOST_SHARE)

    def _take_failure(self, event: dict[str, Any]) -> None:
        at, planned = self._t(event["applied"]), event["planned_s"]
        number = event["failure"]
        state = "up" if event["up"] else "down"
        detail = {"planned_s": planned, "deviation_s": at - planned, "carrier": event["carrier"]}
        self.writer.event(at, "failure", f"link_{state}", event["link"], detail)
        earlier = self.failures.get(number)
        if earlier is not None:
            earlier.until_s = at
            return
        self.failures[number] = FailureRecord(
            name=self.failure_names[number],
            at_s=at,
            planned_s=planned,
            applied_s=at,
            deviation_s=at - planned,
        )

    def write_tables(self) -> None:
        """Store every table. Raises ResultError."""
        self._write_early()
        self._note_newest()
        sources = {channel.id: (channel.src, channel.dst) for channel in self.workload.channels}
        rows = []
        for number, entry in self._messages.items():
            src, dst = sources.get(entry.channel, ("?", "?"))
            posted = entry.posted_s if entry.posted_s is not None else entry.delivered_s or 0.0
            rows.append(
                {
                    "id": number,
                    "src": src,
                    "dst": dst,
                    "bytes": entry.size,
                    "posted_s": posted,
                    "delivered_s": entry.delivered_s,
                    "ok": entry.ok,
                    "status": self._message_status(entry),
                }
            )
        self.writer.write_table("messages", sorted(rows, key=lambda row: row["posted_s"]))
        self.writer.write_table("goodput", sorted(self._goodput, key=lambda row: row["t_s"]))
        evs = [{**row, "path": EvLayout.decode(row["ev"]).path} for row in self._evs]
        self.writer.write_table("evs", evs)
        self.writer.write_table("links", self.link_rows)
        self.writer.write_table("hosts", self._hosts)
        self.writer.write_table("machine", self._machine)

    def _message_status(self, entry: _Message) -> str:
        """What became of a message.

        One that has not arrived is lost when the transport gave it up, when one posted later on its channel did
        arrive, or when the channel delivered nothing at all during the drain; else it was still waiting for its turn.
        """
        if entry.delivered_s is not None:
            return "delivered" if entry.ok and entry.posted_s is not None else "corrupt"
        if entry.failed:
            return "lost"
        if self.status != "done":
            return "unfinished"
        newest_posted, newest_delivered = self._newest.get(entry.channel, (-1.0, -1.0))
        overtaken = entry.posted_s is not None and newest_posted > entry.posted_s
        stuck = newest_delivered < self.writer.record.duration_s
        return "lost" if overtaken or stuck else "unfinished"

    def _note_newest(self) -> None:
        """By channel: when the newest of its delivered messages was posted, and when its latest delivery was."""
        for entry in self._messages.values():
            if entry.delivered_s is not None and entry.posted_s is not None:
                posted, delivered = self._newest.get(entry.channel, (-1.0, -1.0))
                self._newest[entry.channel] = max(posted, entry.posted_s), max(delivered, entry.delivered_s)

    def cpu(self) -> dict[str, float | None]:
        """Means over the cell: idle share of the machine, cores used by Open vSwitch and by a host; lateness."""
        seconds = max(1, len(self._machine))
        hosts = [row["cpu_share"] for row in self._hosts if row["cpu_share"] is not None]
        return {
            "idle_share": sum(row["cpu_idle_share"] for row in self._machine) / seconds if self._machine else None,
            "switches_cores": sum(self._switch_cpu) / seconds if self._switch_cpu else None,
            "host_cores": sum(hosts) / len(hosts) if hosts else None,
            "lateness_s": sorted(usual for usual, _ in self._late)[len(self._late) // 2] if self._late else None,
            "worst_lateness_s": max((worst for _, worst in self._late), default=None),
        }

    def doubts(self) -> list[str]:
        """Why the machine, not the network, may have set the result; empty when nothing points to it."""
        reasons = []
        seconds = len(self._machine)
        rtt = self.writer.record.base_rtt_s or 0.0
        limit = LATE_RTTS * rtt
        late = [usual for usual, _ in self._late if usual > limit]
        if len(late) > len(self._late) * TOLERATED_SECONDS:
            most = f"up to {max(late) * 1e3:.0f} ms, against a round trip of {rtt * 1e3:.0f} ms"
            seconds_late = f"{len(late)} of {len(self._late)} s"
            reasons.append(f"the machine woke processes late in {seconds_late}: a tenth of them by {most}")
        for host, busy in sorted(self._busy.items()):
            if busy > seconds * TOLERATED_SECONDS:
                reasons.append(f"{host} used more than {BUSY_HOST_SHARE:.0%} of a core in {busy} of {seconds} s")
        return reasons

    def duration_s(self, planned_s: float) -> float:
        """Length of the measurement: as planned, or until the last byte of a workload that came to its end earlier."""
        ends = [entry.delivered_s for entry in self._messages.values() if entry.delivered_s is not None]
        if self.finished_early and ends:
            return min(planned_s, max(ends))
        return planned_s

    def broken(self, rates_bps: dict[str, int]) -> list[str]:
        """Why the network did not do what the topology says; empty when it did. ``rates_bps`` by link name."""
        reasons = []
        last: dict[tuple[str, str], dict[str, Any]] = {}
        first: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.link_rows:
            key = row["link"], row["direction"]
            first.setdefault(key, row)
            last[key] = row
        for (link, direction), row in last.items():
            begun = first[link, direction]
            seconds = row["t_s"] - begun["t_s"]
            if seconds < 1.0:
                continue
            rate = 8 * (row["bytes"] - begun["bytes"]) / seconds
            if rate > 1.05 * rates_bps[link]:
                reasons.append(f"{link} {direction} carried {rate / rates_bps[link]:.0%} of its rate")
        return reasons
