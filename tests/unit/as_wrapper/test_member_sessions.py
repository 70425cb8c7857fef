"""Sessions of a hub's members, which the supervisor opens at a scripted gate."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcpwrap.as_wrapper.member_sessions import MemberSessions, OuterRequest
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.hub import hub_channel
from mcpwrap.core.wire.hub.hub_channel import (
    JournalLine,
    NoSession,
    OpenSession,
    SessionOpening,
    ToHub,
)
from mcpwrap.core.wire.server_files import HubMemberSpec, HubSpec
from mcpwrap.linux.unix_socket import fd_passing
from tests.shared import pace

SPEC = HubSpec(
    members=(
        HubMemberSpec(name="git", namespace="git", inherits=("GIT_TOKEN", "LANG")),
        HubMemberSpec(name="time", namespace="t"),
        HubMemberSpec(name="files", namespace="f", has_projects=True),
    )
)
INHERITED = {
    "GIT_TOKEN": "of git",
    "LANG": "",
    "OTHER": "of another",
    "CLAUDE_PROJECT_DIR": "/home/alice/src/a",
}


@dataclass
class Supervised:
    """Supervisor's part of a session of a hub, its program, and the gate."""

    sessions: MemberSessions
    gate: socket.socket

    def take(self, packet: bytes) -> bool:
        self.sessions.theirs.send(packet)
        return self.sessions.handle(0.0)

    def reply(self) -> tuple[ToHub, list[int]]:
        packet, fds = fd_passing.receive(self.sessions.theirs, hub_channel.MAX_PACKET_BYTES)
        return hub_channel.decode_to_hub(packet), fds


@contextmanager
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    path = str(tmp_path / "gate.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gate:
        gate.bind(path)
        gate.listen()
        gate.settimeout(pace.WAIT_S)
        outer = OuterRequest(
            "20261126-tools-1", INHERITED, os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        )
        sessions = MemberSessions(SPEC, outer, path)
        with sessions.theirs:
            sessions.theirs.settimeout(pace.WAIT_S)
            yield Supervised(sessions, gate)
        sessions.close()


@pytest.mark.parametrize(
    ("member", "variables"),
    [("git", {"GIT_TOKEN": "of git", "LANG": ""}), ("time", {})],
)
def test_a_member_is_opened_for_the_session_with_its_own_variables(
    tmp_path: Path, member: str, variables: dict[str, str]
) -> None:
    with supervised(tmp_path) as hub:
        assert hub.take(hub_channel.encode(OpenSession(member)))
        reply, ours = hub.reply()
        assert reply == SessionOpening(member)
        connection, _ = hub.gate.accept()
        with connection:
            hello, theirs = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
            found = session_socket.decode_hello(session_socket.Protocol.GATE, hello)
            assert found == (member, {"MCPWRAP_VIA": "20261126-tools-1", **variables})
            to_server, from_server = theirs
            os.write(ours[1], b"to it\n")
            os.write(from_server, b"from it\n")
            assert os.read(to_server, 99) == b"to it\n"
            assert os.read(ours[2], 99) == b"from it\n"
            os.write(ours[0], b"on the control socket")
            assert connection.recv(99) == b"on the control socket"
        fd_passing.close_all([*ours, *theirs])


def test_the_agents_folder_is_for_a_member_with_projects_alone(tmp_path: Path) -> None:
    with supervised(tmp_path) as hub:
        for member, count in (("git", 2), ("files", 3)):
            hub.take(hub_channel.encode(OpenSession(member)))
            _, ours = hub.reply()
            connection, _ = hub.gate.accept()
            with connection:
                hello, theirs = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
            found = session_socket.decode_hello(session_socket.Protocol.GATE, hello)[1]
            assert ("CLAUDE_PROJECT_DIR" in found) is (member == "files")
            assert len(theirs) == count
            if member == "files":
                assert os.path.samestat(os.fstat(theirs[2]), tmp_path.stat())
            fd_passing.close_all([*ours, *theirs])


@pytest.mark.parametrize("name", ["tools", "", "../git", "git\0MCPWRAP_VIA=other"])
def test_no_other_server_is_opened(tmp_path: Path, name: str) -> None:
    with supervised(tmp_path) as hub:
        assert hub.take(b"O" + name.encode())
        reply, fds = hub.reply()
        assert isinstance(reply, NoSession)
        assert "not a member" in reply.why
        assert fds == []


def test_without_a_gate_the_hub_is_told_why(tmp_path: Path) -> None:
    with supervised(tmp_path) as hub:
        hub.gate.close()
        assert hub.take(hub_channel.encode(OpenSession("git")))
        reply, _ = hub.reply()
        assert reply == NoSession("git", "the gate does not answer: Connection refused")


def test_a_hub_cannot_ask_without_a_bound(tmp_path: Path) -> None:
    with supervised(tmp_path) as hub:
        for _ in range(32):
            hub.take(b"Onone")
            hub.reply()
        hub.take(b"Onone")
        reply, _ = hub.reply()
        assert reply == NoSession("none", "the hub asks for too many")
        hub.sessions.theirs.send(b"Onone")
        hub.sessions.handle(1.0)  # a second later
        reply, _ = hub.reply()
        assert isinstance(reply, NoSession)
        assert "not a member" in reply.why


@pytest.mark.parametrize("packet", [b"X", b"Fgit", b"!git\0why", b"\xff"])
def test_a_packet_of_an_unknown_kind_ends_the_channel(tmp_path: Path, packet: bytes) -> None:
    with supervised(tmp_path) as hub:
        assert not hub.take(packet)


def test_a_line_for_the_journal_is_sanitised_and_bounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with supervised(tmp_path) as hub:
        assert hub.take(hub_channel.encode(JournalLine("Loaded\x1b[2J\n<3>forged" + "x" * 2000)))
        line = hub.sessions.take_line()
        assert "\x1b" not in line
        assert "\n" not in line  # it becomes a part of a notification to systemd, which has lines
        assert len(line) <= 520
        lines = []
        for _ in range(30):
            hub.take(hub_channel.encode(JournalLine("again")))
            lines.append(hub.sessions.take_line())
        assert capsys.readouterr().err.count("again") == lines.count("again") == 9
        assert set(lines[9:]) == {""}  # what is not logged wakes PID 1 as little


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_an_opening_that_fails_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with supervised(tmp_path) as hub:
        before = open_descriptors()
        made: list[int] = []

        def pipe2(flags: int) -> tuple[int, int]:
            if made:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            made.extend(pair := os.pipe())
            return pair

        with monkeypatch.context() as patched:
            patched.setattr(os, "pipe2", pipe2)
            assert hub.take(hub_channel.encode(OpenSession("git")))
        assert isinstance(hub.reply()[0], NoSession)
        assert open_descriptors() == before


def test_the_channel_ends_with_the_program(tmp_path: Path) -> None:
    with supervised(tmp_path) as hub:
        assert hub.sessions.handle(0.0)  # nothing there yet
        hub.sessions.theirs.close()
        assert not hub.sessions.handle(0.0)
