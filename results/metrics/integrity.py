"""What happened to the messages: delivered whole, lost, corrupt, or unfinished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from results.reader import Cell


@dataclass(frozen=True)
class MessageCounts:
    """Numbers of messages, warm-up included; the four states add up to ``total``.

    Attributes:
        corrupt: arrived with content that is not what was sent.
        unfinished: still on their way when the cell ended; no fault, unless the workload was to run to its end.
    """

    total: int = 0
    delivered: int = 0
    lost: int = 0
    corrupt: int = 0
    unfinished: int = 0

    def __add__(self, other: MessageCounts) -> MessageCounts:
        return MessageCounts(
            self.total + other.total,
            self.delivered + other.delivered,
            self.lost + other.lost,
            self.corrupt + other.corrupt,
            self.unfinished + other.unfinished,
        )


def message_counts(cell: Cell) -> MessageCounts:
    """Count a cell's messages. One said to be delivered whose hash did not match is corrupt.

    Raises:
        ResultError: the message table is damaged.
    """
    frame = cell.messages
    said_delivered = frame["status"] == "delivered"
    corrupt = (frame["status"] == "corrupt") | (said_delivered & ~frame["ok"])
    return MessageCounts(
        total=len(frame),
        delivered=int((said_delivered & frame["ok"]).sum()),
        lost=int((frame["status"] == "lost").sum()),
        corrupt=int(corrupt.sum()),
        unfinished=int((frame["status"] == "unfinished").sum()),
    )


def total_counts(cells: Iterable[Cell]) -> MessageCounts:
    """Counts of several repetitions together."""
    return sum((message_counts(cell) for cell in cells), MessageCounts())
