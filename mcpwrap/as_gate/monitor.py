"""RUNS AS mcpwrap-gate: gives each connection a process of its own, knowing who it is."""

import os
import select
import signal
import socket
import sys
from collections import Counter
from contextlib import suppress
from typing import NoReturn

import msgspec

from mcpwrap.as_gate import child
from mcpwrap.as_gate.admissions import GuestList
from mcpwrap.core import hello
from mcpwrap.core.spec import Admissions
from mcpwrap.linux import peer, wakeup
from mcpwrap.linux.activation import Notifier
from mcpwrap.linux.log import say
from mcpwrap.linux.peer import Peer

MAX_PER_UID = 128  # an agent opens a few; a runaway one must not take the gate from the others
MAX_CHILDREN = 1024
_ALIVE_EVERY_MS = 10_000  # a third of the unit's WatchdogSec=


class Monitor:
    """The gate's one long-lived process. It never waits for a peer and reads nothing of theirs."""

    def __init__(self, listener: socket.socket, notifier: Notifier) -> None:
        self._listener = listener
        self._notifier = notifier
        self._guests = GuestList()
        self._uid_by_pid: dict[int, int] = {}

    def serve(self) -> None:
        """Serve until SIGTERM."""
        wake_fd = wakeup.on_child_and_stop()
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(wake_fd, select.POLLIN)
        self._notifier.ready("ready: 0 sessions")
        while True:
            for fd, _ in poll.poll(_ALIVE_EVERY_MS):
                if fd == self._listener.fileno():
                    self._accept()
                elif signal.SIGTERM in os.read(wake_fd, 256):
                    return
                else:
                    self._reap()
            self._notifier.alive()

    def _accept(self) -> None:
        """Give one connection a process. Whatever is wrong with it is its own affair."""
        with suppress(OSError):  # it has left again
            connection, _ = self._listener.accept()
            with connection:
                if _has_left(connection):
                    return
                pidfd = peer.process_of(connection)
                try:
                    who = peer.of(connection)
                    refusal = self._no_room_for(who.uid) or self._fork(connection, pidfd, who)
                finally:
                    os.close(pidfd)
                if refusal:
                    _refuse(connection, refusal)
        self._say_how_many()

    def _fork(self, connection: socket.socket, pidfd: int, who: Peer) -> hello.Refused | None:
        try:
            admissions = self._guests.current()
            pid = os.fork()
        except (OSError, msgspec.MsgspecError) as error:
            say(f"uid {who.uid} is refused: {error}")
            return hello.Refused(hello.Exit.UNAVAILABLE, "the gate cannot serve: see its journal")
        if pid == 0:
            self._become_child(connection, pidfd, who, admissions)
        self._uid_by_pid[pid] = who.uid
        return None

    def _no_room_for(self, uid: int) -> hello.Refused | None:
        if Counter(self._uid_by_pid.values())[uid] >= MAX_PER_UID:
            return hello.Refused(
                hello.Exit.BUSY, f"this account has {MAX_PER_UID} sessions already"
            )
        if len(self._uid_by_pid) >= MAX_CHILDREN:
            return hello.Refused(hello.Exit.BUSY, f"the gate has {MAX_CHILDREN} sessions already")
        return None

    def _become_child(
        self, connection: socket.socket, pidfd: int, who: Peer, admissions: Admissions
    ) -> NoReturn:
        """In the child: keep the connection and nothing else of the monitor's."""
        status = 1
        try:
            wakeup.off()
            above = [os.dup(connection.detach()), os.dup(pidfd)]  # higher than what they replace
            self._listener.detach()
            kept, watched = (os.dup2(fd, 3 + i, inheritable=False) for i, fd in enumerate(above))
            os.closerange(5, 1_048_576)
            child.run(socket.socket(fileno=kept), watched, who, admissions)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                self._uid_by_pid.pop(pid, None)
        self._say_how_many()

    def _say_how_many(self) -> None:
        self._notifier.status(f"ready: {len(self._uid_by_pid)} sessions")


def _has_left(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, 0)
    return bool(poll.poll(0))  # POLLHUP is always asked for


def _refuse(connection: socket.socket, refusal: hello.Refused) -> None:
    with suppress(OSError):
        connection.send(hello.encode(refusal), socket.MSG_DONTWAIT)
