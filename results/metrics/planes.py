"""How the bytes were spread over the planes."""

from __future__ import annotations

from collections.abc import Iterable

from results.metrics.timeline import Timeline, timeline, window
from results.reader import Cell


def plane_timelines(cell: Cell) -> dict[int, Timeline]:
    """Goodput over time of each plane, planes without a byte included; empty if the planes are not known.

    Raises:
        ResultError: the goodput table is damaged.
    """
    seen = {int(plane) for plane in cell.goodput["plane"].unique()}
    if not seen - {0}:
        return {}
    return {plane: timeline(cell, plane=plane) for plane in sorted(set(range(1, cell.record.planes + 1)) | seen - {0})}


def plane_shares(cell: Cell) -> dict[int, float]:
    """Payload bytes of each plane / of all planes, within the measurement window; they add up to 1.

    Empty if the planes are not known or nothing was delivered.

    Raises:
        ResultError: the goodput table is damaged.
    """
    sums = {plane: float(line.bytes[window(cell, line)].sum()) for plane, line in plane_timelines(cell).items()}
    total = sum(sums.values())
    return {plane: part / total for plane, part in sums.items()} if total else {}


def mean_plane_shares(cells: Iterable[Cell]) -> dict[int, float]:
    """Plane shares averaged over repetitions; empty if no cell knows them."""
    known = [shares for shares in (plane_shares(cell) for cell in cells) if shares]
    planes = sorted({plane for shares in known for plane in shares})
    return {plane: sum(shares.get(plane, 0.0) for shares in known) / len(known) for plane in planes}
