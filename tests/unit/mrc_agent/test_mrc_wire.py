"""The wire format: sizes and bit positions of the specification, and round trips of every header."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_agent.wire import headers as h
from mrc_agent.wire.data import DATA, DATA_OVERHEAD_BYTES, DATA_WITHOUT_TIMESTAMP
from mrc_agent.wire.icrc import ICRC, icrc, icrc_holds
from mrc_agent.wire.opcodes import Opcode
from mrc_agent.wire.sequence import PSN_MASK, unwrap


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << count) - 1)


def signed16() -> st.SearchStrategy[int]:
    return st.integers(-(1 << 15), (1 << 15) - 1)


HEADERS = st.one_of(
    st.builds(
        h.BTH,
        opcode=bits(8),
        destination_qp=bits(24),
        psn=bits(24),
        ack_request=st.booleans(),
        retransmission=st.booleans(),
        timestamp=st.booleans(),
        solicited=st.booleans(),
        migration=st.booleans(),
        pad=bits(2),
        version=bits(4),
        pkey=bits(16),
    ),
    st.builds(h.METH, bits(16), bits(16)),
    st.builds(h.TSETH, bits(16), st.booleans(), bits(4)),
    st.builds(h.RETH, bits(64), bits(32), bits(32)),
    st.builds(h.ImmDt, bits(32)),
    st.builds(h.AETH, bits(8), bits(24)),
    st.builds(
        h.SETH,
        ack_psn_offset=signed16(),
        entropy=bits(32),
        cack=bits(24),
        mpr=bits(8),
        sack_offset=signed16(),
        bitmap=bits(64),
        mark=bits(2),
        probe=st.booleans(),
        type=bits(4),
        next_header=bits(5),
        source_pdc=bits(16),
        destination_pdc=bits(16),
        cc_type=bits(4),
        cc_flags=bits(4),
    ),
    st.builds(h.CcState, bits(16), bits(15), st.booleans(), bits(7), bits(24)),
    st.builds(
        h.NETH,
        reason=bits(8),
        entropy=bits(32),
        psn=bits(24),
        timestamp=bits(16),
        vendor=bits(8),
        source_pdc=bits(16),
        destination_pdc=bits(16),
        cc_type=bits(4),
        cc_flags=bits(4),
        type_and_next=bits(16),
    ),
    st.builds(h.PETH, bits(16), bits(16), st.booleans(), bits(8), bits(16), bits(16)),
    st.builds(h.ERTH, bits(2), bits(32), bits(16), bits(8)),
    st.builds(h.EETH, bits(2), bits(16)),
)


@given(HEADERS, st.integers(0, 7))
def test_every_header_round_trips_at_any_offset(header: Any, offset: int) -> None:
    buffer = bytearray(64)
    header.pack_into(buffer, offset)
    assert type(header).unpack(buffer, offset) == header


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (h.BTH(0xC6, 1, 2), 12),
        (h.METH(0, 0), 4),
        (h.TSETH(0), 4),
        (h.RETH(0, 0, 0), 16),
        (h.ImmDt(0), 4),
        (h.AETH(0x1F, 0), 4),
        (h.SETH(0, 0, 0, 0, 0, 0), 28),
        (h.CcState(0, 0, False, 0, 0), 8),
        (h.NETH(1, 0, 0, 0), 20),
        (h.PETH(0, 0), 16),
        (h.ERTH(1), 16),
        (h.EETH(1), 36),
    ],
)
def test_headers_have_the_sizes_of_the_specification(header: Any, size: int) -> None:
    assert header.pack_into(bytearray(64)) == size


def test_a_data_packet_carries_88_bytes_besides_its_payload() -> None:
    assert (DATA.size, DATA_WITHOUT_TIMESTAMP.size, DATA_OVERHEAD_BYTES) == (36, 32, 88)


def test_flag_bits_stand_where_the_specification_puts_them() -> None:
    buffer = bytearray(64)
    h.BTH(Opcode.WRITE_ONLY, 0x123456, 0xABCDEF, True, True, True, True, True, 2, 5).pack_into(buffer)
    assert buffer[0] == 0xCA
    assert buffer[1] == 0x80 | 0x40 | 2 << 4 | 5  # SE, M, pad, version
    assert buffer[4:8] == bytes([0, 0x12, 0x34, 0x56])
    assert buffer[8] == 0x80 | 0x20 | 0x10  # A, rtx, ts
    assert buffer[9:12] == bytes([0xAB, 0xCD, 0xEF])
    h.SETH(-2, 0xAABBCCDD, 7, 8, -3, 1 << 63, mark=1, probe=True).pack_into(buffer)
    assert buffer[1] == 1 << 5 | 2
    assert buffer[2:8] == bytes([0xFF, 0xFE, 0xAA, 0xBB, 0xCC, 0xDD])
    assert (buffer[15], buffer[17], buffer[18:20], buffer[20]) == (7, 8, bytes([0xFF, 0xFD]), 0x80)
    h.ERTH(1, 0x0F, 0x1234).pack_into(buffer)
    assert (buffer[1], buffer[4:8], buffer[12:14]) == (1, bytes([0, 0, 0, 0x0F]), b"\x12\x34")
    h.EETH(1, 0x1234).pack_into(buffer)
    assert (buffer[1], buffer[28:30]) == (0b100, b"\x12\x34")
    h.NETH(1, 2, 3, 0x1234).pack_into(buffer)
    assert (buffer[2], buffer[13:16], buffer[16] >> 4, buffer[18:20]) == (1, b"\0\0\3", 2, b"\x12\x34")
    h.PETH(0x0102, 0x0304).pack_into(buffer)
    assert (buffer[4:6], buffer[12:14]) == (b"\1\2", b"\3\4")


def test_the_combined_codec_agrees_with_the_single_headers() -> None:
    buffer = bytearray(64)
    at = h.BTH(Opcode.WRITE_LAST, 77, 99, timestamp=True, pad=1).pack_into(buffer)
    for header in (h.METH(3, 4), h.TSETH(5), h.RETH(6, 7, 8)):
        at += header.pack_into(buffer, at)
    again = bytearray(64)
    DATA.pack_into(again, 0, 0xC8, 1 << 4, 0xFFFF, 77, 0x10 << 24 | 99, 3, 4, 5, 0x8001, 6, 7, 8)
    assert buffer == again


@given(st.binary(min_size=12, max_size=60), st.binary(max_size=300), st.data())
def test_any_changed_bit_breaks_the_integrity_check(header: bytes, payload: bytes, data: st.DataObject) -> None:
    padding = -len(payload) & 3
    packet = bytearray(header + payload + bytes(padding) + ICRC.pack(icrc(header, payload, padding)))
    assert icrc_holds(memoryview(packet))
    packet[data.draw(st.integers(0, len(packet) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert not icrc_holds(memoryview(packet))


@given(st.integers(0, 1 << 40), st.integers(-(1 << 23) + 1, (1 << 23) - 1))
def test_unwrap_finds_the_number_nearest_to_the_reference(reference: int, delta: int) -> None:
    assert unwrap((reference + delta) & PSN_MASK, reference) == reference + delta
