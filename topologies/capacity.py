"""What a fabric can carry for a workload: the yardstick that measured goodput is divided by.

Three definitions, all over the equal-cost shortest paths that are still up (MRC's routing is static, so longer ways
round do not count), each link carrying its rate in each direction:

* ``capacity_bps``: the greatest total, after the greatest common rate. First the rate that every demand can have at
  once is maximised, then the sum. An ideal transport that may divide its packets in any way reaches it.
* ``fair_rates_bps``: the max-min fair rate of each demand (no demand can have more without a poorer one having less).
* ``equal_share_capacity_bps``: the same as the first under MRC's rule: a demand sends equally on all planes that it can
  use (Araujo et al., section 2.1: "equal number of EVs per plane"), so its worst plane limits it (section 4). Inside a
  plane it may divide as it likes.

A demand with no path left has rate 0 and does not hold the others down. The ideal of a demand that has the fabric to
itself is ``capacity_bps`` of it alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix, hstack, vstack

from topologies.graph import Fabric
from topologies.paths import paths
from topologies.rtt import ETHERNET_BYTES

Demand = tuple[str, str]

IPV6_UDP_BYTES = 40 + 8
MRC_HEADER_BYTES = 40
"""BTH 12, METH 4, TSETH 4, RETH 16, ICRC 4 (MRC 1.0 section 7.5)."""
MRC_PAYLOAD_SIZES = (4096, 2048, 1024, 512, 256)
"""RoCEv2's MTU values, in bytes of payload."""
TCP_HEADER_BYTES = 40 + 20 + 12
"""IPv6, TCP and its timestamp option."""

_TOLERANCE = 1e-8
"""Floors are lowered by this share, so that rounding does not make the program infeasible."""


def mrc_payload_bytes(mtu: int, outer_bytes: int = 0) -> int:
    """The largest RoCEv2 payload that fits the IP MTU. ``outer_bytes`` are headers around IPv6 (SRv6: 40).

    Raises ValueError when none does.
    """
    room = mtu - IPV6_UDP_BYTES - MRC_HEADER_BYTES - outer_bytes
    for size in MRC_PAYLOAD_SIZES:
        if size <= room:
            return size
    raise ValueError(f"an MTU of {mtu} B holds no MRC packet")


def payload_share(mtu: int, payload_bytes: int | None = None, outer_bytes: int = 0) -> float:
    """Payload bytes of an MRC data packet over its bytes on the wire, Ethernet header included, in (0, 1].

    ``payload_bytes`` defaults to the largest RoCEv2 payload that fits. Raises ValueError when the packet does not fit.
    """
    payload = mrc_payload_bytes(mtu, outer_bytes) if payload_bytes is None else payload_bytes
    packet = payload + IPV6_UDP_BYTES + MRC_HEADER_BYTES + outer_bytes
    if packet > mtu:
        raise ValueError(f"a payload of {payload} B does not fit an MTU of {mtu} B")
    return payload / (packet + ETHERNET_BYTES)


def tcp_payload_share(mtu: int) -> float:
    """Payload bytes of a full TCP segment over IPv6 over its bytes on the wire, in (0, 1]."""
    return (mtu - TCP_HEADER_BYTES) / (mtu + ETHERNET_BYTES)


def capacity_bps(
    fabric: Fabric, demands: Sequence[Demand], failed_links: frozenset[str] = frozenset(), payload_share: float = 1.0
) -> float:
    """Greatest total throughput in bit/s of all demands together, after the greatest common rate.

    ``demands`` are (source host, destination host) and may repeat; ``payload_share`` scales the result to payload.
    Raises as ``paths`` does for hosts that are none.
    """
    return _Program(fabric, demands, failed_links, equal_planes=False).total() * payload_share


def equal_share_capacity_bps(
    fabric: Fabric, demands: Sequence[Demand], failed_links: frozenset[str] = frozenset(), payload_share: float = 1.0
) -> float:
    """``capacity_bps`` when each demand sends the same on every plane in which it has a path left."""
    return _Program(fabric, demands, failed_links, equal_planes=True).total() * payload_share


