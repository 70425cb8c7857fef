"""Session's process of the gate: the agent's end."""

import os
import select
import socket
from collections.abc import Callable, Iterator

import pytest

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door
from mcpwrap.as_gate.session import admit
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessList, AccessRule
from mcpwrap.linux import accounts
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket.peer_credentials import Peer

ALICE, GUESTS, STAFF = 1000, 900, 901
RULE = AccessRule(uids=(), gids=(GUESTS,), inherits=())


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


@pytest.mark.parametrize(
    ("door", "gids", "from_next_login", "code"),
    [
        ("stub", {GUESTS}, {GUESTS}, None),
        ("stub", {GUESTS}, set(), None),  # removed since: the session keeps its groups
        ("stub", {STAFF}, {STAFF, GUESTS}, "E-SESSION-OLD-LOGIN"),
        ("stub", {STAFF}, {STAFF}, "E-SESSION-NOT-AGENT"),
        ("stub", {STAFF}, set(), "E-SESSION-NOT-AGENT"),  # the database cannot be read
        ("http", set(), {GUESTS}, "E-SESSION-NOT-AGENT"),  # a listener has no groups
    ],
)
def test_an_old_login_is_named_as_the_reason(
    monkeypatch: pytest.MonkeyPatch,
    door: Door,
    gids: set[int],
    from_next_login: set[int],
    code: str | None,
) -> None:
    monkeypatch.setattr(
        accounts, "groups_from_next_login", {ALICE: frozenset(from_next_login)}.__getitem__
    )
    agent = AgentIdentity(Peer(7, ALICE, frozenset(gids)), door)
    admissions = AccessList(by_server={"notes": RULE})
    if code is None:
        assert admit._admission("notes", agent, admissions) == RULE
        return
    with pytest.raises(RefusalError, match=rf"'notes': .*\[{code}\]") as refused:
        admit._admission("notes", agent, admissions)
    assert refused.value.status is session_socket.Exit.NOT_ALLOWED
