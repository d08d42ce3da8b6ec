"""From a topology's model to its graph: one file for each kind, joined by ``wiring.py``. See ``registry.py``."""
