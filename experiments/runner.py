"""A run from outside: its cells one after another, each in fresh namespaces; results, verdict, interruption."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from experiments.capacity import capacity_steps, payload_share_of
from experiments.cell_spec import BIN_S, CellSpec
from experiments.collector import Collector
from experiments.estimate import cell_seconds
from experiments.failures import timeline
from experiments.model import Experiment, TransportModel
from experiments.provenance import provenance
from experiments.transports.registry import TRANSPORTS
from results.schema import CellRecord
from results.writer import CellWriter, RunWriter, default_root
from testbed.errors import MachineLacks, TestbedError
from testbed.leftovers import remove_leftovers, scratch_folder
from testbed.sandbox import Sandbox
from topologies.rtt import base_rtt_s

DEADLINE_FACTOR = 3.0
DEADLINE_EXTRA_S = 60.0
STOP_GRACE_S = 8.0


class Progress(Protocol):
    """Who is told how a run goes on."""

    def cell_started(self, number: int, total: int, label: str, expected_s: float) -> None:
        """Cell ``number`` (from 0) of ``total`` begins and should take ``expected_s`` seconds."""

    def phase(self, name: str) -> None:
        """The cell entered a phase."""

    def delivered(self, payload_bytes: int) -> None:
        """So many payload bytes have arrived in this cell so far."""

    def cell_finished(self, label: str, status: str, reason: str | None) -> None:
        """The cell ended."""


@dataclass(frozen=True)
class PlannedCell:
    """One cell to run. ``repetition`` counts from 1."""

    transport: TransportModel
    repetition: int
    seed: int

    @property
    def label(self) -> str:
        """What a person calls it."""
        return f"{self.transport.label}, repetition {self.repetition}"


def plan_cells(experiment: Experiment) -> list[PlannedCell]:
    """The cells in the order they run: repetitions in order, the transports of each in an order drawn by the seed.

    All transports of a repetition share its seed, so they face the same pairs and can be compared in pairs.
    """
    cells = []
    for repetition in range(1, experiment.model.repeat + 1):
        seed = experiment.model.seed + repetition - 1
        entries = experiment.model.transport_models()
        random.Random(seed).shuffle(entries)
        cells += [PlannedCell(entry, repetition, seed) for entry in entries]
    return cells


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying of them; a second one ends the program at once."""
    caught: list[int] = []

    def note(number: int, _frame: Any) -> None:
        caught.append(number)
        if len(caught) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_experiment(experiment: Experiment, progress: Progress, *, root: Path | None = None, command: str = "") -> Path:
    """Run every cell of an experiment; returns the run's directory, whatever became of its cells.

    Raises:
        MachineLacks: nothing can be run on this machine.
        SandboxError: without root.
        ResultError: results cannot be written.
    """
    with (
        RunWriter.create(
            root or default_root(),
            experiment.name,
            command=command,
            experiment_yaml=experiment.resolved,
            topology_yaml=experiment.resolved_topology,
            files={
                "experiment": str(experiment.path),
                "topology": str(experiment.topology_path) if experiment.topology_path else None,
            },
            provenance=provenance(),
            dataplane=experiment.model.dataplane,
            seed=experiment.model.seed,
        ) as writer,
        _interrupts() as interrupts,
    ):
        remove_leftovers()
        run = _Run(experiment, writer, progress, interrupts)
        run.all_cells()
    return writer.path


