"""A workload is a set of messages with dependencies, and streams of equal messages, over channels between hosts.

It says nothing about how a message travels: the same compiled workload runs over every transport.
"""

from __future__ import annotations

from dataclasses import dataclass

STREAM_SHIFT = 32
"""Message n of the stream on channel c has id ``(c + 1) << 32 | n``; listed messages have ids below 2**32."""


@dataclass(frozen=True)
class Channel:
    """A one-way line from a host to another: one TCP connection, one MRC queue pair. ``id`` counts from 0."""

    id: int
    src: str
    dst: str


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        id: unique in the workload, below 2**32.
        channel: id of the channel it travels on.
        size: payload in bytes.
        after: ids that must have been delivered to, or sent and confirmed by, the source host first.
        at_s: earliest start, in seconds since traffic began.
    """

    id: int
    channel: int
    size: int
    after: tuple[int, ...] = ()
    at_s: float = 0.0


@dataclass(frozen=True)
class Stream:
    """Equal messages, one after another.

    Attributes:
        channel: id of the channel they travel on.
        size: payload of each, in bytes.
        outstanding: how many may be under way at once; the next is posted when one has been delivered.
        count: how many in all, or None for as long as the experiment lasts.
    """

    channel: int
    size: int
    outstanding: int
    count: int | None = None

    def message_id(self, number: int) -> int:
        """Id of the stream's message ``number``, counted from 0."""
        return (self.channel + 1) << STREAM_SHIFT | number


@dataclass(frozen=True)
class Workload:
    """A compiled workload."""

    channels: tuple[Channel, ...]
    messages: tuple[Message, ...] = ()
    streams: tuple[Stream, ...] = ()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """(source, destination) of each channel, in order."""
        return tuple((channel.src, channel.dst) for channel in self.channels)

    def largest(self, channel: int) -> int:
        """Size in bytes of the largest message on a channel; 0 when it carries none."""
        messages = [message.size for message in self.messages if message.channel == channel]
        streams = [stream.size for stream in self.streams if stream.channel == channel]
        return max(messages + streams, default=0)

    def outstanding(self, channel: int) -> int:
        """How many messages of a channel may be under way at once."""
        return max([stream.outstanding for stream in self.streams if stream.channel == channel], default=4)


def saturating(pairs: list[tuple[str, str]], *, size: int, outstanding: int, count: int | None = None) -> Workload:
    """One channel and one stream for each pair."""
    channels = tuple(Channel(number, src, dst) for number, (src, dst) in enumerate(pairs))
    streams = tuple(Stream(channel.id, size, outstanding, count) for channel in channels)
    return Workload(channels=channels, streams=streams)
