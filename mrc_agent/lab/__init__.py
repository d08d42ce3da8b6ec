"""A network in virtual time that drives the core without sockets, deterministic by seed.

Imports ``core``, ``wire`` and ``profile``. Start with ``fabric.py`` (ready-made multi-plane fabrics and transfers),
then ``network.py`` (clock and hosts) and ``links.py`` (rate, delay, queue, loss, reordering, duplication, outages).
"""
