"""Mounts of agents' folders: waits until root has made a wrapper's, and detects changes.

A session that sees a project has mounts of its own, which are watched in the same way.
"""

import os
import select
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mcpwrap.core.mount_layout import (
    PROJECTS_REPORT,
    REPORT,
    MountKind,
    held_in_project,
    layers,
    of_project,
)
from mcpwrap.core.wire.server_files import Folder, Workspaces
from mcpwrap.linux.mount import mountinfo
from mcpwrap.linux.process.signal_fd import CreatedNames

_TIMEOUT_S = 20.0
_LOOK_EVERY_S = 0.01
_LOOK_AGAIN_S = 1.0
_AGAIN = "the next session mounts it again"
_HELD = {MountKind.HOLD, MountKind.PIN}


class MountWatch:
    """Watch on mounts, and on held names that do not exist yet."""

    def __init__(
        self,
        paths: Collection[str],
        to_be_held: Collection[str],
        changes_fd: int,
        names: CreatedNames,
    ) -> None:
        """`changes_fd` is the mount table of the namespace they are in, opened there."""
        self._paths = paths
        self._to_be_held = to_be_held
        self._changes_fd = changes_fd
        self._names = names
        self._mount_by_path = mountinfo.at_or_below(paths, changes_fd)
        for path in paths:
            if path not in self._mount_by_path:
                raise ValueError(f"{path} is not mounted [E-WORKSPACE-MOUNT]")
        self._unheld = frozenset(to_be_held) - self._mount_by_path.keys()
        self._due_at_s = 0.0

    def watch(self, poll: select.poll) -> None:
        """Have `poll` return after a mount, an unmount, or a new name beside a held one."""
        poll.register(self._changes_fd, select.POLLPRI)
        poll.register(self._names, select.POLLIN)

    def is_due(self, ready: Collection[int], now_s: float) -> bool:
        """Return whether to look: at an event of its descriptors, and each second."""
        is_due = (
            now_s >= self._due_at_s or self._changes_fd in ready or self._names.fileno() in ready
        )
        if is_due:
            self._due_at_s = now_s + _LOOK_AGAIN_S
        return is_due

    def unwatch(self, poll: select.poll) -> None:
        """Have `poll` return no longer: what is not read would return at once, again and again."""
        for fd in (self._changes_fd, self._names.fileno()):
            with suppress(KeyError):  # it is not watched
                poll.unregister(fd)

    def close(self) -> None:
        """Close the descriptors, which keep the namespace there."""
        os.close(self._changes_fd)
        self._names.close()

    def lost_mount(self) -> str:
        """Return which mount has changed and has to be mounted again; "" if none."""
        now = mountinfo.at_or_below(self._paths, self._changes_fd)
        for path, mount in self._mount_by_path.items():
            if now.get(path) != mount:
                return f"{path} was moved, replaced or unmounted; {_AGAIN} [E-WORKSPACE-CHANGED]"
        try:
            made = self._names.read() & self._unheld
        except OverflowError:
            return f"too many names were made at once to check them; {_AGAIN} [E-WORKSPACE-CHANGED]"
        for path in self._to_be_held:
            if path in made or (path not in now and os.path.lexists(path)):
                return f"{path} has appeared, and must be read-only; {_AGAIN} [E-WORKSPACE-CHANGED]"
        return ""


class WorkspaceMounts:
    """Workspaces of a wrapper, and the folders of `projects`, as root mounts them."""

    def __init__(self, workspaces: Workspaces, no_projects: str) -> None:
        """`no_projects` is why no session of this wrapper can see a project; "" if each can."""
        self.workspaces = replace(workspaces, projects=()) if no_projects else workspaces
        self.no_projects = no_projects
        self.owner_by_list: dict[str, int] = {}

    def await_root(self) -> MountWatch:
        """Wait until root has mounted them; return the watch on them.

        Raises:
            ValueError: root could not, with the reason; or did not within 20 s.
        """
        give_up_at = time.monotonic() + _TIMEOUT_S
        report = Path(REPORT)
        while not report.exists():
            if time.monotonic() > give_up_at:
                raise ValueError(
                    f"its workspaces were not mounted within {_TIMEOUT_S:.0f} s "
                    "[E-WORKSPACE-TIMEOUT]"
                )
            time.sleep(_LOOK_EVERY_S)
        if refused := report.read_text(encoding="utf-8"):
            raise ValueError(refused)
        self.owner_by_list = msgspec.json.decode(
            Path(PROJECTS_REPORT).read_bytes(), type=dict[str, int]
        )
        made = layers(self.workspaces)
        to_be_held = [layer.path for layer in made if layer.kind in _HELD]
        paths = [layer.path for layer in made if layer.kind not in _HELD]
        changes_fd = os.open(mountinfo.PATH, os.O_RDONLY | os.O_CLOEXEC)
        try:
            names = CreatedNames.watched({str(Path(path).parent) for path in to_be_held})
        except OSError as error:
            # The server may have caused this: as the owner it could still make names there.
            why = f"new names in {error.filename} cannot be watched: {error.strerror}"
            raise ValueError(
                f"{why}; make sure that the folder's owner can list it [E-WORKSPACE-WATCH]"
            ) from error
        return MountWatch(paths, to_be_held, changes_fd, names)

    def of_session(
        self, project: Folder, folder_by_watch: Mapping[int, str], fds: Sequence[int]
    ) -> MountWatch:
        """Return the watch on a session's project, by the descriptors that its process has opened.

        Raises:
            ValueError: the project was moved meanwhile.
        """
        changes_fd, names_fd = fds
        own = of_project(self.workspaces, project)
        to_be_held = [layer.path for layer in held_in_project(own, layers(own))]
        names = CreatedNames(names_fd, folder_by_watch)
        try:
            return MountWatch([project.path], to_be_held, changes_fd, names)
        except BaseException:
            os.close(changes_fd)
            names.close()
            raise