class _Run:
    """The cells of one run."""

    def __init__(self, experiment: Experiment, writer: RunWriter, progress: Progress, interrupts: list[int]) -> None:
        self._experiment = experiment
        self._writer = writer
        self._progress = progress
        self._interrupts = interrupts

    def all_cells(self) -> None:
        """Run them; note in the manifest how the run ended."""
        cells = plan_cells(self._experiment)
        statuses, verdicts, reasons = [], [], []
        for number, planned in enumerate(cells):
            if self._interrupts:
                break
            record = self._one(number, len(cells), planned)
            statuses.append(record.status)
            verdicts.append(record.verdict)
            if record.verdict != "valid":
                reasons += [f"{record.id}: {reason}" for reason in record.reasons]
            if record.error:
                reasons.append(f"{record.id}: {record.error}")
        verdict = "invalid" if "invalid" in verdicts else "host-limited" if "host-limited" in verdicts else "valid"
        if self._interrupts:
            status, reasons = "interrupted", [*reasons, f"stopped after {len(statuses)} of {len(cells)} cells"]
        else:
            status = "done" if "done" in statuses else "failed"
        self._writer.finish(status, verdict=verdict, reasons=reasons)  # type: ignore[arg-type]

    def _record(self, number: int, planned: PlannedCell) -> CellRecord:
        experiment, fabric = self._experiment, self._experiment.fabric
        pairs = experiment.model.compile_workload(fabric, planned.seed).pairs
        rates: dict[int, int] = {}
        for link in fabric.links:
            if link.tier == "host":
                rates.setdefault(link.plane, link.params.rate_bps)
        return CellRecord(
            id=f"{number:03d}-{planned.transport.label}-r{planned.repetition}",
            transport=planned.transport.label,
            routing=planned.transport.routing or TRANSPORTS[planned.transport.kind].routing,
            repetition=planned.repetition,
            seed=planned.seed,
            start_unix_s=None,
            duration_s=experiment.model.duration,
            warmup_s=experiment.model.warmup_s,
            bin_s=BIN_S,
            planes=fabric.planes,
            plane_rate_bps=[float(rates[plane]) for plane in sorted(rates)],
            payload_share=payload_share_of(fabric),
            base_rtt_s=max(base_rtt_s(fabric, source, target) for source, target in pairs),
        )

    def _one(self, number: int, total: int, planned: PlannedCell) -> CellRecord:
        experiment = self._experiment
        self._progress.cell_started(number, total, planned.label, cell_seconds(experiment, planned.transport))
        cell = self._writer.cell(self._record(number, planned))
        workload = experiment.model.compile_workload(experiment.fabric, planned.seed)
        names = [f"{failure.link} {failure.do}" for failure in experiment.model.failures]
        collector = Collector(workload, cell, names)
        with scratch_folder() as scratch:
            spec = CellSpec(
                topology=str(self._writer.path / "topology.yaml"),
                logs=str(scratch),
                transport=planned.transport.kind,
                options=planned.transport.options(),
                routing=cell.record.routing or "ecmp",
                framework=experiment.model.controller,
                convergence_s=experiment.model.convergence,
                datapath=experiment.model.datapath,
                seed=planned.seed,
                duration_s=experiment.model.duration,
                drain_s=experiment.model.drain,
                workload=workload,
                actions=timeline(experiment.model.failures),
            )
            self._run_inside(spec, collector, scratch)
            self._store(collector, cell, scratch)
        if collector.datapath and self._writer.manifest.datapath != collector.datapath:
            self._writer.update(datapath=collector.datapath)
        self._progress.cell_finished(planned.label, cell.record.status, cell.record.error)
        return cell.record

    def _run_inside(self, spec: CellSpec, collector: Collector, scratch: Path) -> None:
        """Start the cell in its namespaces and take what it tells, until it ends, is stopped or its time is over."""
        file = scratch / "cell.json"
        file.write_text(json.dumps(spec.to_json()))
        deadline_s = DEADLINE_EXTRA_S + DEADLINE_FACTOR * (spec.duration_s + spec.drain_s)
        command = [sys.executable, "-m", "experiments.cell", str(file)]
        with Sandbox(command, scratch / "cell.log") as sandbox:
            stopping = False
            for event in sandbox.events(deadline_s=deadline_s, wake_s=0.2):
                if self._interrupts and not stopping:
                    stopping = True
                    sandbox.send({"op": "stop"})
                    sandbox.set_deadline(STOP_GRACE_S)
                if event is None:
                    continue
                if event["event"] == "phase":
                    self._progress.phase(event["name"])
                collector.take(event)
                self._progress.delivered(collector.delivered_bytes)
            if collector.status is None:
                self._explain_silence(sandbox, collector, scratch)

    def _explain_silence(self, sandbox: Sandbox, collector: Collector, scratch: Path) -> None:
        if self._interrupts:
            collector.status, collector.reason = "interrupted", "stopped by the user"
        elif sandbox.timed_out:
            collector.status, collector.reason = "timed_out", "the cell did not end within its time limit"
        else:
            code = sandbox.close()
            tail = (scratch / "cell.log").read_text(errors="replace").strip().splitlines()[-1:]
            told = f": {tail[0]}" if tail else ""
            collector.status, collector.reason = "failed", f"the cell ended with code {code}{told}"

    def _store(self, collector: Collector, cell: CellWriter, scratch: Path) -> None:
        """Tables, verdict and, for a cell that did not end well, the logs."""
        collector.write_tables()
        if collector.status == "machine_lacks":
            cell.finish("failed", error=collector.reason)
            raise MachineLacks(collector.reason or "")
        fabric = self._experiment.fabric
        broken = collector.broken({link.name: link.params.rate_bps for link in fabric.links})
        doubts = collector.doubts()
        if collector.status == "failed":
            self._keep_logs(scratch, cell)
        failures = [collector.failures[number] for number in sorted(collector.failures)]
        cell.finish(
            collector.status or "failed",  # type: ignore[arg-type]
            error=collector.reason,
            verdict="invalid" if broken else "host-limited" if doubts else "valid",
            reasons=[*broken, *doubts],
            start_unix_s=collector.start_unix,
            duration_s=collector.duration_s(cell.record.duration_s),
            failures=failures,
            capacity=capacity_steps(fabric, collector.workload.pairs, self._experiment.model.failures, failures),
            counters=collector.counters,
            cpu={"cores": os.cpu_count(), **collector.cpu()},
        )

    def _keep_logs(self, scratch: Path, cell: CellWriter) -> None:
        for log in sorted(scratch.glob("*.log")):
            relative = cell.path.relative_to(self._writer.path) / "logs" / log.name
            self._writer.write_text(str(relative), log.read_text(errors="replace"))


__all__ = ["PlannedCell", "Progress", "TestbedError", "plan_cells", "run_experiment"]
