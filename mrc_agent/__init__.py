"""The MRC transport: a core without I/O, thin socket edges, the host agent.

Imports no other room. Where to start reading:

* ``profile.py``: every constant of the transport with its unit, default and source.
* ``wire/``: the packets, header by header.
* ``core/endpoint.py``: the core takes batches of datagrams and the time, and fills batches of datagrams;
  ``core/queue_pair.py`` and its two halves ``sender.py`` and ``receiver.py`` hold the protocol.
* ``edge/``: raw IPv6 sockets, ``sendmmsg`` and ``recvmmsg``; the only place that does I/O.
* ``agent.py``: what an application uses.
* ``lab/``: a network in virtual time that drives the same core, deterministic by seed.
"""
