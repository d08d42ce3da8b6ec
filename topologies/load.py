"""YAML file -> model -> Fabric: what other rooms call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Union

from pydantic import ConfigDict, Field, TypeAdapter

from topologies.builders.registry import KINDS
from topologies.builders.wiring import assemble
from topologies.document import Document, Problems, dump_yaml
from topologies.errors import InputErrors, did_you_mean, one_of
from topologies.explain import explain
from topologies.graph import Fabric
from topologies.model import BUILT_IN, Topology

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Header(Topology):
    """What can be checked of a topology whose kind is unknown."""

    model_config = ConfigDict(extra="ignore")


def load_topology(source: Document | str | Path) -> Topology:
    """The model of a topology file, checked completely. Raises InputErrors with every mistake at once.

    A topology without a ``name`` gets its file's.
    """
    document = source if isinstance(source, Document) else Document.load(source)
    named = document.data.get("kind") if isinstance(document.data, dict) else None
    kind = KINDS.get(named) if isinstance(named, str) else None
    if kind is None:
        raise InputErrors(_without_kind(document, named))
    model = document.validate(kind.model, kind.check)
    return model if model.name else model.model_copy(update={"name": Path(document.file).stem or model.kind})


def _without_kind(document: Document, named: Any) -> tuple[Any, ...]:
    if not isinstance(document.data, dict):
        return (document.error((), "must be a mapping", "for example `kind: leaf_spine`"),)
    problems = Problems(document)
    if named is None:
        problems.add("kind", "is missing" if "kind" not in document.data else "has no value", one_of(KINDS))
    elif not isinstance(named, str):
        problems.add("kind", "must be text", one_of(KINDS))
    else:
        hint = did_you_mean(named, KINDS) or one_of(KINDS)
        problems.add("kind", f"unknown kind {named[:40]!r}", hint)
    for fault in explain(document.data, _Header):
        if fault.path[:1] in (("version",), ("mtu",), ("name",)):
            problems.add(fault.path, fault.message, fault.hint)
    problems.extend(document.mistakes)
    return problems.errors


def build(model: Topology) -> Fabric:
    """The graph of a topology that ``load_topology`` has checked."""
    return assemble(model, KINDS[model.kind].plan(model))


def load_fabric(source: Document | str | Path) -> Fabric:
    """The graph of a topology file. Raises InputErrors."""
    return build(load_topology(source))


def dump_topology(model: Topology) -> str:
    """The topology as YAML with every default filled in; it loads back to the same fabric."""
    data = model.model_dump(mode="json", exclude_none=True)
    default = model.links.default.over(BUILT_IN).model_dump(mode="json")
    data["links"] = {key: value for key, value in {**data["links"], "default": default}.items() if value}
    return dump_yaml(data)


def json_schema() -> dict[str, Any]:
    """JSON schema of topology files, for editors."""
    models: Any = Union[tuple(kind.model for kind in KINDS.values())]  # noqa: UP007
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[models, Field(discriminator="kind")])
    return {"$schema": SCHEMA_DIALECT, "title": "MRC testbed topology", **adapter.json_schema()}


def shipped() -> dict[str, Path]:
    """The topology files that come with the project, by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}
