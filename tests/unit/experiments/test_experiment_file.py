"""An experiment file: all mistakes at once, each with its place; a good one resolves to the same fabric again."""

from pathlib import Path

import pytest

from controller.packet import host_packet
from controller.routes import compile as compile_routes
from controller.walk import Walker
from experiments.model import load_experiment
from experiments.runner import plan_cells
from experiments.transports.base import ChannelSpec
from experiments.transports.tcp import plane_of, ports_of
from topologies.document import parse_setting
from topologies.errors import InputErrors
from topologies.load import load_fabric

TOPOLOGY = "version: 1\nkind: multi_plane\nplanes: 2\nleaves: 2\nspines: 2\nhosts_per_leaf: 2\n"
GOOD = """\
version: 1
topology: {file: fabric.yaml}
transports: [tcp, mrc]
workload: {kind: permutation, message: 1 MB}
duration: 10 s
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fabric.yaml").write_text(TOPOLOGY)
    return tmp_path


def load(folder, text, *settings):
    file = folder / "experiment.yaml"
    file.write_text(text)
    return load_experiment(file, [parse_setting(setting) for setting in settings])


def mistakes(folder, text, *settings):
    with pytest.raises(InputErrors) as caught:
        load(folder, text, *settings)
    return [str(error).replace(f"{folder}/", "") for error in caught.value.errors]


def test_a_good_file_resolves_to_the_same_fabric(folder, tmp_path):
    experiment = load(folder, GOOD)
    resolved = tmp_path / "resolved.yaml"
    resolved.write_text(experiment.resolved_topology)
    assert load_fabric(resolved) == experiment.fabric
    assert experiment.name == "experiment"


def test_the_topology_can_be_changed_in_the_experiment_and_on_the_command_line(folder):
    experiment = load(folder, GOOD.replace("fabric.yaml}", "fabric.yaml, spines: 3}"), "topology.planes=4")
    assert experiment.fabric.planes == 4
    assert len(experiment.fabric.switches) == 4 * (2 + 3)


def test_a_topology_can_be_written_in_the_experiment(folder):
    text = GOOD.replace(
        "{file: fabric.yaml}", "{version: 1, kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 1}"
    )
    assert len(load(folder, text).fabric.hosts) == 2


def test_every_mistake_is_told_at_once_with_file_line_key_and_hint(folder):
    text = """\
version: 1
topology: {file: fabric.yaml}
transports: [tpc, {kind: tcp, udp_port: 9}]
workload: {kind: flows, pairs: [[h1, h77], [h2, h2]], message: 1 B}
duration: 4 s
warmup: 9 s
failures:
  - {at: 5 s, link: p1.leaf1-p1.spine7}
  - {at: 1 s, link: p1.leaf1-p1.spine1, do: up, for: 1 s}
"""
    assert mistakes(folder, text) == [
        "experiment.yaml:3: transports.0: no such transport: tpc (did you mean `tcp`?)",
        "experiment.yaml:3: transports.1.udp_port: tcp has no such option (it has: congestion)",
        "experiment.yaml:4: workload.message: must be from 16 B to 1 GiB",
        "experiment.yaml:4: workload.pairs.0.1: no such host: h77 (there are h1 to h4)",
        "experiment.yaml:4: workload.pairs.1: h2 sends to itself",
        "experiment.yaml:6: warmup: must be shorter than the duration (duration is 4 s)",
        "experiment.yaml:8: failures.0.at: is after the end (duration is 4 s)",
        "experiment.yaml:8: failures.0.link: no such link: p1.leaf1-p1.spine7 (did you mean `p1.leaf1-p1.spine2`?)",
        "experiment.yaml:9: failures.1.for: only goes with `do: down`",
    ]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("duration: 10", "experiment.yaml:5: duration: a time needs a unit (`10 ms`?)"),
        ("warmup: 1 parsec", "is not a unit of time"),
        ("repeat: 0", "experiment.yaml:6: repeat:"),
        ("seed: -1", "experiment.yaml:6: seed:"),
        ("sweep: {a: [1]}", "not yet supported"),
        ("failures: [{at: 1 s, link: h1-p1.leaf1, switch: s1}]", "only link failures are supported so far"),
        ("dataplane: p4", "experiment.yaml:6: dataplane:"),
        ("tansports: [tcp]", "did you mean `transports`"),
        ("controller: pox", "experiment.yaml:6: controller:"),
        ("transports: [{kind: tcp}, tcp]", "listed twice"),
    ],
)
def test_each_mistake_is_one_line_that_names_its_place(folder, broken, message):
    key = broken.split(":")[0]
    kept = "".join(line for line in GOOD.splitlines(True) if not line.startswith(f"{key}:"))
    found = mistakes(folder, kept + broken + "\n")
    assert len(found) == 1
    assert message.split(": ")[-1] in found[0]
    assert found[0].startswith("experiment.yaml:")


def test_missing_keys_are_all_named(folder):
    found = mistakes(folder, "version: 1\n")
    assert len(found) == 3
    assert all("is missing" in line for line in found)


def test_mistakes_of_the_topology_name_its_own_file(folder):
    (folder / "fabric.yaml").write_text(TOPOLOGY.replace("spines: 2", "spines: 0"))
    assert any(line.startswith("fabric.yaml:5: spines:") for line in mistakes(folder, GOOD))


def test_a_missing_topology_file_is_one_line(folder):
    found = mistakes(folder, GOOD.replace("fabric.yaml", "nowhere.yaml"))
    assert len(found) == 1
    assert "no such file: nowhere.yaml" in found[0]


def test_all_transports_of_a_repetition_share_a_seed(folder):
    cells = plan_cells(load(folder, GOOD, "repeat=3", "seed=10"))
    assert [cell.seed for cell in cells] == [10, 10, 11, 11, 12, 12]
    for repetition in (1, 2, 3):
        assert {cell.transport.label for cell in cells if cell.repetition == repetition} == {"tcp", "mrc"}


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[3] / "experiments").glob("*.yaml")), ids=lambda f: f.stem
)
def test_every_experiment_that_comes_with_the_testbed_is_valid_and_short(file):
    experiment = load_experiment(file)
    assert len(experiment.fabric.hosts) >= 2
    lines = file.read_text().splitlines()
    assert len(lines) <= 40
    assert lines[0].startswith("# ")


def test_a_counted_workload_is_measured_from_its_first_byte(folder):
    counted = GOOD.replace("message: 1 MB", "message: 1 MB, count: 3")
    assert load(folder, counted).model.warmup_s == 0.0
    assert load(folder, GOOD).model.warmup_s == 1.0
    assert load(folder, GOOD, "duration=1 s").model.warmup_s == 0.5
    assert load(folder, counted, "warmup=2 s").model.warmup_s == 2.0


def test_in_each_repetition_of_the_quickstart_a_tcp_connection_crosses_the_cut_link():
    experiment = load_experiment(Path(__file__).parents[3] / "experiments" / "quickstart.yaml")
    fabric, (failure,) = experiment.fabric, experiment.model.failures
    for cell in plan_cells(experiment):
        walker = Walker(fabric, compile_routes(fabric, "ecmp", seed=cell.seed))
        crossed = set()
        for line in experiment.model.compile_workload(fabric, cell.seed).channels:
            channel = ChannelSpec(line.id, line.src, line.dst, largest=0, outstanding=0)
            plane = plane_of(channel, range(1, fabric.planes + 1), cell.seed)
            packet = host_packet(fabric, line.src, line.dst, plane, "tcp", *ports_of(channel, cell.seed))
            crossed.update(walker.walk(packet, line.src, plane).paths[0])
        assert failure.link in crossed
