"""What the runner tells a cell, and a cell its hosts, survives JSON unchanged."""

import json

from experiments.cell_spec import CellSpec, cell_spec
from experiments.driver.spec import driver_spec
from experiments.failures import LinkAction
from experiments.hosts import driver_specs
from experiments.workloads.base import Channel, Message, Stream, Workload
from topologies.document import Document
from topologies.load import load_fabric

WORK = Workload(
    channels=(Channel(0, "h1", "h3"), Channel(1, "h3", "h1")),
    messages=(Message(id=4, channel=0, size=100, after=(1, 2), at_s=0.5),),
    streams=(Stream(channel=1, size=1000, outstanding=2, count=None),),
)
SPEC = CellSpec(
    topology="t.yaml",
    logs="/nowhere",
    transport="mrc",
    options={"evs_per_path": 2},
    routing="disjoint",
    framework="auto",
    convergence_s=0.5,
    datapath=None,
    seed=9,
    duration_s=10.0,
    drain_s=5.0,
    workload=WORK,
    actions=(LinkAction(1.0, "a-b", False, 0),),
)


def test_a_cell_spec_survives_json():
    assert cell_spec(json.loads(json.dumps(SPEC.to_json()))) == SPEC


def test_a_hosts_part_survives_json_and_holds_only_its_own():
    text = "version: 1\nkind: multi_plane\nplanes: 2\nleaves: 2\nspines: 3\nhosts_per_leaf: 2"
    specs = driver_specs(load_fabric(Document.parse(text)), SPEC)
    assert set(specs) == {"h1", "h3"}
    one = specs["h1"]
    assert driver_spec(json.loads(json.dumps(one.to_json()))) == one
    assert [channel.id for channel in one.host.sends] == [0]
    assert [channel.id for channel in one.host.receives] == [1]
    assert [message.id for message in one.messages] == [4]
    assert one.streams == ()
    peer = one.host.peers["h3"]
    assert {plane: len(evs) for plane, evs in peer.evs.items()} == {1: 6, 2: 6}
    assert set(peer.addresses) == {1, 2}
    assert peer.base_rtt_s > 0
