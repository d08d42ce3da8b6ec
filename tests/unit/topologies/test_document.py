"""Line-tracked YAML: reading, changing, checking and writing, as topologies and experiments use it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from topologies.document import Document, InputErrors, Problems, StrictModel, dump_model, parse_setting
from topologies.errors import format_key, split_key
from topologies.quantities import Duration, Rate


class Ring(StrictModel):
    kind: Literal["ring"]
    rounds: int = Field(ge=1)


class Pairs(StrictModel):
    kind: Literal["pairs"]
    rate: Rate


class Step(StrictModel):
    at: Duration
    do: Literal["down", "up"]
    for_: Duration | None = Field(None, alias="for")


class Plan(StrictModel):
    work: Annotated[Ring | Pairs, Field(discriminator="kind")]
    steps: tuple[Step, ...] = ()
    tables: dict[str, dict[str, Step]] = Field(default_factory=dict)


GOOD = """\
work: {kind: ring, rounds: 3}
steps:
  - {at: 4 s, do: down, for: 3 s}
  - {at: 9 s, do: up}
"""


def messages(document: Document, check: object = None) -> list[str]:
    with pytest.raises(InputErrors) as caught:
        document.validate(Plan, check)  # type: ignore[arg-type]
    return [str(error) for error in caught.value.errors]


def test_a_good_document_becomes_the_model_and_is_written_back_equal() -> None:
    plan = Document.parse(GOOD).validate(Plan)
    assert plan.steps[0].for_ == 3.0
    assert Document.parse(dump_model(plan)).validate(Plan) == plan
    assert "for: 3 s" in dump_model(plan)


def test_every_value_knows_its_line() -> None:
    document = Document.parse(GOOD, "plan.yaml")
    assert document.where("work.rounds") == ("plan.yaml", 1)
    assert document.where("steps.1.do") == ("plan.yaml", 4)
    assert document.where("steps.1.nothing") == ("plan.yaml", 4), "the closest key above that exists"


def test_all_mistakes_come_out_at_once_in_the_order_of_the_file() -> None:
    text = "steps:\n  - {at: 4, do: dwn}\n  - {att: 9 s, do: up}\nwork: {kind: rng}\nwork: {}\n"
    assert messages(Document.parse(text, "f")) == [
        "f:2: steps.0.at: a time needs a unit (`4 ms`?)",
        "f:2: steps.0.do: unknown value 'dwn' (did you mean `down`?)",
        "f:3: steps.1.at: is missing",
        "f:3: steps.1.att: unknown key (did you mean `at`?)",
        "f:4: work.kind: unknown kind 'rng' (did you mean `ring`?)",
        "f:5: work: duplicate key, first on line 4",
    ]


def test_unknown_keys_below_unions_lists_and_tables_are_compared_with_the_right_model() -> None:
    text = "work: {kind: pairs, rate: 1 Mbit/s, rounds: 2}\ntables: {a: {b: {at: 1 s, do: up, fr: 2 s}}}\n"
    assert messages(Document.parse(text, "f")) == [
        "f:1: work.rounds: unknown key (known: kind, rate)",
        "f:2: tables.a.b.fr: unknown key (did you mean `for`?)",
    ]


def test_checks_run_in_the_same_pass_and_know_what_is_broken() -> None:
    seen: dict[str, bool] = {}

    def check(plan: Plan, problems: Problems) -> None:
        seen.update({key: problems.broken(key) for key in ("steps", "steps.0", "steps.0.for", "steps.1", "work")})
        if plan.steps[1].at > 5:
            problems.add("steps.1.at", "too late")

    assert messages(Document.parse(GOOD.replace("3 s", "3"), "f"), check) == [
        "f:3: steps.0.for: a time needs a unit (`3 ms`?)",
        "f:4: steps.1.at: too late",
    ]
    assert seen == {"steps": True, "steps.0": True, "steps.0.for": True, "steps.1": False, "work": False}


def test_checks_are_left_out_when_no_model_can_be_made_without_the_broken_keys() -> None:
    def check(plan: Plan, problems: Problems) -> None:
        raise AssertionError("must not run")

    assert messages(Document.parse(GOOD.replace("kind: ring", "kind: rng"), "f"), check) == [
        "f:1: work.kind: unknown kind 'rng' (did you mean `ring`?)"
    ]


def test_the_origin_of_a_set_value_stands_in_place_of_the_line() -> None:
    document = Document.parse(GOOD, "f")
    document.set("work.rounds", 0, "--set work.rounds=0")
    document.set("steps.1.do", "sideways", "sweep steps.1.do")
    assert messages(document) == [
        "--set work.rounds=0: work.rounds: must be at least 1",
        "sweep steps.1.do: steps.1.do: unknown value 'sideways' (one of down or up)",
    ]


def test_set_creates_mappings_appends_to_lists_and_leaves_a_copy_alone() -> None:
    document = Document.parse(GOOD)
    copy = document.copy()
    document.set("tables.a.b", {"at": "1 s", "do": "up"}, "cli")
    document.set("steps.2", {"at": "10 s", "do": "down"}, "cli")
    document.set("steps.3.at", "11 s", "cli")
    document.set("steps.3.do", "up", "cli")
    plan = document.validate(Plan)
    assert plan.tables["a"]["b"].at == 1.0 and [step.at for step in plan.steps] == [4.0, 9.0, 10.0, 11.0]
    assert copy.validate(Plan).steps == plan.steps[:2]


def test_a_value_once_set_is_the_documents_own() -> None:
    options = {"rounds": 3}
    document = Document.parse(GOOD)
    document.set("work", options, "cli")
    document.set("work.kind", "ring", "cli")
    assert options == {"rounds": 3} and document.validate(Plan).work == Ring(kind="ring", rounds=3)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("steps.7.at", "cli: steps.7: no such list item (it holds 2 items, counted from 0)"),
        ("steps.one", "cli: steps.one: no such list item (it holds 2 items, counted from 0)"),
        ("work.rounds.deep", "cli: work.rounds.deep: work.rounds is neither a mapping nor a list"),
        ("work..rounds", "cli: 'work..rounds' is not a key path"),
    ],
)
def test_a_path_that_leads_nowhere_is_an_input_error(path: str, message: str) -> None:
    with pytest.raises(InputErrors) as caught:
        Document.parse(GOOD).set(path, 1, "cli")
    assert str(caught.value) == message


def test_names_with_dots_are_found_where_they_exist_and_quoted_where_they_do_not() -> None:
    document = Document.parse("over: {p1.leaf1-p1.spine2: {rate: 1}}")
    document.set("over.p1.leaf1-p1.spine2.rate", 2, "cli")
    document.set('over."p1.leaf2-p1.spine2".rate', 3, "cli")
    assert document.data == {"over": {"p1.leaf1-p1.spine2": {"rate": 2}, "p1.leaf2-p1.spine2": {"rate": 3}}}
    assert document.get("over.p1.leaf2-p1.spine2.rate") == 3
    assert document.get("over.p9", "none") == "none"


def test_an_overlay_merges_mappings_and_keeps_its_own_lines() -> None:
    base = Document.parse("a: {x: 1, y: [1, 2]}\nb: 1\n", "base")
    base.overlay(Document.parse("\n\na: {y: [3]}\nc: {d: 4}\n", "top"))
    base.overlay({"b": 2}, "sweep")
    assert base.data == {"a": {"x": 1, "y": [3]}, "b": 2, "c": {"d": 4}}
    assert base.where("a.x") == ("base", 1)
    assert base.where("a.y.0") == ("top", 3) and base.where("c.d") == ("top", 4)
    assert base.where("b") == ("sweep", None)


def test_a_section_speaks_of_the_whole_key_path_and_the_line_of_the_file() -> None:
    section = Document.parse(f"name: x\ninner:\n  {GOOD.replace(chr(10), chr(10) + '  ')}", "outer").section("inner")
    section.data["work"]["rounds"] = 0
    assert messages(section) == ["outer:3: inner.work.rounds: must be at least 1"]


def test_yaml_is_read_without_surprises() -> None:
    data = Document.parse("a: on\nb: no\nc: 1:30\nd: 2024-01-01\ne: 010\nf: 1e3\ng: true\nh: '5'\ni: 0x10\n").data
    assert data == {
        "a": "on", "b": "no", "c": "1:30", "d": "2024-01-01", "e": 10, "f": 1000.0, "g": True, "h": "5", "i": "0x10",
    }  # fmt: skip


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"a: \x01", b'a: "\\ud800"\nwork: \n', b"[" * 600, b"&a [*a]", b""]
)
def test_a_file_of_garbage_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "garbage.yaml"
    path.write_bytes(content)
    with pytest.raises(InputErrors) as caught:
        Document.load(path).validate(Plan)
    str(caught.value).encode("utf-8")


def test_aliases_of_aliases_cannot_fill_the_memory() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(InputErrors, match="more than 100000 values"):
        Document.parse("\n".join(lines))


@pytest.mark.parametrize("name", ["", "missing.yaml", "nul\0.yaml"])
def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputErrors, match="cannot be read"):
        Document.load(f"{tmp_path}/{name}")


def test_a_setting_is_a_key_path_and_a_yaml_value() -> None:
    assert parse_setting("links.host.rate=20 Mbit/s")[:2] == (("links", "host", "rate"), "20 Mbit/s")
    assert parse_setting("planes=8") == (("planes",), 8, "--set planes=8")
    assert parse_setting('a."b.c"=[1, 2]')[:2] == (("a", "b.c"), [1, 2])


@pytest.mark.parametrize("text", ["planes", "=8", "a.=1", "a=[1", "a=b: c: d"])
def test_a_malformed_setting_is_an_input_error_that_shows_it(text: str) -> None:
    with pytest.raises(InputErrors) as caught:
        parse_setting(text)
    assert str(caught.value).startswith(f"--set {text}: ")


@given(st.lists(st.text(st.characters(exclude_characters='"', codec="utf-8"), min_size=1), min_size=1))
def test_key_paths_survive_writing_and_reading(path: list[str]) -> None:
    assert split_key(format_key(path)) == tuple(path)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1 s", "up", "ring"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["work", "kind", "rounds", "steps", "at", "do", "for", "tables", "x:"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100)
@given(VALUES)
def test_no_data_gives_a_traceback(value: object) -> None:
    import yaml

    try:
        Document.parse(yaml.safe_dump({"work": value, "steps": value, "tables": value})).validate(Plan)
    except InputErrors as errors:
        assert str(errors).isprintable() or "\n" in str(errors)


@settings(max_examples=300)
@given(st.text(st.sampled_from("abk:{}[],-&*!|>'\"#%@ \n\t1.~?<") | st.characters(), max_size=60))
def test_no_text_gives_a_traceback(text: str) -> None:
    try:
        Document.parse(text).validate(Plan)
    except InputErrors as errors:
        str(errors).encode("utf-8")
    else:
        raise AssertionError(f"{text!r} cannot be a plan")
