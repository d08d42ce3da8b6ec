"""Whatever stands in a topology file, the answer is a fabric or input errors, never a traceback."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st

from topologies.document import Document, InputErrors
from topologies.errors import format_key
from topologies.load import load_fabric
from topologies.yaml_tree import walk

SOUND: list[dict[str, Any]] = [
    {"version": 1, "kind": "fat_tree", "k": 4, "links": {"edge_agg": {"rate": "5 Mbit/s"}}},
    {"version": 1, "kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "mtu": "1500 B"},
    {"version": 1, "kind": "multi_plane", "planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
    {"version": 1, "kind": "multi_plane", "planes": 2, "k": 2, "links": {"host": {"queue": "9 KB"}}},
    {
        "version": 1,
        "kind": "custom",
        "hosts": ["h1", {"name": "h2"}],
        "switches": ["s1", "s2", {"name": "s3", "plane": 2}],
        "links": {
            "list": [["h1", "s1"], ["h2", "s2"], ["s1", "s2"], {"ends": ["s2", "s1"]}, ["h1", "s3"], ["h2", "s3"]],
            "overrides": {"s1-s2#2": {"delay": "1 ms"}},
        },
    },
]
OTHER_PATHS = (
    *("name", "mtu", "k", "hosts_per_edge", "oversubscription", "leaves", "planes", "hosts", "switches", "surprise"),
    *("links.default", "links.fabric", "links.host.rate", "links.default.queue", "links.edge_agg.delay", "links.list"),
    *("links.overrides", "links.overrides.x.rate", "links.list.0.1", "links.list.3.rate", "links.list.6"),
)
VALUES = st.one_of(
    st.sampled_from([0, 1, 2, 3, 4, 5, 16, 24, 255, 257, 10**9, -1, 2.5, "4", None, True, "", [], {}]),
    st.sampled_from(["h1", "h2", "s1", "s2", "s3", "x", ["h1", "s2"], ["s1", "s1"], ["h1", "h2"], ["h1", "s1", "s2"]]),
    st.sampled_from(
        ["1 Mbit/s", "2 ms", "3 %", "4 bdp", "1 B", "20 Gbit/s", "9000 B", "7", {"rate": "2 Mbit/s"}, {"rate": 2}]
    ),
    st.text(max_size=6),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)


def similar(value: Any) -> st.SearchStrategy[Any]:
    """Values of the kind that stands there already: many of them make sense."""
    if isinstance(value, int):
        return st.integers(0, 6)
    if isinstance(value, str) and " " in value:
        return st.sampled_from(["2 Mbit/s", "1 ms", "9 KB", "2 bdp", "1500 B"])
    if isinstance(value, str):
        return st.sampled_from(["h1", "h2", "s1", "s2", "s3", value])
    if isinstance(value, list):
        return st.permutations(value) | st.lists(st.sampled_from(value), max_size=8)
    return st.just(value)


@settings(max_examples=250)
@given(st.data(), st.sampled_from(SOUND), st.integers(0, 3))
def test_a_sound_file_with_a_few_keys_changed_gives_a_fabric_or_input_errors(
    data: st.DataObject, base: dict[str, Any], count: int
) -> None:
    own = [format_key(path) for path, _ in walk(base) if path]
    paths = st.sampled_from(own) | st.sampled_from(OTHER_PATHS)
    wanted = data.draw(st.lists(paths, min_size=count, max_size=count))
    original = Document(base, {}, "base")
    changes = [(path, data.draw(similar(original.get(path)) | VALUES)) for path in wanted]
    try:
        document = Document.parse(yaml.safe_dump(base), "any.yaml")
        for path, value in changes:
            document.set(path, value, f"--set {path}")
        again = Document.parse(document.dump(), "again.yaml")
        tree = load_fabric(document)
    except InputErrors as errors:
        event("input errors")
        assert errors.errors and all(error.message and error.file for error in errors.errors)
        str(errors).encode()
    else:
        event("a fabric")
        assert len(tree.hosts) >= 2
        assert load_fabric(again).links == tree.links


@settings(max_examples=200)
@given(st.sampled_from(SOUND), st.integers(0, 400), st.text(max_size=3))
def test_a_sound_file_with_some_characters_changed_gives_a_fabric_or_input_errors(
    base: dict[str, Any], position: int, junk: str
) -> None:
    text = yaml.safe_dump(base)
    position %= len(text)
    try:
        load_fabric(Document.parse(text[:position] + junk + text[position + len(junk) :], "any.yaml"))
    except InputErrors as errors:
        str(errors).encode()
