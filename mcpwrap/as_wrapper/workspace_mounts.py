"""Workspace mounts of a wrapper: waits until root has made them, and detects changes."""

import os
import select
import time
from collections.abc import Mapping
from pathlib import Path

from mcpwrap.core.mount_layout import REPORT, MountKind, layers
from mcpwrap.core.wire.server_files import Workspaces
from mcpwrap.linux.mount import mountinfo
from mcpwrap.linux.mount.mountinfo import Mount
from mcpwrap.linux.process.signal_fd import CreatedNames

_TIMEOUT_S = 20.0
_LOOK_EVERY_S = 0.01
_AGAIN = "the next session mounts it again"


class WorkspaceMounts:
    """Workspace mounts in the wrapper's mount namespace."""

    def __init__(self, workspaces: Workspaces) -> None:
        made = layers(workspaces)
        self._paths = [folder.path for folder in workspaces.folders]
        self._to_be_held = [
            layer.path for layer in made if layer.kind in {MountKind.HOLD, MountKind.PIN}
        ]
        self._mount_by_path: Mapping[str, Mount] = {}
        self._unheld: frozenset[str] = frozenset()
        self._names: CreatedNames  # set when root has mounted them
        # The descriptor is for poll(2), which returns POLLPRI at each change.
        self._changes = Path(mountinfo.PATH).open("rb")  # noqa: SIM115 - as long as the process

    def watch(self, poll: select.poll) -> None:
        """Have `poll` return after a mount, an unmount, or a new name beside a held one."""
        poll.register(self._changes, select.POLLPRI)
        poll.register(self._names, select.POLLIN)

    def await_root(self) -> None:
        """Wait until root has mounted them.

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
        self._mount_by_path = mountinfo.at_or_below(self._paths)
        for path in self._paths:
            if path not in self._mount_by_path:
                raise ValueError(f"{path} is not mounted [E-WORKSPACE-MOUNT]")
        self._unheld = frozenset(self._to_be_held) - self._mount_by_path.keys()
        try:
            self._names = CreatedNames({str(Path(path).parent) for path in self._to_be_held})
        except OSError as error:
            # The server may have caused this: as the owner it could still make names there.
            why = f"new names in {error.filename} cannot be watched: {error.strerror}"
            raise ValueError(
                f"{why}; make sure that the folder's owner can list it [E-WORKSPACE-WATCH]"
            ) from error

    def lost_mount(self) -> str:
        """Return which mount has changed and has to be mounted again; "" if none."""
        now = mountinfo.at_or_below(self._paths)
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
