"""Byte relay through real pipes and sockets, blocking or not, to the end or a break."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from mcpwrap.linux.unix_socket.fd_passing import close_all
from mcpwrap.session.relay import copy

Pipe = tuple[int, int]
MORE_THAN_A_PIPE_HOLDS = b"0123456789abcde\n" * 65_536


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Return the read end and the write end of a pipe."""
    ends = os.pipe()
    yield ends
    close_all(list(ends))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Run threads for the other end."""
    with ThreadPoolExecutor() as threads:
        yield threads


def write_and_close(fd: int, data: bytes) -> None:
    with os.fdopen(fd, "wb") as file, suppress(BrokenPipeError):
        file.write(data)


def read_all(fd: int) -> bytes:
    with os.fdopen(os.dup(fd), "rb") as file:
        return file.read()


@pytest.mark.parametrize("blocking", ["blocking", "non-blocking"])
def test_all_data_is_relayed_to_a_slow_reader(
    pipe: Pipe, pool: ThreadPoolExecutor, blocking: str
) -> None:
    source_fd, feed_fd = os.pipe()
    for fd in (source_fd, pipe[1]):
        os.set_blocking(fd, blocking == "blocking")  # as their owner left them
    fed = pool.submit(write_and_close, feed_fd, MORE_THAN_A_PIPE_HOLDS)
    got = pool.submit(read_all, pipe[0])
    copy.relay_each(source_fd, lambda piece: copy.write(pipe[1], piece))
    assert os.get_blocking(pipe[1]) == (blocking == "blocking")
    os.close(pipe[1])
    assert got.result() == MORE_THAN_A_PIPE_HOLDS
    fed.result()
    os.close(source_fd)


@pytest.mark.parametrize("blocking", ["blocking", "non-blocking"])
def test_a_closed_reader_raises(pipe: Pipe, blocking: str) -> None:
    os.set_blocking(pipe[1], blocking == "blocking")
    os.close(pipe[0])
    with pytest.raises(BrokenPipeError):
        copy.write(pipe[1], b"x")


def test_a_peer_that_closed_without_reading_is_the_end() -> None:
    ours, theirs = socket.socketpair()
    ours.send(b"unread")
    theirs.close()  # so the kernel returns ECONNRESET
    with ours:
        assert copy.read(ours.fileno()) == b""


def test_each_piece_is_delivered_in_order(pipe: Pipe) -> None:
    os.write(pipe[1], b"no newline")
    pieces: list[bytes] = []

    def deliver(piece: bytes) -> None:
        pieces.append(piece)
        if len(pieces) == 1:
            os.write(pipe[1], b"more")
        else:
            os.close(pipe[1])

    copy.relay_each(pipe[0], deliver)
    assert pieces == [b"no newline", b"more"]


def test_an_unconnected_stream_has_ended() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as nowhere:
        assert copy.read(nowhere.fileno()) == b""


def test_an_invalid_descriptor_is_a_bug() -> None:
    source_fd, feed_fd = os.pipe()
    close_all([source_fd, feed_fd])
    with pytest.raises(OSError, match="Bad file descriptor"):
        copy.read(source_fd)
