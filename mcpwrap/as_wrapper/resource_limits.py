"""Resource limits of sessions: memory, tasks and disk, and the one that was reached."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from mcpwrap.as_wrapper.disk_usage import DiskUsage, PersistentFolder
from mcpwrap.as_wrapper.session import ServerSession
from mcpwrap.as_wrapper.session_cleanup import SHARED
from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.core.wire.session_socket import ServerEnded
from mcpwrap.linux.isolation import cgroup
from mcpwrap.session.relay.server_exit import killed_by

_MIB = 1024 * 1024
_SIGNALS = 128  # as in a shell: 128 + N is signal N
KILLED = _SIGNALS + signal.SIGKILL


class ResourceLimits:
    """Resource limits of one server's sessions."""

    def __init__(self, spec: ServerSpec, lasting: Sequence[PersistentFolder]) -> None:
        self._spec = spec
        self.disk = DiskUsage(lasting)
        self._kills_before = cgroup.kills_for_memory()

    def reached(self, session: ServerSession, among: Sequence[ServerSession]) -> str:
        """Return which limit a running session has reached; "" if none. `among` are all sessions.

        The kernel enforces the memory limit, and that of tasks if the session's cgroup has one.
        Without one a session could take the tasks of all others, so they are counted here.
        """
        tasks = self._spec.tasks
        if session.slot.leaf.was_refused_tasks() or session.slot.leaf.tasks() > tasks:
            return (
                f"the session has used up its {tasks} processes and threads (limits, tasks) "
                "[E-WRAPPER-LIMIT-TASKS]"
            )
        if size := _full(session.slot.slot_dir):
            return (
                f"the session has filled its home and temporary folder of {size} MiB "
                "[E-WRAPPER-LIMIT-DISK]"
            )
        for folder in SHARED:
            if (size := _full(folder)) and _has_most_in_memory(session, among):
                return f"the session has filled {folder} of {size} MiB [E-WRAPPER-LIMIT-DISK]"
        return self.disk.excess()  # of all sessions: it is not known which has written it

    def explained(self, session: ServerSession, exit_status: int) -> ServerEnded:
        """Return how a server ended, with the reason if it ran out of memory."""
        kills = cgroup.kills_for_memory()
        was_shared = kills > self._kills_before
        self._kills_before = kills
        if exit_status <= _SIGNALS:
            return ServerEnded(exit_status)
        mib = self._spec.memory_bytes // _MIB
        if exit_status == KILLED and session.slot.leaf.was_killed_for_memory():
            why = f"the session has used up its {mib} MiB (limits, memory) [E-WRAPPER-LIMIT-MEMORY]"
            return ServerEnded(KILLED, why)
        if exit_status == KILLED and was_shared:
            all_mib = mib * self._spec.sessions
            why = (
                f"the sessions of {self._spec.name} have used up their {all_mib} MiB together "
                "(limits, memory) [E-WRAPPER-LIMIT-MEMORY]"
            )
            return ServerEnded(KILLED, why)
        return ServerEnded(exit_status, killed_by(exit_status - _SIGNALS))


def _full(folder: Path) -> int:
    """Return the size of a full file system in MiB; 0 if it has room.

    Full means over 99 %: on a tmpfs the last inode or block cannot always be used, or freed.
    """
    room = os.statvfs(folder)
    has_room = room.f_bavail * 100 >= room.f_blocks and room.f_favail * 100 >= room.f_files
    return 0 if has_room else room.f_blocks * room.f_frsize // _MIB


def _has_most_in_memory(session: ServerSession, among: Sequence[ServerSession]) -> bool:
    """Return whether the session uses most of the shared memory; False where it is not counted."""
    mine = session.slot.leaf.file_memory_bytes()
    return mine > 0 and mine == max(other.slot.leaf.file_memory_bytes() for other in among)
