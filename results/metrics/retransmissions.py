"""Packets sent again."""

from __future__ import annotations

from collections.abc import Iterable

from results.reader import Cell


def counter_total(cell: Cell, name: str) -> int | None:
    """Sum of one named counter over the cell's hosts; None if no host has it.

    Where the hosts have none, the column of that name in the EV table counts.

    Raises:
        ResultError: the EV table is damaged.
    """
    values = [counters[name] for counters in cell.record.counters.values() if counters.get(name) is not None]
    if values:
        return int(sum(values))
    if name in cell.evs.columns and len(cell.evs):
        return int(cell.evs[name].sum())
    return None


def retransmitted_packets(cells: Iterable[Cell]) -> int | None:
    """Data packets sent again by all hosts in all the cells together, warm-up included.

    None if any of the cells does not know: a sum with a hole in it would look better than it is.

    Raises:
        ResultError: an EV table is damaged.
    """
    return _total(cells, "retransmitted_packets")


def retransmitted_share(cells: Iterable[Cell]) -> float | None:
    """Retransmitted / all data packets sent, over the cells together, from 0 to 1. None if not known."""
    listed = list(cells)
    again, sent = _total(listed, "retransmitted_packets"), _total(listed, "sent_packets")
    return again / sent if again is not None and sent else None


def _total(cells: Iterable[Cell], name: str) -> int | None:
    totals = [counter_total(cell, name) for cell in cells]
    known = [total for total in totals if total is not None]
    return sum(known) if known and len(known) == len(totals) else None
