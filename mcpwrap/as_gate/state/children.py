"""Child table of the monitor: one process for each session, and the channel to it."""

import os
import signal
import socket
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.as_gate.agent_identity import Door
from mcpwrap.core.session_shares import Holder
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.master_chain import AuditedSession

MAX_PER_UID = 128  # an agent opens a few; a runaway one must not use up the gate's sessions
# Sessions of hubs' members: so many that they leave room in the gate for agents' own sessions, and
# that one account leaves room for the hubs of the others.
MAX_INNER, MAX_INNER_PER_UID = 512, 256
TOO_MANY = f"this account has {MAX_PER_UID} sessions already [E-SESSION-LIMIT-ACCOUNT]"


@dataclass(slots=True)
class Child:
    """Process of one session."""

    pid: int
    who: Peer
    channel: socket.socket
    verdicts: socket.socket  # for the outcomes of requests that it holds
    bell: DoorbellFlag  # set after a packet that it did not request
    tally: SharedCounters
    policy_digest: str  # of the policy in force at its fork
    server: str = ""  # set once, when it names its server
    door: Door = "stub"  # by which its agent connects
    is_hub: bool = False  # its server is one
    via: str = ""  # the hub's session for which it was opened, if it is a member's
    entry: AuditedSession | None = None  # in the audit, from then on
    has_started: bool = False  # it reported once that its server started or failed to
    wrapper_id: str = ""  # of its session at the wrapper, if that sees a project
    project: str = ""  # the folder


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
        """Return the number of sessions of an account; those of hubs' members do not count."""
        return sum(each.who.uid == uid and not each.via for each in self.living())

    def count_inner(self, hub_uids: Collection[int]) -> int:
        """Return the number of sessions of hubs' members, also of those without a name yet."""
        return sum(bool(each.via) or each.who.uid in hub_uids for each in self.living())

    def count_inner_of(self, uid: int) -> int:
        """Return the number of sessions of hubs' members for one agent."""
        return sum(each.who.uid == uid and bool(each.via) for each in self.living())

    def by_session(self, session: str) -> Child | None:
        """Return the child of a session with this id in the audit."""
        found = (each for each in self.living() if each.entry and each.entry.session == session)
        return next(found, None)

    def inner_of(self, session: str) -> list[Child]:
        """Return the children of the members' sessions for one session of a hub."""
        return [each for each in self.living() if each.via == session]

    def holders_at(self, server: str, *, but_via: str) -> list[Holder]:
        """Return the accounts of the sessions of one server.

        `but_via` is the hub's session of which none counts: its older one is ended. Or it is "".
        """
        return [
            Holder(child.who.uid, child.who.gids)
            for child in self._child_by_pid.values()
            if child.server == server and not (but_via and child.via == but_via)
        ]

    def add(self, child: Child) -> None:
        """Add a child that was just forked."""
        self._child_by_pid[child.pid] = child
        self._child_by_fd[child.channel.fileno()] = child

    def by_channel(self, fd: int) -> Child | None:
        """Return the child with this channel."""
        return self._child_by_fd.get(fd)

    def close_channel(self, child: Child) -> None:
        """Close a channel, because the child closed it or must not send any more."""
        self._child_by_fd.pop(child.channel.fileno(), None)  # -1 once it is closed
        child.channel.close()
        child.verdicts.close()
        child.bell.close()

    def drop_channels(self) -> None:
        """In a child: drop the other children's channels, without closing descriptors.

        Their numbers may be in use again. The shared counters of the others are unmapped.
        """
        for child in self._child_by_fd.values():
            child.channel.detach()
            child.verdicts.detach()
            child.bell.close()
        for child in self._child_by_pid.values():
            child.tally.close()

    def kill(self, child: Child) -> None:
        """Kill a child that sent an invalid packet, or to which a policy could not be sent."""
        if self._child_by_pid.get(child.pid) is child:  # else the PID may be another process's
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    def reap(self) -> tuple[list[Child], list[int]]:
        """Return the children that have ended, and the PIDs of other processes that have."""
        ended, others = [], []
        with suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if child := self._child_by_pid.pop(pid, None):
                    ended.append(child)
                else:
                    others.append(pid)
        return ended, others

    def end_all(self) -> None:
        """Kill every session's process before this process ends, since systemd waits for them.

        They need no cleanup, and one that an attacker controls would ignore SIGTERM.
        """
        for pid in self._child_by_pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
