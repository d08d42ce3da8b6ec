"""The transport without I/O: batches of datagrams and the time go in, batches of datagrams and the next timer come out.

Imports ``wire`` and ``profile`` only. Start with ``endpoint.py`` (one host), then ``queue_pair.py`` (one connection)
with ``sender.py`` and ``receiver.py``. Helpers of the sender: ``evs.py`` (which path), ``nscc.py`` (how much),
``paths.py`` (when is a packet lost), ``prober.py`` (is a path back), ``reverse.py`` (how acknowledgements travel).

Inside the core planes are numbered from 0 by their position in the agent's configuration; the numbers that users see
start at 1. Times are seconds of one monotonic clock.
"""
