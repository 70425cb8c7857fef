"""Cleanup after sessions: removes their folders and shared temporary files, with retries."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from mcpwrap.core import environment
from mcpwrap.linux.systemd.stderr_log import log_line

# Of the wrapper's own, and common to its sessions: programs that do not heed TMPDIR use them.
SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 - the unit mounts them
# `find -P` opens what is shut on its way down, and follows no link that a server has made.
_OPEN = """find -P "$@" -type d ! -perm -700 -exec chmod u+rwx {} \\;"""
_SCRIPT = f'{_OPEN}; exec rm -rf --one-file-system -- "$@"'
_TRIES = 60  # at most one a second: a session that takes all tasks is ended long before


class SessionCleanup:
    """Cleanup by child processes: a server may have made a tree deep or large.

    The supervisor reaps those processes with all others, and reports their ends here.
    """

    def __init__(self) -> None:
        self._paths_by_pid: dict[int, tuple[tuple[Path, ...], int]] = {}
        self._waiting: list[tuple[tuple[Path, ...], int]] = []
        self._is_stopped = False

    def remove(self, *paths: Path) -> None:
        """Begin to remove these."""
        self._waiting.append((paths, _TRIES))
        self.go_on()

    def clear_shared(self) -> None:
        """Empty the common folders, once no session is left that could use what is there.

        All is first moved aside, so that a session that begins meanwhile loses nothing.
        """
        aside: list[Path] = []
        for folder in SHARED:
            with suppress(OSError):
                found = list(folder.iterdir())
                aside += [path.rename(folder / f".gone-{os.urandom(8).hex()}") for path in found]
        if aside:
            self.remove(*aside)

    def places(self) -> frozenset[Path]:
        """Return the folders in which something is still to be removed."""
        at_work = [paths for paths, _ in (*self._waiting, *self._paths_by_pid.values())]
        return frozenset(path.parent for paths in at_work for path in paths)

    def stop(self) -> None:
        """Begin nothing more: what is left goes with the file systems of the service."""
        self._is_stopped = True
        for pid in self._paths_by_pid:
            os.kill(pid, signal.SIGKILL)  # not yet reaped, so it is still ours

    def are_left(self) -> bool:
        """Say whether something is still to be tried again."""
        return bool(self._waiting)

    def go_on(self) -> None:
        """Try again what could not be done; to be called now and then."""
        if self._is_stopped:
            return
        waiting, self._waiting = self._waiting, []
        for paths, tries in waiting:
            for folder in {path.parent for path in paths}:
                with suppress(OSError):  # of the common folders the owner is root
                    folder.chmod(0o700)
            argv = ["sh", "-c", _SCRIPT, "sh", *map(str, paths)]
            try:
                pid = os.posix_spawn("/bin/sh", argv, {"PATH": environment.PATH})
            except OSError:  # a session that is still open takes all tasks
                self._again(paths, tries)
            else:
                self._paths_by_pid[pid] = paths, tries

    def has_ended(self, pid: int) -> None:
        """Take note of a process that has ended; if it was one of these, see what it left."""
        paths, tries = self._paths_by_pid.pop(pid, ((), 0))
        if left := tuple(filter(_is_there, paths)):
            self._again(left, tries)

    def _again(self, paths: tuple[Path, ...], tries: int) -> None:
        if tries > 1:
            self._waiting.append((paths, tries - 1))
        else:
            log_line(f"cannot remove {', '.join(map(str, paths))}")


def _is_there(path: Path) -> bool:
    """Say whether something is, or may be: its server can have shut the folder above."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        pass
    return True
