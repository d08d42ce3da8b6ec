"""Fabricates result files with known properties, through the writer, so that metrics can be checked to exact values."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from results.reader import Cell, load_run
from results.schema import CapacityStep, CellRecord, FailureRecord, Provenance
from results.writer import CellWriter, RunWriter

BIN_S = 0.05
PAIRS = (("h1", "h3"), ("h2", "h4"), ("h3", "h1"), ("h4", "h2"))
CUT = FailureRecord(
    name="p1.leaf1-p1.spine2 down", at_s=4.0, until_s=7.0, planned_s=4.0, applied_s=4.003, deviation_s=0.003
)

RateAt = Callable[[float], float]


def constant(rate_bps: float, duration_s: float) -> list[float]:
    """The same rate in every bin."""
    return [rate_bps] * round(duration_s / BIN_S)


def with_rate(rates: Sequence[float], from_s: float, to_s: float, rate_bps: float) -> list[float]:
    """``rates`` with the bins of [from_s, to_s) set to ``rate_bps``."""
    changed = list(rates)
    for index in range(round(from_s / BIN_S), round(to_s / BIN_S)):
        changed[index] = rate_bps
    return changed


def goodput_rows(
    rates: Iterable[float], *, pairs: Sequence[tuple[str, str]] = PAIRS[:1], planes: Sequence[int] = (1,)
) -> list[dict[str, Any]]:
    """Rows whose bytes add up to ``rates`` (bit/s), spread evenly over pairs and planes, to the byte."""
    lanes = [(src, dst, plane) for src, dst in pairs for plane in planes]
    rows = []
    for index, rate in enumerate(rates):
        total = round(rate * BIN_S / 8)
        for lane, (src, dst, plane) in enumerate(lanes):
            part = total * (lane + 1) // len(lanes) - total * lane // len(lanes)
            rows.append({"t_s": round(index * BIN_S, 6), "src": src, "dst": dst, "plane": plane, "bytes": part})
    return rows


def message_rows(
    times_s: Iterable[float], *, posted_s: float = 0.0, pair: tuple[str, str] = PAIRS[0], size: int = 1_000_000
) -> list[dict[str, Any]]:
    """One delivered message for each completion time."""
    return [
        {
            "id": index,
            "src": pair[0],
            "dst": pair[1],
            "bytes": size,
            "posted_s": posted_s,
            "delivered_s": posted_s + time_s,
            "ok": True,
            "status": "delivered",
        }
        for index, time_s in enumerate(times_s)
    ]


def make_cell(
    root: Path,
    *,
    rates: Sequence[float] = (),
    rows: Sequence[Mapping[str, Any]] | None = None,
    messages: Sequence[Mapping[str, Any]] = (),
    evs: Sequence[Mapping[str, Any]] = (),
    capacity: Sequence[tuple[float, float]] = (),
    failures: Sequence[FailureRecord] = (),
    **fields: Any,
) -> Cell:
    """A run of one finished cell, written and read back. ``capacity``: (from_s, bps)."""
    record = CellRecord.model_validate(
        {
            "id": "000-mrc-r1",
            "transport": "mrc",
            "duration_s": len(rates) * BIN_S,
            "capacity": [CapacityStep(from_s=from_s, bps=bps) for from_s, bps in capacity],
            "failures": list(failures),
            **fields,
        }
    )
    with RunWriter.create(root, "fabricated") as run, run.cell(record) as cell:
        cell.write_table("goodput", goodput_rows(rates) if rows is None else rows)
        cell.write_table("messages", messages)
        if evs:
            cell.write_table("evs", evs)
    return load_run(run.path).cells[0]


def make_run(
    root: Path,
    *,
    transports: Sequence[str] = ("tcp", "mrc"),
    repetitions: int = 3,
    planes: int = 4,
    pairs: Sequence[tuple[str, str]] = PAIRS,
    duration_s: float = 10.0,
    tables: bool = True,
    name: str = "failover",
    host_limited: Sequence[str] = (),
    failed: Sequence[tuple[str, int]] = (),
    now: datetime | None = None,
) -> Path:
    """A whole comparison that looks like a measured one: four planes, one cut from 4 s to 7 s, noise from fixed seeds.

    MRC fills the fabric and is back 0.15 s after the cut; TCP fills two fifths of it, and loses a pair for 1.5 s.
    """
    capacity_bps, cut_bps = 38e6, 33e6
    with RunWriter.create(
        root,
        name,
        now=now,
        command=f"./run.py run experiments/{name}.yaml",
        experiment_yaml=f"version: 1\nworkload: {{kind: permutation, message: 250 KB}}\nduration: {duration_s:g} s\n",
        topology_yaml=f"version: 1\nkind: multi_plane\nplanes: {planes}\n",
        files={"experiment": f"experiments/{name}.yaml", "topology": "topologies/multi_plane.yaml"},
        provenance=Provenance(
            git="71aaef6",
            kernel="6.1.0",
            ovs="3.1.0",
            python="3.11.2",
            packages={"numpy": "2.2.6"},
            cpu="test",
            cores=2,
        ),
        datapath="user",
        dataplane="openflow",
        seed=1,
        substitutes=["no netem in this kernel: delays are made by the userspace delay line"],
    ) as run:
        number = 0
        for repetition in range(1, repetitions + 1):
            for transport in transports:
                record = CellRecord(
                    id=f"{number:03d}-{transport}-r{repetition}",
                    transport=transport,
                    routing="disjoint" if transport == "mrc" else "ecmp",
                    repetition=repetition,
                    seed=repetition,
                    duration_s=duration_s,
                    warmup_s=1.0,
                    planes=planes,
                    plane_rate_bps=[10e6] * planes,
                    payload_share=0.95,
                    capacity=[
                        CapacityStep(from_s=0.0, bps=capacity_bps),
                        CapacityStep(from_s=4.003, bps=cut_bps),
                        CapacityStep(from_s=7.0, bps=capacity_bps),
                    ],
                    failures=[CUT],
                    base_rtt_s=0.008,
                )
                if transport in host_limited:
                    record.verdict = "host-limited"
                    record.reasons = ["agent of h1 used 93 % of a core"]
                number += 1
                cell = run.cell(record)
                if (transport, repetition) in failed:
                    cell.finish("timed_out", error="no progress for 10 s")
                    continue
                _fill(cell, transport, repetition, planes, pairs, duration_s, (capacity_bps, cut_bps), tables)
                cell.finish()
    return run.path


def _fill(
    cell: CellWriter,
    transport: str,
    repetition: int,
    planes: int,
    pairs: Sequence[tuple[str, str]],
    duration_s: float,
    capacities: tuple[float, float],
    tables: bool,
) -> None:
    noise = np.random.default_rng([repetition, zlib.crc32(transport.encode())])
    bins = round(duration_s / BIN_S)
    is_mrc = transport == "mrc"
    base = 0.95 if is_mrc else 0.4
    rows: list[dict[str, Any]] = []
    plane_weights = np.full(planes, 1 / planes) if is_mrc else noise.dirichlet(np.full(planes, 3.0))
    for index in range(bins):
        t_s = index * BIN_S
        cut = 4.0 <= t_s < 7.0
        for number, (src, dst) in enumerate(pairs):
            rate = base * min(1.0, (t_s + BIN_S) / 0.4) * (capacities[1 if cut and is_mrc else 0]) / len(pairs)
            if is_mrc and 4.0 <= t_s < 4.15:
                rate *= 0.45
            if not is_mrc and number == 0 and 4.0 <= t_s < 5.5:
                rate = 0.0
            for plane in range(planes):
                jitter = noise.normal(1.0, 0.04 if is_mrc else 0.12)
                amount = max(0, round(rate * plane_weights[plane] * jitter * BIN_S / 8))
                rows.append({"t_s": round(t_s, 6), "src": src, "dst": dst, "plane": plane + 1, "bytes": amount})
    cell.write_table("goodput", rows)
    typical = 0.25 if is_mrc else 0.5
    messages: list[dict[str, Any]] = []
    for number, pair in enumerate(pairs):
        posted = 0.0
        while posted < duration_s:
            time_s = typical * float(noise.lognormal(0.0, 0.1 if is_mrc else 0.35))
            if not is_mrc and number == 0 and posted < 5.5 and posted + time_s > 4.0:
                time_s += 1.5
            (row,) = message_rows([time_s], posted_s=posted, pair=pair, size=250_000)
            row["id"] = len(messages)
            if posted + time_s > duration_s:
                row.update(delivered_s=None, ok=False, status="unfinished")
            messages.append(row)
            posted += time_s
    cell.write_table("messages", messages)
    packets = round(sum(row["bytes"] for row in rows) / 4096)
    again = 61 + repetition if is_mrc else 300 + repetition
    cell.record.counters = {"h1": {"retransmitted_packets": again, "sent_packets": packets + again}}
    cell.event(4.003, "failure", "link down", "p1.leaf1-p1.spine2", {"planned_s": 4.0})
    cell.event(4.02, "ovs", "port down", "p1.leaf1-eth2")
    cell.event(7.0, "failure", "link up", "p1.leaf1-p1.spine2")
    if is_mrc:
        cell.write_table("evs", _ev_rows(planes, pairs, packets, again, noise))
    if tables:
        times = [round(0.2 * step, 6) for step in range(1, round(duration_s / 0.2) + 1)]
        cell.write_table("machine", {"t_s": times, "cpu_idle_share": [0.4] * len(times)})
        cell.write_table(
            "links",
            {
                "t_s": times,
                "link": ["p1.leaf1-p1.spine2"] * len(times),
                "direction": ["a>b"] * len(times),
                "bytes": [250_000 * step for step in range(len(times))],
                "packets": [61 * step for step in range(len(times))],
                "drops": [0] * len(times),
                "backlog_bytes": [4096] * len(times),
            },
        )
        cell.write_table("hosts", {"t_s": times, "host": ["h1"] * len(times), "cpu_share": [0.35] * len(times)})


def _ev_rows(
    planes: int, pairs: Sequence[tuple[str, str]], packets: int, again: int, noise: np.random.Generator
) -> list[dict[str, Any]]:
    rows = []
    per_plane = 8
    count = planes * per_plane * len(pairs)
    for src, dst in pairs:
        for plane in range(1, planes + 1):
            for index in range(per_plane):
                bad = plane == 1 and index % 4 == 1
                sent = round(packets / count / (3 if bad else 1) * float(noise.normal(1.0, 0.03)))
                rows.append(
                    {
                        "host": src,
                        "peer": dst,
                        "plane": plane,
                        "ev": (plane << 28) | 0xC000 | (index << 6),
                        "path": index % 4,
                        "state": "assumed_bad" if bad else "good",
                        "sent_packets": sent,
                        "retransmitted_packets": again // count,
                        "acked_packets": sent - (4 if bad else 0),
                        "lost_packets": 4 if bad else 0,
                        "state_changes": 2 if bad else 0,
                    }
                )
    return rows
