"""``run.py plan``: what an experiment would do, without doing it. Needs no root."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.console import print_json
from cli.options import ExperimentFile, Json, Settings, settings_of
from controller.program import render
from controller.routes import compile as compile_routes
from experiments.capacity import payload_share_of
from experiments.estimate import experiment_seconds
from experiments.failures import timeline
from experiments.model import Experiment, load_experiment
from experiments.runner import plan_cells
from experiments.transports.registry import TRANSPORTS
from testbed.shaping import tc_lines
from topologies.capacity import capacity_bps
from topologies.ev import ev_set
from topologies.quantities import format_duration, format_rate, format_size
from topologies.rtt import base_rtt_s


def command(
    file: ExperimentFile,
    settings: Settings = None,
    flows: Annotated[bool, typer.Option("--flows", help="Also every flow and group of every switch.")] = False,
    as_json: Json = False,
) -> None:
    """Show what an experiment would do: fabric, addresses, EVs, rules, queues, failures, time. Needs no root."""
    experiment = load_experiment(file, settings_of(settings))
    if as_json:
        print_json(_document(experiment))
        return
    console = Console()
    _show_fabric(console, experiment)
    _show_hosts(console, experiment)
    _show_links(console, experiment)
    _show_rules(console, experiment, flows)
    _show_cells(console, experiment)


def _modes(experiment: Experiment) -> list[str]:
    entries = experiment.model.transport_models()
    return sorted({entry.routing or TRANSPORTS[entry.kind].routing for entry in entries})


def _show_fabric(console: Console, experiment: Experiment) -> None:
    fabric = experiment.fabric
    console.print(
        f"[bold]{experiment.name}[/bold] on {fabric.name} ({fabric.kind}): {len(fabric.hosts)} hosts, "
        f"{len(fabric.switches)} switches, {len(fabric.links)} links, {fabric.planes} planes, MTU {fabric.mtu} B"
    )


def _show_hosts(console: Console, experiment: Experiment) -> None:
    table = Table("host", "plane", "interface", "MAC", "IPv6", "IPv4", title="Addresses", title_justify="left")
    for (host, plane), port in experiment.fabric.host_port.items():
        table.add_row(host, str(plane), port.interface, port.mac, port.ipv6, port.ipv4)
    console.print(table)


def _show_links(console: Console, experiment: Experiment) -> None:
    fabric = experiment.fabric
    title = "Links (each shaped at both ends; bdp: rate x base RTT of the longest path)"
    table = Table("links", "of them", "rate", "delay", "loss", "queue", title=title, title_justify="left")
    groups: dict[Any, list[str]] = {}
    for link in fabric.links:
        groups.setdefault((link.tier, link.params), []).append(link.name)
    for (tier, params), names in groups.items():
        table.add_row(
            f"{tier}: {names[0]}" + (" ..." if len(names) > 1 else ""),
            str(len(names)),
            format_rate(params.rate_bps),
            format_duration(params.delay_s),
            f"{params.loss:.3%}",
            format_size(params.queue_bytes),
        )
    console.print(table)
    example = fabric.links[0]
    console.print("tc settings of the first link's first end:")
    for line in tc_lines(example.a.interface, example.params, fabric.mtu):
        console.print(f"  tc {line}", highlight=False)


def _show_rules(console: Console, experiment: Experiment, flows: bool) -> None:
    for mode in _modes(experiment):
        program = compile_routes(experiment.fabric, mode, seed=experiment.model.seed)
        console.print(f"routing {mode}: {program.flow_count} flows and {program.group_count} groups in all switches")
        if flows:
            console.print(render(program.switches), highlight=False, markup=False)


def _show_cells(console: Console, experiment: Experiment) -> None:
    model, fabric = experiment.model, experiment.fabric
    workload = model.compile_workload(fabric, model.seed)
    share = payload_share_of(fabric)
    table = Table("from", "to", "base RTT", "EVs by plane", title="Pairs of the first repetition", title_justify="left")
    for source, target in workload.pairs:
        evs = ev_set(fabric, source, target)
        counts = ", ".join(f"p{plane}: {len(values)}" for plane, values in evs.items())
        table.add_row(source, target, format_duration(base_rtt_s(fabric, source, target)), counts)
    console.print(table)
    capacity = capacity_bps(fabric, workload.pairs, payload_share=share)
    console.print(f"payload capacity for these pairs: {capacity / 1e6:.2f} Mbit/s ({share:.1%} of the wire is payload)")
    for action in timeline(model.failures):
        console.print(f"at {action.at_s:g} s: {action.link} goes {'up' if action.up else 'down'}")
    cells = plan_cells(experiment)
    console.print(f"{len(cells)} cells, about {experiment_seconds(experiment):.0f} s:")
    for cell in cells:
        console.print(f"  {cell.label}, seed {cell.seed}")


def _document(experiment: Experiment) -> dict[str, Any]:
    model, fabric = experiment.model, experiment.fabric
    workload = model.compile_workload(fabric, model.seed)
    share = payload_share_of(fabric)
    routing = {}
    for mode in _modes(experiment):
        program = compile_routes(fabric, mode, seed=model.seed)
        routing[mode] = {"flows": program.flow_count, "groups": program.group_count}
    return {
        "schema": 1,
        "name": experiment.name,
        "fabric": {
            "hosts": [host.name for host in fabric.hosts],
            "switches": [switch.name for switch in fabric.switches],
            "links": [
                {
                    "name": link.name,
                    "rate_bps": link.params.rate_bps,
                    "delay_s": link.params.delay_s,
                    "loss": link.params.loss,
                    "queue_bytes": link.params.queue_bytes,
                }
                for link in fabric.links
            ],
            "planes": fabric.planes,
            "mtu_bytes": fabric.mtu,
        },
        "routing": routing,
        "pairs": [
            {
                "src": source,
                "dst": target,
                "base_rtt_s": base_rtt_s(fabric, source, target),
                "evs": {str(plane): list(values) for plane, values in ev_set(fabric, source, target).items()},
            }
            for source, target in workload.pairs
        ],
        "capacity_bps": capacity_bps(fabric, workload.pairs, payload_share=share),
        "failures": [
            {"at_s": action.at_s, "link": action.link, "up": action.up} for action in timeline(model.failures)
        ],
        "cells": [
            {"transport": cell.transport.label, "repetition": cell.repetition, "seed": cell.seed}
            for cell in plan_cells(experiment)
        ],
        "estimate_s": experiment_seconds(experiment),
    }
