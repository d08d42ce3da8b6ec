"""Records become OpenFlow 1.5 messages that say the same; read back with the framework's own parser."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from controller import openflow
from controller.program import (
    ETH_IPV6,
    IP_UDP,
    Bucket,
    FlowRecord,
    GroupRecord,
    Masked,
    Match,
    Output,
    Selection,
    ToGroup,
    mac_number,
)
from controller.routes.ecmp import HASH_FIELDS

ofp = pytest.importorskip("os_ken.ofproto.ofproto_v1_5", reason="os-ken is not installed")
parser = pytest.importorskip("os_ken.ofproto.ofproto_v1_5_parser")


@pytest.fixture
def datapath() -> Any:
    return SimpleNamespace(ofproto=ofp, ofproto_parser=parser, id=1)


def on_the_wire(message: Any) -> Any:
    """Serializes a message and parses it again."""
    message.set_xid(1)
    message.serialize()
    data = bytes(message.buf)
    version, kind, length, xid = struct.unpack_from("!BBHI", data)
    assert length == len(data)
    return type(message).parser(message.datapath, version, kind, length, xid, data)


def test_a_pinned_flow_matches_masked_udp_ports_and_mac_prefixes(datapath: Any) -> None:
    match = Match(
        eth_dst=Masked(mac_number("02:01:00:02:00:00"), mac_number("ff:ff:ff:ff:00:00")),
        eth_type=ETH_IPV6,
        ip_proto=IP_UDP,
        udp_src=Masked(0xC040, 0xFFC0),
    )
    message = openflow.put_flow(datapath, FlowRecord(250, match, (Output(3),)), 7)
    message.set_xid(1)
    message.serialize()
    fields = dict(message.match.items())
    assert fields["udp_src"] == (0xC040, 0xFFC0)
    assert fields["eth_dst"] == ("02:01:00:02:00:00", "ff:ff:ff:ff:00:00")
    assert message.cookie == openflow.COOKIE | 7
    assert message.command == ofp.OFPFC_ADD


def test_a_flow_without_actions_has_no_instruction_and_so_drops(datapath: Any) -> None:
    assert openflow.put_flow(datapath, FlowRecord(0, Match()), 1).instructions == []


def test_a_flow_may_hand_on_to_a_group(datapath: Any) -> None:
    message = openflow.put_flow(datapath, FlowRecord(1, Match(in_port=4), (ToGroup(24),)), 1)
    (instruction,) = message.instructions
    assert instruction.actions[0].group_id == 24


def test_a_select_group_names_its_method_its_fields_and_its_seed(datapath: Any) -> None:
    buckets = (Bucket(3, (Output(3),)), Bucket(4, (Output(4),), weight=2, watch_port=4))
    group = GroupRecord(24, "select", buckets, Selection(HASH_FIELDS, 0x0123_4567_89AB_CDEF))
    message = openflow.put_group(datapath, group)
    message.set_xid(1)
    message.serialize()
    data = bytes(message.buf)
    body = struct.pack("!4x16sQ", b"hash", 0x0123_4567_89AB_CDEF)
    assert body in data
    fields = data[data.index(body) + len(body) :]
    assert fields[:8] == struct.pack("!HBB", 0x8000, 11 << 1, 4) + b"\xff" * 4
    assert struct.pack("!HBB", 0x8000, 15 << 1, 2) + b"\xff\xff" in fields
    assert [bucket.bucket_id for bucket in message.buckets] == [3, 4]


def test_fields_that_fill_no_whole_word_are_refused_here_and_not_by_the_switch() -> None:
    with pytest.raises(ValueError, match="udp_src fill no whole number"):
        openflow.selection_words(Selection(("udp_src",), 1))
    openflow.selection_words(Selection(("udp_src", "udp_dst"), 1))


@pytest.mark.parametrize("generation", [0, 1, 0x5390, 0xFFFF])
def test_a_purge_removes_every_other_generation_and_not_its_own(datapath: Any, generation: int) -> None:
    messages = [on_the_wire(message) for message in openflow.purge_flows(datapath, generation)]
    assert {message.command for message in messages} == {ofp.OFPFC_DELETE}

    def removed(other: int) -> bool:
        cookie = openflow.COOKIE | other
        return any(cookie & message.cookie_mask == message.cookie for message in messages)

    assert not removed(generation)
    assert all(removed(other) for other in range(0, 1 << 16, 7) if other != generation)


def test_a_removal_names_one_flow_exactly(datapath: Any) -> None:
    message = openflow.drop_flow(datapath, FlowRecord(200, Match(in_port=1), (Output(2),)))
    assert message.command == ofp.OFPFC_DELETE_STRICT
    assert message.priority == 200
    assert (message.out_port, message.out_group) == (ofp.OFPP_ANY, ofp.OFPG_ANY)


def test_a_port_is_up_only_with_a_link_and_switched_on() -> None:
    port = SimpleNamespace(state=0, config=0)
    assert openflow.port_is_up(ofp, port)
    assert not openflow.port_is_up(ofp, SimpleNamespace(state=ofp.OFPPS_LINK_DOWN, config=0))
    assert not openflow.port_is_up(ofp, SimpleNamespace(state=0, config=ofp.OFPPC_PORT_DOWN))


def test_an_error_is_told_in_words() -> None:
    refused = struct.pack("!BBHI", 6, ofp.OFPT_GROUP_MOD, 8, 1)
    text = openflow.error_text(ofp, SimpleNamespace(type=ofp.OFPET_GROUP_MOD_FAILED, code=2, data=refused))
    assert text == "OFPT_GROUP_MOD refused: OFPET_GROUP_MOD_FAILED, code 2"
