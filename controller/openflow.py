"""Records to OpenFlow 1.5 messages: the only place that builds any.

Works on the ``ofproto`` and ``ofproto_parser`` that a connected datapath brings along, so it is the same for os-ken and
Ryu. Open vSwitch needs OpenFlow 1.5 for the selection method of a group.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from controller.program import Action, FlowRecord, GroupRecord, Masked, Match, Output, Selection, mac_text

COOKIE = 0x4D52_4300_0000_0000
"""Marks our flows ("MRC"); the low 16 bits are the generation."""

GENERATION_BITS = 16

# Open vSwitch extensions: Netronome's selection method property (experimenter 0x154d, type 1), and "add or modify",
# which saves asking whether the group exists.
_NETRONOME = 0x0000_154D
_SELECTION_METHOD = 1
_ADD_OR_MODIFY_GROUP = 0x8000

_OXM_CLASS = 0x8000
_OXM_FIELDS = {
    "ipv4_src": (11, 4),
    "ipv4_dst": (12, 4),
    "tcp_src": (13, 2),
    "tcp_dst": (14, 2),
    "udp_src": (15, 2),
    "udp_dst": (16, 2),
    "ipv6_src": (26, 16),
    "ipv6_dst": (27, 16),
}
"""OpenFlow 1.5.1, table 13: field number and length in bytes."""


def put_flow(datapath: Any, flow: FlowRecord, generation: int) -> Any:
    """Adds the flow or replaces the one with the same priority and match in place."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    instructions = []
    if flow.actions:
        actions = [_action(datapath, action) for action in flow.actions]
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions))
    return parser.OFPFlowMod(
        datapath,
        cookie=COOKIE | generation,
        command=ofp.OFPFC_ADD,
        priority=flow.priority,
        match=_match(datapath, flow.match),
        instructions=instructions,
    )


def drop_flow(datapath: Any, flow: FlowRecord) -> Any:
    """Removes exactly this flow."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPFlowMod(
        datapath,
        command=ofp.OFPFC_DELETE_STRICT,
        priority=flow.priority,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=_match(datapath, flow.match),
    )


def purge_flows(datapath: Any, generation: int) -> list[Any]:
    """Removes every flow whose generation differs from this one.

    OpenFlow can select flows by equal cookie bits only: a generation differs in at least one bit, so each bit gets a
    message that removes the flows which differ in that bit.
    """
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return [
        parser.OFPFlowMod(
            datapath,
            cookie=(generation ^ 1 << bit) & 1 << bit,
            cookie_mask=1 << bit,
            table_id=ofp.OFPTT_ALL,
            command=ofp.OFPFC_DELETE,
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
        )
        for bit in range(GENERATION_BITS)
    ]


def put_group(datapath: Any, group: GroupRecord) -> Any:
    """Adds the group or gives it these buckets."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    kinds = {"select": ofp.OFPGT_SELECT, "ff": ofp.OFPGT_FF, "all": ofp.OFPGT_ALL}
    buckets = []
    for bucket in group.buckets:
        properties = []
        if group.kind == "select":
            properties.append(parser.OFPGroupBucketPropWeight(type_=ofp.OFPGBPT_WEIGHT, weight=bucket.weight))
        if bucket.watch_port is not None:
            properties.append(parser.OFPGroupBucketPropWatch(type_=ofp.OFPGBPT_WATCH_PORT, watch=bucket.watch_port))
        actions = [_action(datapath, action) for action in bucket.actions]
        buckets.append(parser.OFPBucket(bucket_id=bucket.bucket_id, actions=actions, properties=properties))
    properties = []
    if group.selection is not None:
        properties.append(
            parser.OFPGroupPropExperimenter(
                type_=ofp.OFPGPT_EXPERIMENTER,
                experimenter=_NETRONOME,
                exp_type=_SELECTION_METHOD,
                data=selection_words(group.selection),
            )
        )
    return parser.OFPGroupMod(
        datapath,
        command=_ADD_OR_MODIFY_GROUP,
        type_=kinds[group.kind],
        group_id=group.group_id,
        buckets=buckets,
        properties=properties,
    )


def drop_group(datapath: Any, group_id: int) -> Any:
    """Removes the group, and with it any flow that still points to it."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPGroupMod(datapath, command=ofp.OFPGC_DELETE, group_id=group_id)


def ask_groups(datapath: Any) -> Any:
    """Asks for the groups' counters, which name the groups.

    Their descriptions would do as well, but os-ken 4.2 and Ryu 4.34 read a bucket's properties past its end.
    """
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPGroupStatsRequest(datapath, 0, ofp.OFPG_ALL)


def ask_ports(datapath: Any) -> Any:
    """Asks for all ports."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPPortDescStatsRequest(datapath, 0, ofp.OFPP_ANY)


def barrier(datapath: Any) -> Any:
    """Is answered when everything sent before is done."""
    return datapath.ofproto_parser.OFPBarrierRequest(datapath)


def port_is_up(ofproto: Any, port: Any) -> bool:
    """True when a port has a link and is not switched off."""
    return not (port.state & ofproto.OFPPS_LINK_DOWN or port.config & ofproto.OFPPC_PORT_DOWN)


def error_text(ofproto: Any, message: Any) -> str:
    """What an error message says, in words: its type, its code and the kind of message that it answers."""
    kind = _constant(ofproto, "OFPET_", message.type)
    answered = "message"
    data = bytes(message.data or b"")
    if len(data) >= 2:
        answered = _constant(ofproto, "OFPT_", data[1])
    return f"{answered} refused: {kind}, code {message.code}"


def selection_words(selection: Selection) -> Sequence[int]:
    """The body of the selection method property as the 32-bit words that os-ken and Ryu want.

    4 bytes of padding, a name of 16 bytes, the seed, then a header and a mask for each field. Raises ValueError when
    the fields together do not fill whole words.
    """
    body = struct.pack("!4x16sQ", b"hash", selection.seed)
    for name in selection.fields:
        number, length = _OXM_FIELDS[name]
        body += struct.pack("!I", _OXM_CLASS << 16 | number << 9 | length) + b"\xff" * length
    if len(body) % 4:
        raise ValueError(f"the hash fields {', '.join(selection.fields)} fill no whole number of 32-bit words")
    return struct.unpack(f"!{len(body) // 4}I", body)


def _constant(ofproto: Any, prefix: str, value: int) -> str:
    names = [name for name in vars(ofproto) if name.startswith(prefix) and getattr(ofproto, name) == value]
    return names[0] if names else f"{prefix}{value}"


def _action(datapath: Any, action: Action) -> Any:
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    if isinstance(action, Output):
        return parser.OFPActionOutput(action.port, ofp.OFPCML_NO_BUFFER)
    return parser.OFPActionGroup(action.group_id)


def _match(datapath: Any, match: Match) -> Any:
    fields: dict[str, Any] = {}
    if match.in_port is not None:
        fields["in_port"] = match.in_port
    for name, mac in (("eth_dst", match.eth_dst), ("eth_src", match.eth_src)):
        if mac is not None:
            fields[name] = _mac(mac)
    if match.eth_type is not None:
        fields["eth_type"] = match.eth_type
    if match.ip_proto is not None:
        fields["ip_proto"] = match.ip_proto
    if match.udp_src is not None:
        fields["udp_src"] = tuple(match.udp_src)
    return datapath.ofproto_parser.OFPMatch(**fields)


def _mac(mac: Masked) -> str | tuple[str, str]:
    if mac.mask == (1 << 48) - 1:
        return mac_text(mac.value)
    return mac_text(mac.value), mac_text(mac.mask)
