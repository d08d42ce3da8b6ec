"""The packets of MRC 1.0: opcodes, headers, sequence numbers, integrity check.

Pure functions and tuples; imports nothing of the rest of the agent. Start with ``opcodes.py``, then ``headers.py``.
All integers are big-endian on the wire. Layout of a data packet after the UDP header:
``BTH | METH | [TSETH] | RETH | [ImmDt] | payload | padding to 4 bytes | ICRC``.
"""