def fair_rates_bps(
    fabric: Fabric,
    demands: Sequence[Demand],
    failed_links: frozenset[str] = frozenset(),
    payload_share: float = 1.0,
    *,
    equal_planes: bool = False,
) -> tuple[float, ...]:
    """Max-min fair rate in bit/s of each demand, in their order; with ``equal_planes`` under MRC's rule."""
    program = _Program(fabric, demands, failed_links, equal_planes=equal_planes)
    return tuple(float(rate) * payload_share for rate in program.fair_rates())


@dataclass(frozen=True)
class _Flow:
    """A variable of the program: how much a demand sends over one path, and over its images in equal planes."""

    demand: int
    plane: int
    edges: tuple[tuple[str, str], ...]


class _Program:
    """The linear program. Its variables are the flows; rates are in units of the fastest link.

    Planes that are equal (same links, rates and failures) are one plane with as many times the rate: the average of an
    optimum over all exchanges of equal planes is an optimum, too.
    """

    def __init__(
        self, fabric: Fabric, demands: Sequence[Demand], failed: frozenset[str], *, equal_planes: bool
    ) -> None:
        self.copies = _equal_planes(fabric, failed)
        self.flows = [
            _Flow(demand, plane, tuple((hop.link, hop.out.node) for hop in path.hops))
            for demand, (source, target) in enumerate(demands)
            for plane in self.copies
            for path in paths(fabric, source, target, plane, failed)
        ]
        self.count = len(demands)
        self.served = sorted({flow.demand for flow in self.flows})
        self.unit_bps = float(max((link.params.rate_bps for link in fabric.links), default=1))
        edges: dict[tuple[str, str], int] = {}
        entries = [
            (edges.setdefault(edge, len(edges)), column)
            for column, flow in enumerate(self.flows)
            for edge in flow.edges
        ]
        self.links = self._matrix(entries, len(edges))
        used = [fabric.link[name] for name, _ in edges]
        self.rates = np.array([self.copies[link.plane] * link.params.rate_bps / self.unit_bps for link in used])
        self.sums = self._matrix([(flow.demand, column) for column, flow in enumerate(self.flows)], self.count)
        self.equal = self._same_on_all_planes() if equal_planes else None

    def _matrix(self, entries: Sequence[tuple[int, int]], rows: int, values: Sequence[float] = ()) -> csr_matrix:
        cells = list(values) or [1.0] * len(entries)
        places = ([row for row, _ in entries], [column for _, column in entries])
        return coo_matrix((cells, places), shape=(rows, len(self.flows))).tocsr()

    def _same_on_all_planes(self) -> csr_matrix | None:
        """Rows that say: a demand sends as much on each of its planes as on its first."""
        columns: dict[tuple[int, int], list[int]] = defaultdict(list)
        for column, flow in enumerate(self.flows):
            columns[flow.demand, flow.plane].append(column)
        first: dict[int, tuple[int, list[int]]] = {}
        entries: list[tuple[int, int]] = []
        values: list[float] = []
        rows = 0
        for (demand, plane), own in columns.items():
            reference_plane, reference = first.setdefault(demand, (plane, own))
            if own is reference:
                continue
            entries += [(rows, column) for column in (*reference, *own)]
            values += [1.0 / self.copies[reference_plane]] * len(reference) + [-1.0 / self.copies[plane]] * len(own)
            rows += 1
        return self._matrix(entries, rows, values) if rows else None

    def total(self) -> float:
        """The greatest sum in bit/s that leaves every demand the greatest common rate."""
        if not self.flows:
            return 0.0
        common = self._raise(self.served, {})
        flows = self._solve(-np.ones(len(self.flows)), dict.fromkeys(self.served, common))
        return float(flows.sum()) * self.unit_bps

    def fair_rates(self) -> npt.NDArray[np.float64]:
        """Max-min fair rates in bit/s: raise the floor of all, fix the demands that cannot rise further, and again."""
        fixed: dict[int, float] = {}
        while len(fixed) < len(self.served):
            free = [demand for demand in self.served if demand not in fixed]
            floor = self._raise(free, fixed)
            fixed.update(dict.fromkeys(self._stuck(free, floor, fixed), floor))
        rates = np.zeros(self.count)
        for demand, rate in fixed.items():
            rates[demand] = rate * self.unit_bps
        return rates

    def _raise(self, free: list[int], fixed: dict[int, float]) -> float:
        """The greatest rate that all free demands can have at once, beside the rates of the fixed ones."""
        shares = np.zeros((self.count, 1))
        shares[free] = 1.0
        solution = self._solve(np.append(np.zeros(len(self.flows)), -1.0), fixed, shares)
        return float(solution[-1])

    def _stuck(self, free: list[int], floor: float, fixed: dict[int, float]) -> list[int]:
        """Which of the free demands cannot have more than the floor while the others keep theirs; at least one."""
        step = max(floor, 1e-3) * 1e-2
        unsure = list(free)
        while unsure:
            shares = np.zeros((self.count, len(unsure)))
            shares[unsure, range(len(unsure))] = 1.0
            cost = np.append(np.zeros(len(self.flows)), -np.ones(len(unsure)))
            solution = self._solve(cost, {**fixed, **dict.fromkeys(free, floor)}, shares, most=step)
            raised = solution[len(self.flows) :] > step / 100
            if not raised.any():
                return unsure
            unsure = [demand for demand, up in zip(unsure, raised, strict=True) if not up]
        return free

    def _solve(
        self,
        cost: npt.NDArray[np.float64],
        floors: dict[int, float],
        shares: npt.NDArray[np.float64] | None = None,
        most: float | None = None,
    ) -> npt.NDArray[np.float64]:
        """The flows, followed by extra variables (at most ``most``) that demands get on top of their floors.

        ``shares`` has a row for each demand and a column for each extra variable.
        """
        extra = np.zeros((self.count, 0)) if shares is None else shares
        width = extra.shape[1]
        floor = np.zeros(self.count)
        for demand, rate in floors.items():
            floor[demand] = rate * (1 - _TOLERANCE)
        links = hstack([self.links, coo_matrix((len(self.rates), width))])
        demands = hstack([-self.sums, coo_matrix(extra)])
        equal = None if self.equal is None else hstack([self.equal, coo_matrix((self.equal.shape[0], width))])
        solution = linprog(
            cost,
            A_ub=vstack([links, demands]),
            b_ub=np.concatenate([self.rates, -floor]),
            A_eq=equal,
            b_eq=None if equal is None else np.zeros(equal.shape[0]),
            bounds=[(0, None)] * len(self.flows) + [(0, most)] * width,
            method="highs",
        )
        if not solution.success:
            raise RuntimeError(f"the capacity program has no solution: {solution.message}")
        return np.asarray(solution.x)


def _equal_planes(fabric: Fabric, failed: frozenset[str]) -> dict[int, int]:
    """The first of each group of equal planes, and how many planes are in the group."""
    shapes: dict[int, list[tuple[str, str, int, bool]]] = {plane: [] for plane in range(1, fabric.planes + 1)}
    for link in fabric.links:
        prefix = f"p{link.plane}."
        a = link.a.node if link.tier == "host" else link.a.node.removeprefix(prefix)
        ends = (a, link.b.node.removeprefix(prefix))
        shapes[link.plane].append((*ends, link.params.rate_bps, link.name in failed))
    first: dict[tuple[tuple[str, str, int, bool], ...], int] = {}
    copies: dict[int, int] = {}
    for plane, shape in shapes.items():
        representative = first.setdefault(tuple(sorted(shape)), plane)
        copies[representative] = copies.get(representative, 0) + 1
    return copies
