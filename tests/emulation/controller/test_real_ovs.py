"""The controller with real Open vSwitch: os-ken and Ryu install, react, die and come back, as the pure parts say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.framework import NAMES, usable

ROOT = Path(__file__).resolve().parents[3]
LAB = Path(__file__).with_name("ovs_lab.py")
TIME_LIMIT_S = 90
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

Scenario = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def frameworks() -> dict[str, Any]:
    return usable()


@pytest.fixture(params=NAMES)
def framework(request: pytest.FixtureRequest, frameworks: dict[str, Any]) -> str:
    name: str = request.param
    if not frameworks[name].ok:
        pytest.skip(f"{name} cannot be used here: {frameworks[name].detail}")
    return name


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """Plays a scenario of ``ovs_lab.py`` in namespaces of its own and returns what it saw."""

    def play(name: str, framework: str, mode: str, **environment: str) -> dict[str, Any]:
        command = [*NAMESPACES, sys.executable, str(LAB), name, framework, mode, str(tmp_path)]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
        )
        log = tmp_path / "controller.log"
        told = log.read_text() if log.exists() else ""
        assert done.returncode == 0, f"{done.stderr}\ncontroller: {told}"
        assert "Traceback" not in told
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen

    return play


@pytest.mark.parametrize("mode", ["single", "ecmp", "disjoint"])
def test_what_was_compiled_is_on_the_switches_and_packets_arrive(scenario: Scenario, framework: str, mode: str) -> None:
    seen = scenario("install", framework, mode)
    assert seen["listening"]["framework"] == framework
    assert seen["matches"]
    assert seen["sent"] > 50
    assert seen["received"] == seen["sent"]
    if mode == "ecmp":
        (group,) = seen["groups"]
        assert "type=select,selection_method=hash,selection_method_param=" in group
        assert "fields(ip_src,ip_dst,ipv6_src,ipv6_dst,tcp_src,tcp_dst,udp_src,udp_dst)" in group
        assert "bucket_id:2,actions=output:2" in group
    if mode == "disjoint":
        assert any("udp6" in flow and "tp_src=0xc000/0xffc0" in flow for flow in seen["flows"])


def test_everything_works_without_eventlet(scenario: Scenario, tmp_path: Path) -> None:
    (tmp_path / "eventlet.py").write_text("raise ImportError('eventlet is blocked')\n")
    seen = scenario("failure", "os-ken", "ecmp", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert seen["matches_restored"]


@pytest.mark.parametrize("mode", ["single", "ecmp"])
def test_a_cut_link_is_routed_around_after_the_delay_and_used_again_when_it_is_back(
    scenario: Scenario, framework: str, mode: str
) -> None:
    seen = scenario("failure", framework, mode)
    assert seen["matches_rerouted"]
    assert seen["matches_restored"]
    assert seen["reroute"]["failed_links"] == [seen["used"]]
    assert seen["reroute"]["flow_mods"] > 0
    assert seen["delay_s"] >= 0.3, "routes changed before the convergence delay was over"
    assert seen["lost"] > 0, "the stream did not use the link that was cut"
    assert seen["kinds"].count("reroute") == 2
    assert seen["kinds"].index("port_down") < seen["kinds"].index("reroute") < seen["kinds"].index("port_up")


def test_forwarding_goes_on_without_the_controller_and_its_return_loses_nothing(
    scenario: Scenario, framework: str
) -> None:
    seen = scenario("killed", framework, "ecmp")
    assert seen["sent_without_controller"] > 50
    assert seen["lost"] == 0
    assert seen["matches"]
    assert seen["new_generation"]
    assert seen["rubbish"] == []


def test_a_controller_restarted_during_a_failure_does_not_send_traffic_into_it(
    scenario: Scenario, framework: str
) -> None:
    seen = scenario("restart_in_failure", framework, "ecmp")
    assert seen["matches"]
    assert seen["lost"] == 0
    assert seen["missing"] == "ports not up: leaf1:2 (leaf1-spine1), spine1:1 (leaf1-spine1)"


def test_the_predicted_bucket_is_the_one_that_open_vswitch_takes(scenario: Scenario) -> None:
    seen = scenario("prediction", "os-ken", "ecmp")
    assert seen["wrong"] == []
    assert len(seen["taken"]) == 2, "all flows took one path: a prediction that is always the same proves nothing"


def test_an_ev_takes_the_path_that_it_names(scenario: Scenario) -> None:
    assert scenario("pinned", "os-ken", "disjoint")["wrong"] == []


def test_a_switch_that_was_rebooted_gets_its_flows_back(scenario: Scenario, framework: str) -> None:
    seen = scenario("reboot", framework, "ecmp")
    assert seen["matches"]
    assert "port_down" in seen["kinds"] or "switch_down" in seen["kinds"]


def test_a_bridge_with_another_openflow_version_is_named_with_both(scenario: Scenario, framework: str) -> None:
    error = scenario("old_version", framework, "ecmp")["error"]
    assert "no common OpenFlow version" in error
    assert "0x1" in error
    assert "0x6" in error
