"""The models of a topology file, one class for each ``kind``. What the file may say, without what it means.

Options of a link are the same class at every level (default, tier, single link, listed link), so that what is accepted
in one place is accepted in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from topologies.addresses import MAX_HOSTS_PER_LEAF, MAX_INTERFACE, MAX_LEAVES, MAX_PLANES
from topologies.document import StrictModel
from topologies.errors import KeyPath, problem
from topologies.quantities import (
    Duration,
    Queue,
    QueueSize,
    Rate,
    Share,
    Size,
    between,
    format_duration,
    format_rate,
    format_share,
    format_size,
)
from topologies.routes import MAX_PATHS

DEFAULT_MTU_BYTES = 4200
"""4,096 B of payload, 88 B of IPv6, UDP and MRC headers, and a little room."""

MAX_QUEUE_BYTES = 10**9
MAX_QUEUE_BDP = 1000.0

LinkRate = Annotated[Rate, between(10**6, 10**10, format_rate)]
LinkDelay = Annotated[Duration, between(0.0, 10.0, format_duration)]
LinkLoss = Annotated[Share, between(0.0, 1.0, format_share, below=True)]


def _limit_queue(queue: Queue) -> Queue:
    if queue.size_bytes == 0 or queue.bdp == 0:
        raise problem("a queue must have room")
    if (queue.size_bytes or 0) > MAX_QUEUE_BYTES:
        raise problem(f"must be at most {format_size(MAX_QUEUE_BYTES)}")
    if (queue.bdp or 0) > MAX_QUEUE_BDP:
        raise problem(f"must be at most {MAX_QUEUE_BDP:.0f} bdp")
    return queue


LinkQueue = Annotated[QueueSize, AfterValidator(_limit_queue)]


class LinkOptions(StrictModel):
    """What a link does to packets, in both directions. What is left out comes from the level above.

    ``queue`` in ``bdp`` is a multiple of the link's rate times the fabric's longest base RTT (see ``rtt.py``).
    """

    rate: LinkRate | None = None
    delay: LinkDelay | None = None
    loss: LinkLoss | None = None
    queue: LinkQueue | None = None

    def over(self, base: LinkOptions) -> LinkOptions:
        """These options, with those of ``base`` where these are silent."""
        return LinkOptions.model_construct(
            rate=self.rate if self.rate is not None else base.rate,
            delay=self.delay if self.delay is not None else base.delay,
            loss=self.loss if self.loss is not None else base.loss,
            queue=self.queue if self.queue is not None else base.queue,
        )


BUILT_IN = LinkOptions.model_construct(rate=10**7, delay=0.0, loss=0.0, queue=Queue(bdp=5.0))
"""Below ``links.default``. 5 bdp is what a queue without trimming gets in the Ultra Ethernet reference simulator."""


class LinkTable(StrictModel):
    """Link options by level; the more specific one wins: default, tier, (listed link,) override."""

    default: LinkOptions = LinkOptions()
    host: LinkOptions = LinkOptions()
    fabric: LinkOptions = LinkOptions()
    overrides: dict[str, LinkOptions] = Field(default_factory=dict)

    def levels(self, section: str) -> tuple[LinkOptions, ...]:
        """Options that apply to a link of a section (``host``, ``fabric``, ``edge_agg``...), most general first."""
        general = self.host if section == "host" else self.fabric
        found: Any = getattr(self, section, general)
        return (BUILT_IN, self.default, general) if found is general else (BUILT_IN, self.default, general, found)

    def blocks(self) -> Iterator[tuple[KeyPath, LinkOptions]]:
        """Every block of options with its key path below ``links``."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, LinkOptions):
                yield (name,), value
        for link, options in self.overrides.items():
            yield ("overrides", link), options


class FatTreeLinkTable(LinkTable):
    """A fat-tree has two tiers of fabric links; ``fabric`` is common to both."""

    edge_agg: LinkOptions = LinkOptions()
    agg_core: LinkOptions = LinkOptions()


class Topology(StrictModel):
    """What every kind of topology file says."""

    not_yet: ClassVar[Mapping[str, str]] = {
        "ecn": "marking in switch ports comes with a later version",
        "trim": "trimming in switch ports comes with a later version",
    }

    version: Literal[1]
    kind: str
    name: Annotated[str, Field(min_length=1, max_length=60)] | None = None
    mtu: Annotated[Size, between(1280, 9216, format_size)] = Field(
        DEFAULT_MTU_BYTES, json_schema_extra={"default": format_size(DEFAULT_MTU_BYTES)}
    )
    links: LinkTable = LinkTable()


