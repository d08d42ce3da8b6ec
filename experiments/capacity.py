"""What the fabric could carry for a workload, over time: the yardstick of goodput and of recovery."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.failures import failed_links, timeline
from experiments.model import FailureModel
from results.schema import CapacityStep, FailureRecord
from topologies.capacity import capacity_bps, payload_share
from topologies.graph import Fabric


def payload_share_of(fabric: Fabric) -> float:
    """Payload bits per bit on the wire of full MRC packets; the same yardstick for every transport."""
    return payload_share(fabric.mtu)


def capacity_steps(
    fabric: Fabric,
    pairs: Sequence[tuple[str, str]],
    planned: Sequence[FailureModel],
    applied: Sequence[FailureRecord],
) -> list[CapacityStep]:
    """Payload capacity in bit/s as a step function; each step begins when the failure took effect.

    Args:
        planned: the experiment's failures.
        applied: those that happened, with their times; a failure that did not happen changes nothing.
    """
    shift = {record.planned_s: record.at_s for record in applied}
    ends = {record.name: record.until_s for record in applied if record.until_s is not None}
    actions = timeline(planned)
    share = payload_share_of(fabric)
    steps = [CapacityStep(from_s=0.0, bps=capacity_bps(fabric, pairs, payload_share=share))]
    for action in actions:
        name = f"{action.link} {planned[action.failure].do}"
        begins = action.at_s == planned[action.failure].at
        at = shift.get(action.at_s) if begins else ends.get(name)
        if at is None:
            continue
        down = failed_links(actions, action.at_s)
        steps.append(CapacityStep(from_s=at, bps=capacity_bps(fabric, pairs, failed_links=down, payload_share=share)))
    return steps
