"""Cells that belong together: the repetitions of one transport, one routing and one set of swept parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from results.errors import ResultError
from results.reader import Cell, Run
from results.schema import Verdict
from results.units import transport_name

_SEVERITY: tuple[Verdict, ...] = ("valid", "host-limited", "invalid")


@dataclass(frozen=True)
class Group:
    """The repetitions of one point of a comparison.

    Attributes:
        run: the run they come from.
        label: short and unique within the comparison.
        short: the label without the swept parameters.
        params: the swept keys and their values.
        cells: the n cells that count.
        failures: why each of the others does not: ``<cell id>: <status>: <reason>``.
        unsupported: number of cells whose transport the machine cannot run; neither measured nor failed.
        running: number of cells that are not over yet.
        verdict: the worst of the cells that count, ``invalid`` if there is none.
        reasons: why the verdict is not ``valid``, each once.
    """

    run: Run
    transport: str
    routing: str | None
    params: dict[str, Any]
    label: str
    short: str
    cells: tuple[Cell, ...]
    failures: tuple[str, ...]
    unsupported: int
    running: int
    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of repetitions the numbers are made of."""
        return len(self.cells)

    @property
    def note(self) -> str:
        """``n = 3``, with ``host-limited`` where that is so: for legends."""
        return f"n = {self.n}" + (", host-limited" if self.verdict == "host-limited" else "")


def group_cells(runs: Sequence[Run]) -> list[Group]:
    """The groups of one run or of several, in the order in which they first appear.

    A cell counts if it ended as ``done``, its verdict is not ``invalid`` and its tables can be read.
    """
    collected: dict[tuple[int, str, str | None, str], list[Cell]] = {}
    for number, run in enumerate(runs):
        for cell in run.cells:
            record = cell.record
            key = (number, record.transport, record.routing, json.dumps(record.params, sort_keys=True, default=str))
            collected.setdefault(key, []).append(cell)
    keys = list(collected)
    return [
        _group(
            runs[key[0]],
            collected[key],
            _label(key, keys, runs, collected[key][0].record.params),
            _label(key, keys, runs, {}),
        )
        for key in keys
    ]


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The most severe of some verdicts; ``valid`` of none."""
    return max(verdicts, key=_SEVERITY.index, default="valid")


def facets(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Groups by their swept parameters, in order: what belongs into one plot. The title is empty without a sweep."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(params_text(group.params), []).append(group)
    return list(found.items())


def params_text(params: dict[str, Any]) -> str:
    """``planes = 4, ecn = on``: the last part of each swept key and its value."""
    return ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in params.items())


def _group(run: Run, cells: list[Cell], label: str, short: str) -> Group:
    usable: list[Cell] = []
    failures: list[str] = []
    unsupported = running = 0
    for cell in cells:
        record = cell.record
        if record.status == "unsupported":
            unsupported += 1
        elif record.status == "running":
            running += 1
        elif record.status != "done":
            failures.append(f"{record.id}: {record.status.replace('_', ' ')}: {record.error or 'no reason recorded'}")
        elif record.verdict == "invalid":
            failures.append(f"{record.id}: invalid: {'; '.join(record.reasons) or 'no reason recorded'}")
        else:
            problem = _unreadable(cell)
            if problem:
                failures.append(f"{record.id}: {problem}")
            else:
                usable.append(cell)
    first = cells[0].record
    return Group(
        run=run,
        transport=first.transport,
        routing=first.routing,
        params=first.params,
        label=label,
        short=short,
        cells=tuple(usable),
        failures=tuple(failures),
        unsupported=unsupported,
        running=running,
        verdict=worst([cell.record.verdict for cell in usable]) if usable else "invalid",
        reasons=tuple(dict.fromkeys(reason for cell in usable for reason in cell.record.reasons)),
    )


def _unreadable(cell: Cell) -> str:
    try:
        _ = cell.goodput, cell.messages, cell.evs
    except ResultError as error:
        return f"{error.file.name}: {error.message}"
    return ""


def _label(
    key: tuple[int, str, str | None, str],
    keys: Sequence[tuple[int, str, str | None, str]],
    runs: Sequence[Run],
    params: dict[str, Any],
) -> str:
    number, transport, routing, _ = key
    label = transport_name(transport)
    if len({other[2] for other in keys if other[1] == transport}) > 1:
        label += f" over {routing or 'unknown routing'}"
    if params:
        label += f", {params_text(params)}"
    if len(runs) > 1:
        names = [run.manifest.name for run in runs]
        label += f" [{names[number] if len(set(names)) == len(names) else runs[number].id}]"
    return label
