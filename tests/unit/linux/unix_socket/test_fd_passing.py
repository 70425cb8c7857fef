"""File descriptors from untrusted peers: the accepted kinds, and none is leaked."""

import fcntl
import os
import pty
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.linux.unix_socket.fd_passing import DescriptorError

Opened = list[int]


def pipe_ends(_: Path) -> Opened:
    return list(os.pipe())


def pipe_ends_reversed(_: Path) -> Opened:
    return list(os.pipe())[::-1]


def unix_stream(_: Path) -> Opened:
    return [end.detach() for end in socket.socketpair()]


def unix_packets(_: Path) -> Opened:
    return [end.detach() for end in socket.socketpair(type=socket.SOCK_SEQPACKET)]


def tcp(_: Path) -> Opened:
    return [socket.socket(socket.AF_INET).detach() for _ in range(2)]


def terminal(_: Path) -> Opened:
    return list(pty.openpty())


def plain_file(folder: Path) -> Opened:
    flags = os.O_RDWR | os.O_CREAT
    return [os.open(folder / "file", flags) for _ in range(2)]


def folder(path: Path) -> Opened:
    return [os.open(path, os.O_RDONLY) for _ in range(2)]


def null(_: Path) -> Opened:
    return [os.open("/dev/null", os.O_RDWR) for _ in range(2)]


def event(_: Path) -> Opened:
    return [os.eventfd(0) for _ in range(2)]


def fifo(path: Path) -> Opened:
    os.mkfifo(path / "fifo")
    return [os.open(path / "fifo", os.O_RDWR) for _ in range(2)]


def path_of_fifo(path: Path) -> Opened:
    os.mkfifo(path / "fifo")
    return [os.open(path / "fifo", os.O_PATH) for _ in range(2)]


def path_of_socket(path: Path) -> Opened:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path / "sock"))
    return [os.open(path / "sock", os.O_PATH) for _ in range(2)]


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Open the two descriptors of a row, and close them after the test."""
    make: Callable[[Path], Opened] = request.param
    fds = make(tmp_path)
    yield fds
    fd_passing.close_all(fds)


@pytest.mark.parametrize("opened", [pipe_ends, unix_stream, fifo], indirect=True)
def test_a_pipe_and_a_unix_stream_are_accepted(opened: Opened) -> None:
    flags = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in opened]
    fd_passing.expect_streams(opened, readable=opened[0], writable=opened[1:])
    assert [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in opened] == flags


@pytest.mark.parametrize(
    "opened",
    [
        unix_packets,
        tcp,  # carries its creator's identity past the packet rules
        terminal,  # can be typed into
        plain_file,
        folder,
        null,
        event,
        path_of_fifo,
        path_of_socket,  # leads to a service, though it can be neither read nor written
        pipe_ends_reversed,
    ],
    indirect=True,
)
def test_all_other_kinds_are_refused(opened: Opened) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(DescriptorError):
        fd_passing.expect_streams(opened, readable=opened[0], writable=opened[1:])
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("opened", "owner"),
    [
        (fifo, 1000),
        (fifo, 0),  # root can read every session anyway
        (pipe_ends, 1001),  # of a supervisor: a pipe without a name cannot be opened
        (unix_stream, 1001),
    ],
    indirect=["opened"],
)
def test_an_own_fifo_and_pipes_of_others_are_accepted(opened: Opened, owner: int) -> None:
    for fd in opened:
        os.fchown(fd, owner, -1)
    fd_passing.expect_own_fifos(opened, 1000)


@pytest.mark.parametrize("opened", [fifo], indirect=True)
def test_a_fifo_of_another_account_is_refused(opened: Opened) -> None:
    os.fchown(opened[0], 1001, -1)
    with pytest.raises(DescriptorError, match="belongs to uid 1001"):
        fd_passing.expect_own_fifos(opened, 1000)


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return both ends of a packet connection."""
    ends = socket.socketpair(type=socket.SOCK_SEQPACKET)
    yield ends
    for end in ends:
        end.close()


Connection = tuple[socket.socket, socket.socket]


@pytest.mark.parametrize("count", [1, 3, 253])
def test_a_packet_comes_with_its_descriptors(connection: Connection, count: int) -> None:
    ours, theirs = connection
    read_fd, write_fd = os.pipe()
    fd_passing.send(theirs, b"hello", [write_fd] * count)
    data, fds = fd_passing.receive(ours, 64)
    os.write(fds[-1], b"x")
    assert (data, len(fds), os.read(read_fd, 9)) == (b"hello", count, b"x")
    assert all(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for fd in fds)
    fd_passing.close_all([*fds, read_fd, write_fd])


def test_a_packet_without_descriptors_and_the_end(connection: Connection) -> None:
    ours, theirs = connection
    theirs.send(b"hello")
    theirs.close()
    assert fd_passing.receive(ours, 64) == (b"hello", [])
    assert fd_passing.receive(ours, 64) == (b"", [])


def test_credentials_that_the_kernel_adds_are_no_descriptor(connection: Connection) -> None:
    ours, theirs = connection
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    theirs.send(b"hello")
    assert fd_passing.receive(ours, 64) == (b"hello", [])


def test_a_timeout_is_an_error(connection: Connection) -> None:
    connection[0].settimeout(0.01)
    with pytest.raises(TimeoutError):
        fd_passing.receive(connection[0], 64)


def test_of_a_packet_that_is_too_long_no_descriptor_stays_open(connection: Connection) -> None:
    ours, theirs = connection
    read_fd, write_fd = os.pipe()
    fd_passing.send(theirs, b"x" * 65, [write_fd, write_fd])
    os.close(write_fd)
    with pytest.raises(DescriptorError):
        fd_passing.receive(ours, 64)
    assert os.read(read_fd, 9) == b""  # end of file: no process has the other end open
    os.close(read_fd)


def test_closing_goes_on_after_one_that_is_closed() -> None:
    read_fd, write_fd = os.pipe()
    fd_passing.close_all([read_fd, read_fd, write_fd])
    for fd in (read_fd, write_fd):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
