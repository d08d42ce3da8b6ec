"""Workloads: what is sent, by whom, in what order. One file a kind; `registry.py` knows them all."""
