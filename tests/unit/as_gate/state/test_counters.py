"""Statistics of the monitor: sums of its children's counters, for root and two groups only."""

import socket
from pathlib import Path

import pytest

from mcpwrap.as_gate.state.children import Child
from mcpwrap.as_gate.state.counters import Statistics
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.metrics.counters import Stats
from mcpwrap.core.wire.session_socket import ProtocolError
from mcpwrap.gate_client import queries
from mcpwrap.linux import accounts
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from tests.unit.gate_client.scripted_gate import gate_that

ROOT = Peer(1, 0, frozenset({0}))
GIDS = {"adm": 4, "mcpwrap": 990}


def child(server: str, *decisions: str) -> Child:
    tally = SharedCounters()
    for decision in decisions:
        tally.count(decision, 10)
    with socket.socket(socket.AF_UNIX) as channel:
        return Child(1, ROOT, channel, channel, DoorbellFlag(), tally, "", server)


def told(statistics: Statistics, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Stats:
    """Return the statistics that a process of the gate sends to root."""

    def answer(asker: socket.socket) -> None:
        asker.recv(99)
        statistics.tell(ROOT, asker)

    with gate_that(answer, folder, monkeypatch):
        return queries.stats_text()


def summed(stats: Stats) -> list[tuple[str, int, int]]:
    return [(each.server, each.sessions, each.counts.total()) for each in stats.servers]


def test_ended_and_open_sessions_are_summed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = Statistics()
    over, nobody = child("git", "allowed", "blocked"), child("")
    for each in (over, nobody):
        statistics.keep(each)
        each.tally.close()
    statistics.look([child("git", "allowed"), child("time"), child("")], now_s=100.0)
    stats = told(statistics, tmp_path, monkeypatch)
    assert summed(stats) == [("git", 1, 3), ("time", 1, 0)]


def test_a_session_that_ends_between_two_samples_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics, each = Statistics(), child("git", "allowed")
    statistics.look([each], now_s=100.0)
    statistics.keep(each)
    (tmp_path / "1").mkdir()
    assert summed(told(statistics, tmp_path / "1", monkeypatch)) == [("git", 1, 1)]
    statistics.look([], now_s=101.0)
    assert summed(told(statistics, tmp_path, monkeypatch)) == [("git", 0, 1)]


def test_it_samples_once_a_second_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statistics, each = Statistics(), child("git")
    seen = []
    for n, now_s in enumerate((100.0, 100.9, 101.0, 101.5)):
        each.tally.count("allowed", 10)
        statistics.look([each], now_s)
        folder = tmp_path / str(n)
        folder.mkdir()
        seen.append(summed(told(statistics, folder, monkeypatch))[0][2])
    assert seen == [1, 1, 3, 3]


def test_statistics_longer_than_a_packet_are_sent_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = Statistics()
    for n in range(2000):
        each = child(f"s{n}", "allowed")
        statistics.keep(each)
        each.tally.close()
    statistics.look([], now_s=100.0)
    assert len(told(statistics, tmp_path, monkeypatch).servers) == 2000


class Cut(Statistics):
    """Gate whose process ends before it has sent the whole reply."""

    def tell(self, who: Peer, asker: socket.socket) -> None:
        asker.send(b'P{"since":1.0,"servers":[')


def test_a_truncated_reply_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProtocolError, match="incomplete statistics"):
        told(Cut(), tmp_path, monkeypatch)


@pytest.mark.parametrize("gids", [{4}, {990}, {1000, 990}])
def test_members_may_read_them(gids: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "gid_of", GIDS.get)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        Statistics().tell(Peer(1, 1000, frozenset(gids)), ours)
        assert theirs.recv(99).startswith(b'P{"since":')


@pytest.mark.parametrize("gid_by_name", [GIDS, {}])  # else the groups do not exist
def test_other_accounts_may_not(
    gid_by_name: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "gid_of", gid_by_name.get)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, pytest.raises(RefusalError, match="only root and members"):
        Statistics().tell(Peer(1, 1000, frozenset({1000, 0})), ours)
