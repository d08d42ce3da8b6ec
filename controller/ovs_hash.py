"""Which bucket Open vSwitch takes for ``selection_method=hash``.

Own wording of what Open vSwitch does (``ofproto/ofproto-dpif-xlate.c``: hash over the chosen fields, then the bucket
with the highest score; ``lib/hash.h``: MurmurHash3 with 32 bits, the variant compiled without SSE 4.2, as distributions
do). A build for a newer processor uses another hash: ``tests/emulation`` compares with the installed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.program import Bucket

_U32 = 0xFFFF_FFFF

FIELD_ORDER = ("ipv4_src", "ipv4_dst", "ipv6_src", "ipv6_dst", "tcp_src", "tcp_dst", "udp_src", "udp_dst")
"""Open vSwitch hashes fields in the order of its own field numbers, whatever the order in the message."""


def select_bucket(buckets: Sequence[Bucket], seed: int, fields: Iterable[bytes]) -> Bucket | None:
    """The bucket that a packet takes, of those given (leave out dead ones); None when there is none.

    Args:
        seed: ``selection_method_param``.
        fields: values of the hash fields that the packet has, in network byte order, ordered as ``FIELD_ORDER``.
    """
    basis = _hash_u64(seed)
    for value in fields:
        basis = _hash_bytes(value, basis)
    best: Bucket | None = None
    best_score = 0
    for bucket in buckets:
        score = (_hash_two_words(bucket.bucket_id, basis) & 0xFFFF) * bucket.weight
        if score >= best_score:
            best, best_score = bucket, score
    return best


def _rotate(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & _U32


def _add(state: int, word: int) -> int:
    """One step of MurmurHash3."""
    mixed = _rotate(word * 0xCC9E_2D51 & _U32, 15) * 0x1B87_3593 & _U32
    return (_rotate(state ^ mixed, 13) * 5 + 0xE654_6B64) & _U32


def _finish(state: int) -> int:
    """MurmurHash3's last step."""
    state ^= state >> 16
    state = state * 0x85EB_CA6B & _U32
    state ^= state >> 13
    state = state * 0xC2B2_AE35 & _U32
    return state ^ (state >> 16)


def _hash_two_words(first: int, second: int) -> int:
    return _finish(_add(_add(first, 0), second) ^ 8)


def _hash_u64(number: int) -> int:
    return _finish(_add(_add(0, number & _U32), number >> 32) ^ 8)


def _hash_bytes(data: bytes, basis: int) -> int:
    state = basis
    for start in range(0, len(data), 4):
        # As the processor reads them (x86 and ARM); a short last word is filled up with zeros.
        state = _add(state, int.from_bytes(data[start : start + 4], "little"))
    return _finish(state ^ len(data))
