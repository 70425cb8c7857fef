"""Session's process of the gate: emergency stop, the agent's umask, and the agent's end.

A file of the stop that cannot be read, or that others could have written, stops all servers.
"""

import os
import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door
from mcpwrap.as_gate.session import admit
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket.peer_credentials import Peer

NOW, KEPT = "run/panic.json", "lib/panic.json"


def text(content: str, mode: int = 0o644) -> Callable[[Path], None]:
    """Return a function that writes the file."""

    def make(path: Path) -> None:
        path.write_text(content)
        path.chmod(mode)

    return make


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make the folders of both files, without the files."""
    for path in (NOW, KEPT):
        (tmp_path / path).parent.mkdir()
    monkeypatch.setattr(admit, "PANIC", (tmp_path / NOW, tmp_path / KEPT))
    monkeypatch.setattr(admit, "SERVERS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("where", [NOW, KEPT])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (text('{"everything":true}'), "stopped in an emergency"),
        (text('{"names":["git"]}'), "stopped in an emergency"),
        (text(""), "stopped in an emergency"),  # truncated by a full disk
        (text('{"names":"git"'), "stopped in an emergency"),
        (text('{"later":1}'), "stopped in an emergency"),  # of another version
        (text("\udcff".encode(errors="surrogateescape").decode("latin-1")), "emergency"),
        (text('{"names":[]}', 0o666), "(mode 0666)"),
        (text('{"names":[]}', 0o664), "(mode 0664)"),
        (lambda path: os.chown(path, 1000, 0) if path.write_text("{}") else None, "owner 1000"),
        (lambda path: path.symlink_to("/dev/null"), "not a plain file"),
        (lambda path: path.symlink_to("nowhere"), "not a plain file"),
        (os.mkfifo, "not a plain file"),  # a FIFO, which is not opened
        (Path.mkdir, "not a plain file"),
        (lambda path: path.parent.chmod(0o777), "accounts other than root can change its content"),
    ],
)
def test_a_file_that_may_be_a_stop_refuses_sessions(
    folder: Path, where: str, make: Callable[[Path], None], why: str
) -> None:
    make(folder / where)
    with pytest.raises(RefusalError) as refused:
        admit._expect_no_panic("git")
    assert why in refused.value.why


@pytest.mark.parametrize("where", [NOW, KEPT])
@pytest.mark.parametrize("make", [lambda _: None, text('{"names":["time"]}'), text("{}", 0o600)])
def test_without_a_stop_sessions_are_admitted(
    folder: Path, where: str, make: Callable[[Path], None]
) -> None:
    make(folder / where)
    admit._expect_no_panic("git")


@pytest.mark.parametrize(("door", "is_told"), [("stub", True), ("http", False), ("login", False)])
def test_the_umask_of_the_agents_process_is_passed_on(door: Door, *, is_told: bool) -> None:
    pidfd = os.pidfd_open(os.getpid())
    before = os.umask(0o727)
    try:
        told = admit._umask(AgentIdentity(Peer(os.getpid(), 1000, frozenset()), door), pidfd)
    finally:
        os.umask(before)
        os.close(pidfd)
    assert told == ({"MCPWRAP_UMASK": "0027"} if is_told else {})


@pytest.fixture
def watch() -> Iterator[Callable[[int], select.epoll]]:
    """Yield the epoll of an output, with a stub and a monitor that stay open."""
    stub, its_stub = socket.socketpair()
    monitor, its_monitor = socket.socketpair()
    pidfd = os.pidfd_open(os.getpid())
    with stub, its_stub, monitor, its_monitor:
        to_monitor = ToMonitor(monitor, DoorbellFlag(), Backoff())
        yield lambda fd: admit._ends(stub, pidfd, to_monitor, fd)
    os.close(pidfd)


def pipe() -> tuple[int, int]:
    return os.pipe()


def pair() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


@pytest.mark.parametrize("make", [pipe, pair])
def test_the_end_of_the_outputs_reader_is_reported_once(
    watch: Callable[[int], select.epoll], make: Callable[[], tuple[int, int]]
) -> None:
    reader, output = make()
    with watch(output) as ends:
        assert ends.poll(0) == []
        os.close(reader)
        assert [fd for fd, _ in ends.poll(0)] == [output]
        assert ends.poll(0) == []  # so that the next event is the end of another file
    os.close(output)


@pytest.mark.parametrize("make", [pipe, pair])
def test_it_is_reported_if_only_the_server_has_the_output(
    watch: Callable[[int], select.epoll], make: Callable[[], tuple[int, int]]
) -> None:
    reader, output = make()
    servers = os.dup(output)
    with watch(output) as ends:
        os.close(output)
        assert ends.poll(0) == []
        os.close(reader)
        assert [fd for fd, _ in ends.poll(0)] == [output]
    os.close(servers)


def test_an_agent_sees_the_end_of_a_watched_output(
    watch: Callable[[int], select.epoll],
) -> None:
    reader, output = pipe()
    with watch(output) as ends:
        os.close(output)
        assert os.read(reader, 1) == b""
        os.close(reader)
        assert ends.poll(0) == []  # no process has the output any more


def test_an_agent_that_closes_only_its_input_has_not_left(
    watch: Callable[[int], select.epoll],
) -> None:
    ours, theirs = socket.socketpair()  # for a stub whose 0 and 1 are one socket
    with ours, theirs, watch(ours.fileno()) as ends:
        theirs.shutdown(socket.SHUT_WR)
        assert ends.poll(0) == []
        theirs.close()
        assert [fd for fd, _ in ends.poll(0)] == [ours.fileno()]
