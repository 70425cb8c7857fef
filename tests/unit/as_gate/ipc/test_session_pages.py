"""Pages of sessions' processes: sealed once taken, one for each session, and closed."""

import mmap
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.as_gate.ipc.session_pages import SessionPages
from mcpwrap.linux.unix_socket import fd_passing, memfd


@pytest.fixture
def pages() -> Iterator[SessionPages]:
    before = set(Path("/proc/self/fd").iterdir())
    made = SessionPages("document")
    yield made
    for session in list(made._page_by_session):
        made.drop(session)
    assert set(Path("/proc/self/fd").iterdir()) == before


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_taken_page_is_sealed(pages: SessionPages) -> None:
    mine = os.dup(pages.new(1))  # as in a session's process
    os.write(mine, b"text")
    fd = pages.take(1)
    for change in (lambda: os.pwrite(mine, b"x", 0), lambda: os.ftruncate(mine, 0)):
        with pytest.raises(PermissionError):
            change()
    assert os.pread(fd, 9, 0) == b"text"
    fd_passing.close_all([mine, fd])


def test_a_page_that_is_still_mapped_is_refused(pages: SessionPages) -> None:
    page = pages.new(1)
    os.write(page, b"text")
    with mmap.mmap(page, 4), pytest.raises(OSError, match="busy"):
        pages.take(1)
    assert not is_open(page)


def test_a_session_has_one_page_at_a_time(pages: SessionPages) -> None:
    first, other = pages.new(1), pages.new(2)
    second = pages.new(1)
    assert not is_open(first) or first == second
    pages.drop(1)
    pages.drop(1)
    assert (is_open(second), is_open(other)) == (False, True)
    for _ in range(2):
        with pytest.raises(ChannelError, match="no document"):
            pages.take(1)


def test_a_session_is_sent_its_page_or_a_refusal(
    pages: SessionPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_name: str) -> int:
        raise OSError(24, "Too many open files")

    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        pages.hand_out(1, monitor)
        _, fds = fd_passing.receive(child, packets.MAX_BYTES)
        os.write(fds[0], b"text")
        fd = pages.take(1)
        assert memfd.read_all(fd) == b"text"
        fd_passing.close_all([fd, *fds])
        with monkeypatch.context() as patch:
            patch.setattr(memfd, "unsealed", fail)
            pages.hand_out(1, monitor)
        assert fd_passing.receive(child, packets.MAX_BYTES) == (b"D", [])
