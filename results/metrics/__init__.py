"""The metrics, one file for each family. Each function states its formula and its unit.

All metrics of one cell leave the warm-up out, except counts of lost, corrupt and retransmitted things: a byte that was
wrong during the warm-up was wrong. A cell that did not end as ``done`` has no metrics; it lowers n, it is never 0.
"""
