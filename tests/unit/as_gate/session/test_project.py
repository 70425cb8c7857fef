"""Agent's folder at the gate: of a stub or of a hub; and what the wrapper has shown of it."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door
from mcpwrap.as_gate.session import project
from mcpwrap.as_gate.session.project import SessionProject
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.linux.unix_socket.fd_passing import DescriptorError
from mcpwrap.linux.unix_socket.peer_credentials import Peer

SRC = "/home/alice/src"
RULE = AccessRule(uids=(1000,), gids=(), inherits=(), projects=("/home/alice/src",))
HUB = AccessRule(uids=(1000,), gids=(), inherits=(), passes_folder=True)
OTHER = AccessRule(uids=(1000,), gids=(), inherits=())


def agent(door: Door = "stub", via: str = "") -> AgentIdentity:
    return AgentIdentity(Peer(os.getpid(), 1000, frozenset()), door, via=via)


@contextmanager
def stub_that_answers(packet: bytes, fds: list[int]) -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        fd_passing.send(theirs, packet, fds)
        yield ours


@pytest.mark.parametrize("rule", [RULE, HUB])
def test_a_stub_is_asked_for_its_folder(tmp_path: Path, rule: AccessRule) -> None:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    with stub_that_answers(b"D", [fd]) as stub:
        found = project.folder_of(stub, agent(), rule, [])
    assert found is not None
    assert os.path.samestat(os.fstat(found), tmp_path.stat())
    with stub_that_answers(b"D", []) as stub:
        assert project.folder_of(stub, agent(), rule, []) is None  # its agent may not read it


@pytest.mark.parametrize(
    ("rule", "who"),
    [(OTHER, agent()), (RULE, agent("http")), (RULE, agent("login")), (RULE, agent(via="3-1"))],
)
def test_nobody_else_is(rule: AccessRule, who: AgentIdentity) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)  # noqa: FBT003 - of the standard library
        theirs.setblocking(False)  # noqa: FBT003 - of the standard library
        assert project.folder_of(ours, who, rule, []) is None
        with pytest.raises(BlockingIOError):
            theirs.recv(1)


def test_a_hub_sends_it_with_its_hello(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        assert project.folder_of(ours, agent(via="3-1"), RULE, [0, 1, fd]) == fd
        with pytest.raises(DescriptorError, match="more descriptors"):
            project.folder_of(ours, agent(via="3-1"), OTHER, [0, 1, os.dup(fd)])


BAD: list[tuple[bytes, Callable[[Path], list[int]], str]] = [
    (b"D", lambda path: [os.open(path, os.O_PATH)], "was not opened for reading"),
    (b"D", lambda _: [os.pipe()[0]], "was not opened"),
    (b"D", lambda path: [os.open(path, os.O_RDONLY | os.O_DIRECTORY)] * 2, "more descriptors"),
    (b"A=1", lambda path: [os.open(path, os.O_RDONLY | os.O_DIRECTORY)], "not the agent's folder"),
]


@pytest.mark.parametrize(("packet", "make", "why"), BAD, ids=["path", "pipe", "two", "packet"])
def test_anything_else_is_refused(
    tmp_path: Path, packet: bytes, make: Callable[[Path], list[int]], why: str
) -> None:
    with stub_that_answers(packet, make(tmp_path)) as stub, pytest.raises(ValueError, match=why):
        project.folder_of(stub, agent(), RULE, [])


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        (session_socket.ServerStarted("0" * 16), SessionProject()),
        (
            session_socket.ServerStarted("", "/home/alice/src/a"),
            SessionProject("/home/alice/src/a"),
        ),
        (session_socket.ServerStarted("", "/home/alice/src"), SessionProject("/home/alice/src")),
        (
            session_socket.ServerStarted("", "", "why\x1b[2J"),
            SessionProject("", "mcpwrap: files sees no project: why\\x1b[2J"),
        ),
    ],
)
def test_what_the_wrapper_has_shown_is_taken(
    started: session_socket.ServerStarted, expected: SessionProject
) -> None:
    assert project.shown("files", started, RULE) == expected


@pytest.mark.parametrize("path", ["/home/alice", "/home/alice/src2", "/etc"])
def test_what_root_has_not_listed_is_not(path: str) -> None:
    with pytest.raises(session_socket.ProtocolError, match="not listed"):
        project.shown("files", session_socket.ServerStarted("", path), RULE)
