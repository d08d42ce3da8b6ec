"""Decide what a host may send when. Pure: no clock, no sockets."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from experiments.workloads.base import Message, Stream


class Schedule:
    """The messages of one host.

    Args:
        messages: those whose source is this host; their dependencies may name messages that arrive here.
        streams: those whose source is this host.
    """

    def __init__(self, messages: Iterable[Message], streams: Iterable[Stream]) -> None:
        self._waiting: dict[int, set[int]] = {}
        self._held: dict[int, Message] = {}
        self._dependants: dict[int, list[int]] = {}
        self._timed: list[tuple[float, int]] = []
        self._done: set[int] = set()
        for message in messages:
            self._held[message.id] = message
            missing = set(message.after)
            if missing:
                self._waiting[message.id] = missing
                for other in missing:
                    self._dependants.setdefault(other, []).append(message.id)
            else:
                heapq.heappush(self._timed, (message.at_s, message.id))
        self._streams = {stream.channel: stream for stream in streams}
        self._posted = {stream.channel: 0 for stream in streams}
        self._under_way = {stream.channel: 0 for stream in streams}
        self._stream_of: dict[int, int] = {}

    def next_time_s(self) -> float | None:
        """Earliest start among the messages whose dependencies are met, in seconds since traffic began."""
        return self._timed[0][0] if self._timed else None

    def due(self, now_s: float) -> list[tuple[int, int, int]]:
        """What may start now, as (channel, message id, size); each is given out once."""
        found = []
        while self._timed and self._timed[0][0] <= now_s:
            message = self._held.pop(heapq.heappop(self._timed)[1])
            found.append((message.channel, message.id, message.size))
        for channel, stream in self._streams.items():
            while self._under_way[channel] < stream.outstanding and not self._exhausted(stream):
                identity = stream.message_id(self._posted[channel])
                self._posted[channel] += 1
                self._under_way[channel] += 1
                self._stream_of[identity] = channel
                found.append((channel, identity, stream.size))
        return found

    def _exhausted(self, stream: Stream) -> bool:
        return stream.count is not None and self._posted[stream.channel] >= stream.count

    def completed(self, message: int) -> None:
        """A message was delivered here, or sent from here and confirmed (or given up)."""
        channel = self._stream_of.pop(message, None)
        if channel is not None:
            self._under_way[channel] -= 1
        for dependant in self._dependants.pop(message, ()):
            missing = self._waiting[dependant]
            missing.discard(message)
            if not missing:
                del self._waiting[dependant]
                heapq.heappush(self._timed, (self._held[dependant].at_s, dependant))

    def finished(self) -> bool:
        """Whether nothing is left to be sent: no message held, every stream exhausted and confirmed."""
        return not self._held and not self._stream_of and all(self._exhausted(s) for s in self._streams.values())