def _even(k: int) -> int:
    if k % 2:
        raise problem("must be even", f"`k: {k - 1}` or `k: {k + 1}`" if k > 2 else "`k: 2`")
    return k


Radix = Annotated[int, Field(ge=2), AfterValidator(_even)]
HostsPerLeaf = Annotated[int, Field(ge=1, le=MAX_HOSTS_PER_LEAF)]
Oversubscription = Annotated[float, Field(gt=0, le=1000)]
Leaves = Annotated[int, Field(ge=1, le=MAX_LEAVES)]
Spines = Annotated[int, Field(ge=1, le=MAX_PATHS)]
Plane = Annotated[int, Field(ge=1, le=MAX_PLANES)]


def hosts_per_edge(k: int, hosts: int | None, oversubscription: float | None) -> int:
    """Hosts on each edge switch of a k-ary fat-tree: as many as its uplinks, times the oversubscription."""
    if hosts is not None:
        return hosts
    return round(k // 2 * (oversubscription or 1))


class FatTree(Topology):
    """k pods of k/2 edge and k/2 aggregation switches, and (k/2)² core switches.

    ``oversubscription`` is the ratio of hosts to uplinks of an edge switch: another way to say ``hosts_per_edge``.
    """

    kind: Literal["fat_tree"]
    k: Radix
    hosts_per_edge: HostsPerLeaf | None = None
    oversubscription: Oversubscription | None = None
    links: FatTreeLinkTable = FatTreeLinkTable()


class LeafSpine(Topology):
    """Every leaf has one link to every spine."""

    kind: Literal["leaf_spine"]
    leaves: Leaves
    spines: Spines
    hosts_per_leaf: HostsPerLeaf


class MultiPlane(Topology):
    """Planes that share hosts only. Each is a leaf-spine (leaves, spines, hosts_per_leaf) or a fat-tree (k)."""

    kind: Literal["multi_plane"]
    planes: Plane
    leaves: Leaves | None = None
    spines: Spines | None = None
    hosts_per_leaf: HostsPerLeaf | None = None
    k: Radix | None = None
    hosts_per_edge: HostsPerLeaf | None = None
    oversubscription: Oversubscription | None = None
    links: FatTreeLinkTable = FatTreeLinkTable()


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise problem(f"{name[:40]!r} is not a name", "letters, digits, `_`, `.` and `-`")
    if len(name) > MAX_INTERFACE:
        raise problem(f"must have at most {MAX_INTERFACE} characters", "Linux interfaces are named after it")
    return name


NodeName = Annotated[str, AfterValidator(_check_name)]


@dataclass(frozen=True)
class Shorthand:
    """Annotation: text or a list stands for a mapping with one key (``h1`` for ``{name: h1}``).

    Attributes:
        key: the key that the short form is the value of.
        short: ``str`` or ``list``.
        wanted: for the message when it is neither.
    """

    key: str
    short: type
    wanted: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def expand(value: object) -> object:
            if isinstance(value, self.short):
                return {self.key: value}
            if not isinstance(value, (dict, StrictModel)):
                raise problem(f"must be {self.wanted}")
            return value

        return core_schema.no_info_before_validator_function(expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        brief = {"type": "string"} if self.short is str else {"type": "array", "items": {"type": "string"}}
        return {"anyOf": [brief, handler(schema)]}


_NAMED = Shorthand("name", str, "a name, or a mapping")


class CustomHost(StrictModel):
    """A host of a custom fabric."""

    name: NodeName


class CustomSwitch(StrictModel):
    """A switch of a custom fabric."""

    name: NodeName
    plane: Plane = 1


class CustomLink(LinkOptions):
    """A listed link. The same two ends may be listed again: a parallel link."""

    # Shorthand hands over Python lists, which a strict tuple refuses; the names inside stay strict.
    ends: Annotated[tuple[str, str], Field(strict=False)]


ListedLink = Annotated[CustomLink, Shorthand("ends", list, "a list of two names, or a mapping")]


class CustomLinkTable(LinkTable):
    """Link options, and the links themselves."""

    list: tuple[ListedLink, ...] = Field(min_length=1)

    def blocks(self) -> Iterator[tuple[KeyPath, LinkOptions]]:
        """Every block of options with its key path below ``links``."""
        yield from super().blocks()
        for index, link in enumerate(self.list):
            yield ("list", index), link


class Custom(Topology):
    """Nodes and links as listed. A link of a host belongs to the plane of its switch."""

    kind: Literal["custom"]
    hosts: tuple[Annotated[CustomHost, _NAMED], ...] = Field(min_length=2)
    switches: tuple[Annotated[CustomSwitch, _NAMED], ...] = Field(min_length=1)
    links: CustomLinkTable
