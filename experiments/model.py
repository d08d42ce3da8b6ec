"""What an experiment's YAML may say. Loading checks everything at once, the fabric's names included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from experiments.transports.registry import TRANSPORTS
from experiments.workloads.base import Workload, saturating
from experiments.workloads.permutation import compile_permutation
from topologies.document import Document, Problems, StrictModel
from topologies.errors import InputErrors, did_you_mean
from topologies.graph import Fabric
from topologies.load import build, dump_topology, load_topology
from topologies.model import Topology
from topologies.quantities import Duration, Size

SMALLEST_MESSAGE_BYTES = 16
LARGEST_MESSAGE_BYTES = 1 << 30
LONGEST_S = 3600.0
MOST_OUTSTANDING = 64
MOST_REPETITIONS = 1000
DEFAULT_WARMUP_S = 1.0
Routing = Literal["single", "ecmp", "disjoint"]


class TransportModel(StrictModel):
    """One entry of ``transports``: a name, or a mapping with options."""

    kind: str
    name: str | None = None
    routing: Routing | None = None
    congestion: str | None = None
    udp_port: int | None = Field(default=None, ge=1, le=65535)
    evs_per_path: int | None = Field(default=None, ge=1, le=64)

    @property
    def label(self) -> str:
        """The name that tables and plots use."""
        return self.name or self.kind

    def options(self) -> dict[str, Any]:
        """Options of the transport that the file sets."""
        fields = {"congestion": self.congestion, "udp_port": self.udp_port, "evs_per_path": self.evs_per_path}
        return {key: value for key, value in fields.items() if value is not None}


class PermutationModel(StrictModel):
    """``workload: {kind: permutation}``: every host sends to one other and receives from one other."""

    kind: Literal["permutation"]
    message: Size
    load: Literal["saturate"] = "saturate"
    outstanding: int = Field(default=2, ge=1, le=MOST_OUTSTANDING)
    count: int | None = Field(default=None, ge=1)
    cross_leaf: bool = True

    def compile(self, fabric: Fabric, seed: int) -> Workload:
        """The workload for a fabric; the pairs are drawn by the seed."""
        return compile_permutation(
            fabric,
            seed=seed,
            size=self.message,
            outstanding=self.outstanding,
            count=self.count,
            cross_leaf=self.cross_leaf,
        )


class FlowsModel(StrictModel):
    """``workload: {kind: flows}``: the pairs that the file lists."""

    kind: Literal["flows"]
    pairs: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    message: Size
    load: Literal["saturate"] = "saturate"
    outstanding: int = Field(default=2, ge=1, le=MOST_OUTSTANDING)
    count: int | None = Field(default=None, ge=1)

    def compile(self, _fabric: Fabric, _seed: int) -> Workload:
        """The workload; the same for every seed."""
        pairs = [(source, target) for source, target in self.pairs]
        return saturating(pairs, size=self.message, outstanding=self.outstanding, count=self.count)


WorkloadModel = Annotated[PermutationModel | FlowsModel, Field(discriminator="kind")]


class FailureModel(StrictModel):
    """One entry of ``failures``: at a time, a link goes down (for a while, or for good) or comes up."""

    not_yet: ClassVar[dict[str, str]] = {
        "switch": "only link failures are supported so far",
        "plane": "only link failures are supported so far",
        "host": "only link failures are supported so far",
    }

    at: Duration
    link: str
    do: Literal["down", "up"] = "down"
    for_: Duration | None = Field(default=None, alias="for")


class ExperimentModel(StrictModel):
    """An experiment file.

    Keys that a file must have are optional here, so that a mistake in one of them does not hide those in others;
    `load_experiment` demands them.
    """

    needed: ClassVar[dict[str, str]] = {
        "topology": "for example `{file: ../topologies/multi_plane.yaml}`",
        "transports": "for example `[tcp, mrc]`",
        "workload": "for example `{kind: permutation, message: 1 MB}`",
    }

    not_yet: ClassVar[dict[str, str]] = {"sweep": "use --set for one value at a time so far"}

    version: Literal[1]
    name: str | None = None
    topology: dict[str, Any] = Field(default_factory=dict)
    dataplane: Literal["openflow"] = "openflow"
    datapath: Literal["user", "kernel"] | None = None
    controller: Literal["auto", "os-ken", "ryu"] = "auto"
    convergence: Duration = 0.5
    transports: list[str | TransportModel] = Field(default_factory=list)
    workload: WorkloadModel | None = None
    duration: Duration = 10.0
    warmup: Duration | None = None
    drain: Duration = 5.0
    failures: list[FailureModel] = Field(default_factory=list)
    repeat: int = Field(default=1, ge=1, le=MOST_REPETITIONS)
    seed: int = Field(default=1, ge=0, lt=1 << 32)

    @property
    def warmup_s(self) -> float:
        """What is left out of the measurement: 1 s unless the file says otherwise, and 0 s for a counted workload."""
        if self.warmup is not None:
            return self.warmup
        counted = self.workload is not None and self.workload.count is not None
        return 0.0 if counted else min(DEFAULT_WARMUP_S, self.duration / 2)

    def compile_workload(self, fabric: Fabric, seed: int) -> Workload:
        """The workload for a fabric, drawn by the seed."""
        assert self.workload is not None  # load_experiment demands it
        return self.workload.compile(fabric, seed)

    def transport_models(self) -> list[TransportModel]:
        """The transports, each as a mapping with options."""
        return [TransportModel(kind=item) if isinstance(item, str) else item for item in self.transports]


@dataclass(frozen=True)
class Experiment:
    """An experiment that has been checked, with its fabric.

    Attributes:
        path: the file it came from.
        topology_path: the topology's file, or None when it is written in the experiment.
        resolved: the experiment as YAML, with all settings applied.
        resolved_topology: the topology as YAML, with all settings applied; builds an identical fabric.
    """

    name: str
    path: Path
    topology_path: Path | None
    model: ExperimentModel
    topology: Topology
    fabric: Fabric
    resolved: str
    resolved_topology: str


def load_experiment(path: Path, settings: list[tuple[Any, Any, str]] | None = None) -> Experiment:
    """Read, check and resolve an experiment file.

    Args:
        settings: (key path, value, origin) as `topologies.document.parse_setting` returns them.

    Raises:
        InputErrors: every mistake in the file, in its topology and in the settings.
    """
    document = Document.load(path)
    for key, value, origin in settings or []:
        document.set(key, value, origin)
    built: list[tuple[Path | None, Topology, Fabric, str]] = []

    def check(model: ExperimentModel, problems: Problems) -> None:
        for key, hint in ExperimentModel.needed.items():
            if not problems.broken(key) and not document.get(key):
                problems.add(key, "is missing", hint)
        if not problems.broken("topology"):
            try:
                built.append(_load_topology(document, path))
            except InputErrors as error:
                problems.extend(error.errors)
        fabric = built[0][2] if built else None
        _check_transports(model, problems)
        _check_times(model, problems)
        _check_workload(model, fabric, problems)
        _check_failures(model, fabric, problems)

    model = document.validate(ExperimentModel, check)
    topology_path, topology, fabric, resolved_topology = built[0]
    return Experiment(
        name=model.name or path.stem,
        path=path,
        topology_path=topology_path,
        model=model,
        topology=topology,
        fabric=fabric,
        resolved=document.dump(),
        resolved_topology=resolved_topology,
    )


def _load_topology(document: Document, path: Path) -> tuple[Path | None, Topology, Fabric, str]:
    """The topology that an experiment names (``file:`` with overrides) or spells out."""
    section = document.section("topology")
    named = section.get("file")
    if named is None:
        source, file = section, None
    else:
        if not isinstance(named, str):
            raise InputErrors([document.error("topology.file", "must be a path", "a file of topologies/")])
        file = (path.parent / named).resolve()
        if not file.is_file():
            hint = "relative to the experiment's folder"
            raise InputErrors([document.error("topology.file", f"no such file: {named}", hint)])
        source = Document.load(file)
        del section.data["file"]
        source.overlay(section)
    topology = load_topology(source)
    fabric = build(topology)
    return file, topology, fabric, dump_topology(topology)


def _check_transports(model: ExperimentModel, problems: Problems) -> None:
    seen: set[str] = set()
    for number, item in enumerate(model.transports):
        entry = TransportModel(kind=item) if isinstance(item, str) else item
        where = f"transports.{number}" + ("" if isinstance(item, str) else ".kind")
        kind = TRANSPORTS.get(entry.kind)
        if kind is None:
            problems.add(where, f"no such transport: {entry.kind}", did_you_mean(entry.kind, TRANSPORTS))
            continue
        for option in entry.options():
            if option not in kind.options:
                takes = ", ".join(sorted(kind.options))
                problems.add(f"transports.{number}.{option}", f"{entry.kind} has no such option", f"it has: {takes}")
        if entry.label in seen:
            problems.add(f"transports.{number}", f"{entry.label} is listed twice", "give one of them a `name:`")
        seen.add(entry.label)


def _check_times(model: ExperimentModel, problems: Problems) -> None:
    if not 0 < model.duration <= LONGEST_S:
        problems.add("duration", f"must be more than 0 s and at most {LONGEST_S:g} s")
    if problems.broken("duration"):
        return
    if model.warmup is not None and model.warmup >= model.duration:
        problems.add("warmup", "must be shorter than the duration", f"duration is {model.duration:g} s")
    if model.convergence > LONGEST_S:
        problems.add("convergence", f"must be at most {LONGEST_S:g} s")


def _check_workload(model: ExperimentModel, fabric: Fabric | None, problems: Problems) -> None:
    workload = model.workload
    if workload is None:
        return
    if not SMALLEST_MESSAGE_BYTES <= workload.message <= LARGEST_MESSAGE_BYTES:
        problems.add("workload.message", f"must be from {SMALLEST_MESSAGE_BYTES} B to 1 GiB")
    if fabric is None or not isinstance(workload, FlowsModel):
        return
    hosts = [host.name for host in fabric.hosts]
    for number, (source, target) in enumerate(workload.pairs):
        for end, name in enumerate((source, target)):
            if name not in hosts:
                hint = did_you_mean(name, hosts) or f"there are {hosts[0]} to {hosts[-1]}"
                problems.add(f"workload.pairs.{number}.{end}", f"no such host: {name}", hint)
        if source == target:
            problems.add(f"workload.pairs.{number}", f"{source} sends to itself")


def _check_failures(model: ExperimentModel, fabric: Fabric | None, problems: Problems) -> None:
    for number, failure in enumerate(model.failures):
        key = f"failures.{number}"
        if failure.at >= model.duration and not problems.broken("duration"):
            problems.add(f"{key}.at", "is after the end", f"duration is {model.duration:g} s")
        if failure.for_ is not None and failure.do == "up":
            problems.add(f"{key}.for", "only goes with `do: down`")
        if failure.for_ == 0:
            problems.add(f"{key}.for", "must be more than 0 s")
        if fabric is not None and failure.link not in fabric.link:
            message = f"no such link: {failure.link}"
            problems.add(f"{key}.link", message, did_you_mean(failure.link, fabric.link))
