"""A program printed: what a person reads in ``plan``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.program import Masked, mac_number, mac_text, render
from controller.routes import compile
from topologies.graph import Fabric

Build = Callable[[str], Fabric]


def test_a_leaf_in_ecmp_mode(fabric: Build) -> None:
    text = render(compile(fabric("leaf-spine"), "ecmp", seed=1).switches[:1])
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith("leaf1 (dpid ")
    assert "12 flows, 1 groups" in text
    assert "hash(ipv4_src,ipv4_dst,ipv6_src,ipv6_dst,tcp_src,tcp_dst,udp_src,udp_dst)" in text
    assert ["priority=300", "eth_dst=02:01:00:01:00:01", "->", "port", "1"] in lines
    assert ["priority=200", "eth_dst=02:01:00:02:00:00/32", "->", "group", "24"] in lines
    assert ["priority=0", "any", "->", "drop"] in lines


def test_a_pinned_path_shows_the_ports_it_matches(fabric: Build) -> None:
    text = render(compile(fabric("leaf-spine"), "disjoint").switches)
    assert "ipv6 udp udp_src=0xc000/0xffc0" in text


def test_mac_addresses_read_back() -> None:
    assert mac_text(mac_number("02:01:00:03:00:0a")) == "02:01:00:03:00:0a"


@pytest.mark.parametrize(("value", "covered"), [("02:01:00:03:00:01", True), ("02:01:00:04:00:01", False)])
def test_a_mask_compares_only_its_bits(value: str, covered: bool) -> None:
    prefix = Masked(mac_number("02:01:00:03:00:00"), mac_number("ff:ff:ff:ff:00:00"))
    assert prefix.covers(mac_number(value)) == covered
