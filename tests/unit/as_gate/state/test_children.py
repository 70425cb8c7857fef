"""A forked child keeps no descriptor of the other sessions."""

import socket

import pytest

from mcpwrap.as_gate.state.children import Child, ChildTable
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket.peer_credentials import Peer


def child(pid: int) -> Child:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    return Child(
        pid, Peer(1, 1000, frozenset()), ours, ours.dup(), DoorbellFlag(), SharedCounters(), ""
    )


def test_only_a_child_that_was_not_reaped_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = list[int]()
    monkeypatch.setattr("os.kill", lambda pid, _: killed.append(pid))
    family, before, now = ChildTable(), child(1), child(1)
    family.add(now)  # it has the PID of one that has ended
    family.kill(before)
    assert killed == []
    family.kill(now)
    assert killed == [1]
    for each in (before, now):
        family.close_channel(each)


def test_a_child_drops_all_children_that_are_not_reaped() -> None:
    family, children = ChildTable(), [child(1), child(2)]
    for each in children:
        family.add(each)
    family.close_channel(children[0])  # not reaped yet, but its channel is closed
    assert list(family) == children[1:]
    assert list(family.living()) == children
    family.drop_channels()
    assert children[1].channel.fileno() == -1
    for each in children:
        with pytest.raises(ValueError, match="released"):
            each.tally.counts()
