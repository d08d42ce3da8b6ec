"""What runs on each emulated host: one process that drives the compiled workload over one transport.

`host.py` is the loop, `schedule.py` decides what may be sent when, `payload.py` makes and checks the bytes. Start with
`host.py`; run as ``python -m experiments.driver SPEC.json``.
"""
