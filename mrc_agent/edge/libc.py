"""What Python's ``socket`` lacks: ``sendmmsg``, ``recvmmsg``, their memory layouts, and option numbers of Linux."""

from __future__ import annotations

import array
import ctypes
import fcntl
import socket
import struct

IPV6_MTU_DISCOVER = 23
IPV6_PMTUDISC_PROBE = 3  # never fragment, never learn a smaller path MTU
IPV6_FLOWINFO = 11
IPV6_FLOWINFO_SEND = 33
IPV6_TCLASS = 67
IPV6_AUTOFLOWLABEL = 70
UDP_NO_CHECK6_RX = 102
SO_ATTACH_FILTER = 26
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SIOCGIFMTU = 0x8921
MSG_TRUNC = 0x20

IOVEC_BYTES = 16
MSGHDR_BYTES = 56
MMSGHDR_BYTES = 64
SOCKADDR_BYTES = 28
MMSGHDR = struct.Struct("=QI4xQQQQi4xI4x")
"""name, its length, iovec array, its length, control, its length, flags; bytes transferred."""
SOCKADDR = struct.Struct("=HH4s16sI")
"""family, port, flow information (big-endian), address, scope."""
TCLASS_CMSG = struct.Struct("=QiiI4x")
"""length, level, type, traffic class: the control message that sets the traffic class of one packet."""

_LIBC = ctypes.CDLL(None, use_errno=True)


class _PyBuffer(ctypes.Structure):
    """``Py_buffer`` of CPython."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def address_of(buffer: bytearray) -> int:
    """Machine address of a bytearray, which must not be resized from now on."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def address_of_view(view: memoryview) -> int:
    """Machine address of any contiguous buffer, also a read-only one; 0 when it is empty."""
    if not view.nbytes:
        return 0
    info = _PyBuffer()
    if ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(info), 0):
        raise BufferError("not a contiguous buffer")
    address = int(info.buf or 0)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(info))
    return address


def send_messages(fd: int, messages: int, count: int) -> int:
    """``sendmmsg`` of `count` message headers at address `messages`; the number sent, or minus an errno."""
    sent: int = _LIBC.sendmmsg(fd, ctypes.c_void_p(messages), count, socket.MSG_DONTWAIT)
    return sent if sent >= 0 else -ctypes.get_errno()


def receive_messages(fd: int, messages: int, count: int) -> int:
    """``recvmmsg`` into `count` message headers at address `messages`; the number received, or minus an errno."""
    received: int = _LIBC.recvmmsg(fd, ctypes.c_void_p(messages), count, socket.MSG_DONTWAIT, None)
    return received if received >= 0 else -ctypes.get_errno()


def ignore_input(sock: socket.socket) -> None:
    """Makes a raw socket drop whatever it would receive: it gets a copy of every UDP datagram otherwise."""
    program = array.array("B", struct.pack("=HBBI", 0x06, 0, 0, 0))  # BPF: return 0
    address, _ = program.buffer_info()
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("=H6xQ", 1, address))


def enlarge(sock: socket.socket, force_option: int, plain_option: int, size: int) -> None:
    """Sets a socket buffer beyond the system's limit if we may, else as far as it goes."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, force_option, size)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, plain_option, size)


def interface_mtu(interface: str) -> int:
    """MTU of an interface of this network namespace in bytes. Raises OSError when there is none of that name."""
    request = struct.pack("16s16x", interface.encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        (mtu,) = struct.unpack("16xi12x", fcntl.ioctl(sock, SIOCGIFMTU, request))
    return int(mtu)
