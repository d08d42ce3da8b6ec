"""Permutations: everyone sends once, everyone receives once, nobody to itself or below its own leaf."""

import pytest

from experiments.workloads.permutation import pairs
from topologies.document import Document
from topologies.load import load_fabric


def fabric(text):
    return load_fabric(Document.parse(f"version: 1\n{text}"))


SHAPES = [
    "kind: multi_plane\nplanes: 4\nleaves: 2\nspines: 3\nhosts_per_leaf: 2",
    "kind: fat_tree\nk: 4",
    "kind: leaf_spine\nleaves: 5\nspines: 2\nhosts_per_leaf: 3",
    "kind: leaf_spine\nleaves: 2\nspines: 1\nhosts_per_leaf: 8",
]


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_every_host_sends_and_receives_once_and_crosses_the_fabric(text, seed):
    graph = fabric(text)
    hosts = [host.name for host in graph.hosts]
    found = pairs(graph, seed=seed)
    assert [source for source, _ in found] == hosts
    assert sorted(target for _, target in found) == sorted(hosts)
    leaf = {host: graph.links_of[host][0].peer_of(host).node for host in hosts}
    assert all(leaf[source] != leaf[target] for source, target in found)


def test_the_seed_alone_decides():
    graph = fabric(SHAPES[1])
    assert pairs(graph, seed=3) == pairs(graph, seed=3)
    assert len({tuple(pairs(graph, seed=seed)) for seed in range(10)}) > 5


def test_one_leaf_alone_still_has_a_permutation():
    graph = fabric("kind: leaf_spine\nleaves: 1\nspines: 1\nhosts_per_leaf: 4")
    found = pairs(graph, seed=1)
    assert all(source != target for source, target in found)
    assert sorted(target for _, target in found) == ["h1", "h2", "h3", "h4"]
