"""Session cleanup: removes folders and shared temporary files after sessions, with retries."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from mcpwrap.core import environment
from mcpwrap.linux.systemd.stderr_log import log_line

# Private to the wrapper, and shared by its sessions: programs that ignore TMPDIR use them.
SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 - the unit mounts them
# `find -P` makes folders accessible on its way down, and follows no link that a server has made.
_OPEN = """find -P "$@" -type d ! -perm -700 -exec chmod u+rwx {} \\;"""
_SCRIPT = f'{_OPEN}; exec rm -rf --one-file-system -- "$@"'
_TRIES = 60  # at most one a second: a session that uses up all tasks is ended long before


class SessionCleanup:
    """Session cleanup by child processes, because a server may have made a tree deep or large.

    The supervisor reaps these processes with all others, and reports their ends here.
    """

    def __init__(self) -> None:
        self._paths_by_pid: dict[int, tuple[tuple[Path, ...], int]] = {}
        self._waiting: list[tuple[tuple[Path, ...], int]] = []
        self._is_stopped = False

    def remove(self, *paths: Path) -> None:
        """Begin to remove these paths."""
        self._waiting.append((paths, _TRIES))
        self.go_on()

    def clear_shared(self) -> None:
        """Empty the shared folders, once no session is left that could use them.

        Everything is first moved aside, so that a session that begins meanwhile loses nothing.
        """
        aside: list[Path] = []
        for folder in SHARED:
            with suppress(OSError):
                found = list(folder.iterdir())
                aside += [path.rename(folder / f".gone-{os.urandom(8).hex()}") for path in found]
        if aside:
            self.remove(*aside)

    def places(self) -> frozenset[Path]:
        """Return the folders in which a removal is not complete."""
        pending = [paths for paths, _ in (*self._waiting, *self._paths_by_pid.values())]
        return frozenset(path.parent for paths in pending for path in paths)

    def stop(self) -> None:
        """Begin nothing more: the rest goes away with the file systems of the service."""
        self._is_stopped = True
        for pid in self._paths_by_pid:
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so the PID is not reused

    def are_left(self) -> bool:
        """Return whether a removal waits for a retry."""
        return bool(self._waiting)

    def go_on(self) -> None:
        """Start or retry the waiting removals. The supervisor calls this in each turn."""
        if self._is_stopped:
            return
        waiting, self._waiting = self._waiting, []
        for paths, tries in waiting:
            for folder in {path.parent for path in paths}:
                with suppress(OSError):  # root owns the shared folders
                    folder.chmod(0o700)
            argv = ["sh", "-c", _SCRIPT, "sh", *map(str, paths)]
            try:
                pid = os.posix_spawn("/bin/sh", argv, {"PATH": environment.PATH})
            except OSError:  # an open session uses up all tasks
                self._retry(paths, tries)
            else:
                self._paths_by_pid[pid] = paths, tries

    def has_ended(self, pid: int) -> None:
        """Note that a process has ended; if it was a removal, retry for what it left."""
        paths, tries = self._paths_by_pid.pop(pid, ((), 0))
        if left := tuple(filter(_is_there, paths)):
            self._retry(left, tries)

    def _retry(self, paths: tuple[Path, ...], tries: int) -> None:
        if tries > 1:
            self._waiting.append((paths, tries - 1))
        else:
            log_line(f"cannot remove {', '.join(map(str, paths))} [E-WRAPPER-CLEANUP]")


def _is_there(path: Path) -> bool:
    """Return whether a path exists or may exist: a server can have closed the folder above."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        pass
    return True
