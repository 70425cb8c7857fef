"""Child table of the monitor: one process a session, and the channel to each."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.core.session_shares import Holder
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.master_chain import AuditedSession

MAX_PER_UID = 128  # an agent opens a few; a runaway one must not take the gate from the others
TOO_MANY = f"this account has {MAX_PER_UID} sessions already"


@dataclass(slots=True)
class Child:
    """Process of one session."""

    pid: int
    who: Peer
    channel: socket.socket
    verdicts: socket.socket  # for what becomes of requests that it holds
    bell: DoorbellFlag  # rung after something was sent that it did not ask for
    tally: SharedCounters
    policy_digest: str  # of the policy that it was made with
    server: str = ""  # until it says which it serves; it says so once
    entry: AuditedSession | None = None  # in the audit, from then on
    has_started: bool = False  # or could not: it says that once as well


class ChildTable:
    """Child table. An entry stays until it is reaped, its channel until either end closes it."""

    def __init__(self) -> None:
        self._child_by_pid: dict[int, Child] = {}
        self._child_by_fd: dict[int, Child] = {}

    def __len__(self) -> int:
        return len(self._child_by_pid)

    def __iter__(self) -> Iterator[Child]:
        return iter(list(self._child_by_fd.values()))

    def living(self) -> Iterable[Child]:
        """Return all that were not reaped, also those whose channel is closed."""
        return self._child_by_pid.values()

    def count_of(self, uid: int) -> int:
        """Return how many sessions an account has."""
        return Counter(child.who.uid for child in self._child_by_pid.values())[uid]

    def holders_at(self, server: str) -> list[Holder]:
        """Return whose the sessions of one server are."""
        return [
            Holder(child.who.uid, child.who.gids)
            for child in self._child_by_pid.values()
            if child.server == server
        ]

    def add(self, child: Child) -> None:
        """Take in a child that was just forked."""
        self._child_by_pid[child.pid] = child
        self._child_by_fd[child.channel.fileno()] = child

    def by_channel(self, fd: int) -> Child | None:
        """Return whose channel that is."""
        return self._child_by_fd.get(fd)

    def close_channel(self, child: Child) -> None:
        """Close a channel, because the child did or is not to be listened to any more."""
        self._child_by_fd.pop(child.channel.fileno(), None)  # -1 once it is closed
        child.channel.close()
        child.verdicts.close()
        child.bell.close()

    def drop_channels(self) -> None:
        """In a child: forget the others' channels, without closing what it has by now.

        Nor can it write any more how far the others have come.
        """
        for child in self._child_by_fd.values():
            child.channel.detach()
            child.verdicts.detach()
            child.bell.close()
        for child in self._child_by_pid.values():
            child.tally.close()

    def kill(self, child: Child) -> None:
        """End a child that does what no child of ours does, or cannot be told of a new policy."""
        if child.pid in self._child_by_pid:  # or the number may be another's by now
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    def reap(self) -> list[Child]:
        """Return the children that have ended."""
        ended = []
        with suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if child := self._child_by_pid.pop(pid, None):
                    ended.append(child)
        return ended

    def end_all(self) -> None:
        """End every session before this process ends: systemd waits for what it leaves behind.

        They have nothing to tidy up, and one that was taken over would not heed SIGTERM.
        """
        for pid in self._child_by_pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
