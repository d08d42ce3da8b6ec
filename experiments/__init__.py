"""The room that says what is tried: experiments in YAML, workloads, transports, failures, and the runner.

It may import `testbed`, `controller`, `topologies`, `mrc_agent` and `results`. Start reading at `model.py` (what the
YAML may say) and `runner.py` (a run, from outside its namespaces); `cell.py` is the same run from inside, and `driver/`
is what runs on each emulated host.
"""
