"""The socket edge: the only part of the transport that does I/O.

Imports ``core`` and ``wire``. ``libc.py`` holds the numbers and calls of Linux, ``transmitter.py`` and ``collector.py``
the two directions of one plane, ``sockets.py`` the pair of them. Linux only, 64 bit; raw sockets need CAP_NET_RAW.
"""
