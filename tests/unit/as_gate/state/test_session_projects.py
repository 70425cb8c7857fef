"""Projects of open sessions: an account gets those of its own sessions, root and adm all."""

import socket
from pathlib import Path

import pytest

from mcpwrap.as_gate.state import session_projects
from mcpwrap.as_gate.state.children import Child
from mcpwrap.core.project import MAX_PATH_CHARS, SeenProject
from mcpwrap.core.wire.session_socket import ProtocolError
from mcpwrap.gate_client import queries
from mcpwrap.linux import accounts
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from tests.unit.gate_client.scripted_gate import gate_that

ALICE, BOB, ADM = 1000, 1001, 4
OF_ALICE = SeenProject("00000000000000aa", ALICE, "/home/alice/src/a")
OF_BOB = SeenProject("00000000000000bb", BOB, "/home/bob/src/b")


def child(seen: SeenProject) -> Child:
    with socket.socket(socket.AF_UNIX) as channel:
        made = Child(
            1,
            Peer(9, seen.uid, frozenset()),
            channel,
            channel,
            DoorbellFlag(),
            SharedCounters(),
            "",
        )
    made.wrapper_id, made.project = seen.session, seen.path
    return made


@pytest.mark.parametrize(
    ("uid", "gids", "seen"),
    [
        (0, set(), [OF_ALICE, OF_BOB]),
        (1002, {ADM}, [OF_ALICE, OF_BOB]),
        (ALICE, {1000, 990}, [OF_ALICE]),
        (BOB, set(), [OF_BOB]),
        (1002, {990}, []),  # the group of all users of mcpwrap is not enough
    ],
)
@pytest.mark.parametrize("gid", [ADM, None])  # or there is no group adm
def test_an_account_sees_its_own(
    uid: int,
    gids: set[int],
    seen: list[SeenProject],
    gid: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounts, "gid_of", {"adm": gid}.get)
    children = [child(OF_ALICE), child(SeenProject("", ALICE, "")), child(OF_BOB)]
    found = session_projects.visible_to(Peer(1, uid, frozenset(gids)), children)
    assert found == ([] if uid == 1002 and gid is None else seen)


def reply(folder: Path, monkeypatch: pytest.MonkeyPatch, packets: list[bytes] | int) -> object:
    """Return what the client reads: of these packets, or of so many sessions with long paths."""

    def answer(asker: socket.socket) -> None:
        assert asker.recv(99) == b"mcpwrap 1\0?sessions"
        if isinstance(packets, int):
            one = child(SeenProject("00000000000000aa", ALICE, "/" + "😀" * 1000))
            session_projects.tell(Peer(1, 0, frozenset()), [one] * packets, asker)
            return
        for packet in packets:
            asker.send(packet)

    with gate_that(answer, folder, monkeypatch):
        return queries.seen_projects()


def test_long_paths_of_many_sessions_are_sent_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = reply(tmp_path, monkeypatch, 100)
    assert found == 100 * [SeenProject("00000000000000aa", ALICE, "/" + "😀" * 1000)]
    assert MAX_PATH_CHARS > 1000


@pytest.mark.parametrize("packets", [[], [b'P[["a",'], [b"S"]])
def test_a_reply_that_is_none_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packets: list[bytes]
) -> None:
    with pytest.raises(ProtocolError, match=r"(incomplete|not send the) projects"):
        reply(tmp_path, monkeypatch, packets)
