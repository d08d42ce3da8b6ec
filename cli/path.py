"""``run.py path``: hop by hop, where packets between two hosts go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cli.console import BAD_INPUT, CommandError, print_json
from cli.options import Json, Settings, settings_of
from controller.packet import ev_packet
from controller.routes import MODES
from controller.routes import compile as compile_routes
from controller.walk import Walk, Walker
from experiments.model import load_experiment
from topologies.document import Document
from topologies.errors import did_you_mean
from topologies.ev import EvLayout, ev_set
from topologies.graph import Fabric
from topologies.load import load_fabric


@dataclass(frozen=True)
class _Way:
    """Where one EV goes in one mode. ``certain`` is False where a switch chooses in a way that cannot be predicted."""

    mode: str
    ev: int
    plane: int
    walk: Walk

    def document(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "ev": self.ev,
            "plane": self.plane,
            "certain": self.walk.exact,
            "paths": [
                [
                    {"link": hop.link, "from": hop.out.node, "port": hop.out.number, "to": hop.into.node}
                    for hop in delivery.hops
                ]
                for delivery in self.walk.deliveries
            ],
            "drops": [{"at": drop.at, "reason": drop.reason} for drop in self.walk.drops],
        }

    def lines(self) -> Iterator[str]:
        head = f"{self.mode:<8} EV {self.ev:#010x} plane {self.plane}"
        sign = "" if self.walk.exact else "any of: "
        for delivery in self.walk.deliveries:
            nodes = " > ".join([delivery.hops[0].out.node, *(hop.into.node for hop in delivery.hops)])
            yield f"{head}  {sign}{nodes}"
        for drop in self.walk.drops:
            yield f"{head}  dropped at {drop.at}: {drop.reason}"


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An experiment or a topology (YAML).")],
    src: Annotated[str, typer.Argument(metavar="SRC", help="Source host.")],
    dst: Annotated[str, typer.Argument(metavar="DST", help="Destination host.")],
    ev: Annotated[str | None, typer.Option("--ev", help="One EV (0x... or decimal) or a number of the set.")] = None,
    mode: Annotated[str | None, typer.Option("--mode", help=f"One of {', '.join(MODES)}; all of them else.")] = None,
    down: Annotated[list[str] | None, typer.Option("--down", metavar="LINK", help="A link that is down.")] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show hop by hop where each EV between two hosts goes, in each routing mode. Needs no root.

    Switches that choose by hash are predicted exactly for Open vSwitch.
    """
    fabric, seed = _fabric(file, settings)
    _check_names(fabric, src, dst, mode, down or [])
    evs = _evs(fabric, src, dst, ev)
    failed = frozenset(down or [])
    ways = []
    for name in [mode] if mode else MODES:
        program = compile_routes(fabric, name, seed=seed, failed_links=failed)
        walker = Walker(fabric, program, failed)
        for value in evs:
            plane = EvLayout.decode(value).plane
            packet = ev_packet(fabric, src, dst, value)
            ways.append(_Way(name, value, plane, walker.walk(packet, src, plane)))
    if as_json:
        print_json([way.document() for way in ways])
        return
    console = Console()
    for way in ways:
        for line in way.lines():
            console.print(line, highlight=False, soft_wrap=True)


def _fabric(file: Path, settings: list[str] | None) -> tuple[Fabric, int]:
    document = Document.load(file)
    changes = settings_of(settings)
    if isinstance(document.data, dict) and "kind" in document.data:
        for key, value, origin in changes:
            document.set(key, value, origin)
        return load_fabric(document), 1
    experiment = load_experiment(file, changes)
    return experiment.fabric, experiment.model.seed


def _check_names(fabric: Fabric, src: str, dst: str, mode: str | None, down: list[str]) -> None:
    hosts = [host.name for host in fabric.hosts]
    for name in (src, dst):
        if name not in hosts:
            hint = did_you_mean(name, hosts) or f"there are {hosts[0]} to {hosts[-1]}"
            raise CommandError(f"no such host: {name} ({hint})", BAD_INPUT)
    if src == dst:
        raise CommandError(f"{src} reaches itself without a network", BAD_INPUT)
    if mode is not None and mode not in MODES:
        raise CommandError(f"no such routing mode: {mode} (there are {', '.join(MODES)})", BAD_INPUT)
    for link in down:
        if link not in fabric.link:
            raise CommandError(f"no such link: {link} ({did_you_mean(link, fabric.link)})", BAD_INPUT)


def _evs(fabric: Fabric, src: str, dst: str, wanted: str | None) -> list[int]:
    """The EVs to follow: one for each path of each plane, or the one that was asked for."""
    found = [ev for evs in ev_set(fabric, src, dst).values() for ev in evs]
    if wanted is None:
        return found
    try:
        value = int(wanted, 0)
    except ValueError:
        raise CommandError(f"--ev {wanted}: not a number", BAD_INPUT) from None
    if value < len(found):
        return [found[value]]
    try:
        EvLayout.decode(value)
        if (src, EvLayout.decode(value).plane) not in fabric.host_port:
            raise ValueError(f"{src} has no interface in plane {EvLayout.decode(value).plane}")
    except ValueError as error:
        raise CommandError(f"--ev {wanted}: {error} (0 to {len(found) - 1}, or a whole EV)", BAD_INPUT) from None
    return [value]
