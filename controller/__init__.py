"""The OpenFlow control plane: what every switch must be told, and the process that tells it.

May import ``topologies`` and nothing else of ours. Two halves that meet in plain records:

* ``program.py`` (flow and group records), ``routes/`` (one file per routing mode, pure), ``walk.py`` (where would this
  packet go?) and ``ovs_hash.py`` (which bucket would Open vSwitch take?) need no switch, no root and no framework.
* ``framework.py``, ``openflow.py`` and ``app.py`` are the only files that know os-ken or Ryu. ``launcher.py`` runs them
  as a process of their own, and ``process.py`` is that process as seen by the testbed.

Start reading at ``program.py``, then ``routes/__init__.py``.
"""
