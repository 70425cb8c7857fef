"""Descriptor passing (SCM_RIGHTS), and checks of descriptors from an untrusted peer."""

import array
import fcntl
import os
import socket
import stat
from contextlib import suppress

_MAX_PASSED = 253  # SCM_MAX_FD: with room for the maximum, none is cut off
_INT_BYTES = array.array("i").itemsize


class DescriptorError(ValueError):
    """Passed packet or descriptor that violates the protocol."""


def receive(connection: socket.socket, max_bytes: int, flags: int = 0) -> tuple[bytes, list[int]]:
    """Receive one packet with its descriptors; the caller closes them.

    They are close-on-exec from the first moment. An empty packet is the end of the connection.
    `flags` are those of recvmsg(2).

    Raises:
        DescriptorError: packet or descriptors were cut off. All received descriptors are closed.
        OSError, TimeoutError: the connection broke, or no packet arrived in time.
    """
    data, ancillary, came, _ = connection.recvmsg(
        max_bytes, socket.CMSG_SPACE(_MAX_PASSED * _INT_BYTES), flags | socket.MSG_CMSG_CLOEXEC
    )
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(payload[: len(payload) - len(payload) % _INT_BYTES])
    if came & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        close_all(fds.tolist())
        raise DescriptorError("a packet has more data or descriptors than the protocol allows")
    return data, fds.tolist()


def send(connection: socket.socket, data: bytes, fds: list[int]) -> None:
    """Send one packet with descriptors."""
    rights = array.array("i", fds)
    connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def close_all(fds: list[int]) -> None:
    """Close all descriptors, even if closing one fails."""
    for fd in fds:
        with suppress(OSError):
            os.close(fd)


def expect_streams(fds: list[int], *, readable: int, writable: list[int]) -> None:
    """Refuse all but pipes and AF_UNIX stream sockets, each usable in its direction.

    A TCP socket would carry its creator's identity past the packet rules, a terminal can be written
    to and typed into, and an O_PATH descriptor leads to files.

    Raises:
        DescriptorError: one is refused; the message has its number and the reason.
    """
    for fd in fds:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_PATH or not _is_stream(fd):
            raise DescriptorError(
                f"descriptor {fds.index(fd)} is neither a pipe nor a unix stream socket"
            )
    for fd, useless in [(readable, os.O_WRONLY), *((fd, os.O_RDONLY) for fd in writable)]:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == useless:
            raise DescriptorError(f"descriptor {fds.index(fd)} is open in the wrong direction")


def expect_own_fifos(fds: list[int], uid: int) -> None:
    """Refuse a named pipe that belongs to neither this account nor root.

    Its owner can open it by its name at any time, and read or write the session there. A pipe
    without a name is held only by the processes that it was passed to. Source: fifo(7).

    Raises:
        DescriptorError: one is refused; the message has its number and its owner.
    """
    for fd in fds:
        info = os.fstat(fd)
        if stat.S_ISFIFO(info.st_mode) and info.st_uid not in {uid, 0} and _has_name(info.st_dev):
            raise DescriptorError(
                f"descriptor {fds.index(fd)} is a FIFO that belongs to uid {info.st_uid}, "
                "which can read and write it too: use a pipe, or a FIFO of this account"
            )


def _has_name(device: int) -> bool:
    """Return whether a FIFO on this device is a file; FIFOs of pipe(2) share one device."""
    read_fd, write_fd = os.pipe()
    try:
        return device != os.fstat(read_fd).st_dev
    finally:
        close_all([read_fd, write_fd])


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode):
        return True
    if not stat.S_ISSOCK(mode):
        return False
    with socket.socket(fileno=os.dup(fd)) as sock:
        return sock.family == socket.AF_UNIX and sock.type == socket.SOCK_STREAM
