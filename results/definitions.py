"""What the metrics mean, in words, as printed in every report. The exact rules are beside the code in ``metrics/``."""

from __future__ import annotations

DEFINITIONS: tuple[tuple[str, str], ...] = (
    (
        "n",
        "Number of repetitions the numbers are made of. A repetition that failed, timed out, was interrupted or is "
        "invalid lowers n; it is never counted as 0.",
    ),
    (
        "Goodput",
        "Payload bytes delivered for the first time, times 8, per second, all pairs together; the mean from the "
        "end of the warm-up to the end. Headers and retransmissions do not count.",
    ),
    (
        "95 % interval",
        "Percentile bootstrap over repetitions (10,000 draws, fixed seed). With few repetitions it is rough; with "
        "one there is none. Intervals of ratios draw pairs of the same repetition.",
    ),
    (
        "Share of capacity",
        "Goodput divided by the payload capacity of the fabric for this workload, both averaged over the same "
        "time; failures lower the capacity for as long as they last.",
    ),
    (
        "FCT, completion time",
        "From handing a message to the transport until it is complete at the receiver. Percentiles (nearest rank) "
        "are taken from the raw samples of all repetitions together, of messages posted after the warm-up and "
        "delivered intact. Below 100 messages p99 is the slowest one; p99.9 is given from 1,000 on.",
    ),
    (
        "Recovery time",
        "From the beginning of a failure until goodput, in samples of 50 ms, is back to 90 % of the level and "
        "stays there for 500 ms. Level: what the surviving capacity allows, but no more than the transport's own "
        "goodput before the first failure. It stays there when every sliding mean of 200 ms reaches 90 % and no "
        "single sample falls below half. Goodput that was uneven before the failure is judged by a mean of 400 ms "
        "or 1 s. The resolution is 50 ms.",
    ),
    (
        "Dip",
        "Payload bytes not delivered compared with that level, from the failure to recovery (or the end).",
    ),
    (
        "Capacity used after",
        "Goodput as a share of the surviving payload capacity, from recovery to the next change of the fabric.",
    ),
    (
        "Packets sent again",
        "Data packets retransmitted, all hosts and all n repetitions together, and their share of all data packets "
        "sent.",
    ),
    (
        "Corrupt / lost",
        "Messages whose content at the receiver had another hash than at the sender, and messages the transport "
        "gave up; sums over the n repetitions, warm-up included.",
    ),
    (
        "Host-limited",
        "The machine that emulates the network, not the network, set the pace (for example an agent used more than "
        "80 % of a core). Such numbers say little about the transport.",
    ),
)
