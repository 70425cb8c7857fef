"""Workspace mounts of a wrapper: waits until root has made them, detects that they changed."""

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

_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.01
_ANEW = "the next session mounts it anew"


class WorkspaceMounts:
    """Workspace mounts, as the wrapper sees them."""

    def __init__(self, workspaces: Workspaces) -> None:
        made = layers(workspaces)
        self._paths = [folder.path for folder in workspaces.folders]
        self._to_be_held = [
            layer.path for layer in made if layer.kind in {MountKind.HOLD, MountKind.PIN}
        ]
        self._mount_by_path: Mapping[str, Mount] = {}
        self._unheld: frozenset[str] = frozenset()
        self._names: CreatedNames  # once root has mounted them
        # Its descriptor is for poll(2), which tells of each change with POLLPRI.
        self._changes = Path(mountinfo.PATH).open("rb")  # noqa: SIM115 - as long as the process

    def watch(self, poll: select.poll) -> None:
        """Let `poll` return when anything is mounted or unmounted, or made where names are held."""
        poll.register(self._changes, select.POLLPRI)
        poll.register(self._names, select.POLLIN)

    def await_root(self) -> None:
        """Wait until root has mounted them.

        Raises:
            ValueError: it could not, with the reason; or it was not heard of.
        """
        give_up_at = time.monotonic() + _WITHIN_S
        report = Path(REPORT)
        while not report.exists():
            if time.monotonic() > give_up_at:
                raise ValueError("its workspaces were not mounted in time")
            time.sleep(_LOOK_EVERY_S)
        if refused := report.read_text(encoding="utf-8"):
            raise ValueError(refused)
        self._mount_by_path = mountinfo.at_or_below(self._paths)
        for path in self._paths:
            if path not in self._mount_by_path:
                raise ValueError(f"{path} is not mounted")
        self._unheld = frozenset(self._to_be_held) - self._mount_by_path.keys()
        try:
            self._names = CreatedNames({str(Path(path).parent) for path in self._to_be_held})
        except OSError as error:
            # A server may have done this: as the owner it could make a name there all the same.
            why = f"new names in {error.filename} cannot be watched: {error.strerror}"
            raise ValueError(f"{why}; see that the folder's owner can list it") from error

    def lost_mount(self) -> str:
        """Say what is not as root mounted it, and has to be mounted anew; "" if nothing."""
        now = mountinfo.at_or_below(self._paths)
        for path, mount in self._mount_by_path.items():
            if now.get(path) != mount:
                return f"{path} was moved, replaced or unmounted; {_ANEW}"
        try:
            made = self._names.read() & self._unheld
        except OverflowError:
            return f"too many names were made at once to see which; {_ANEW}"
        for path in self._to_be_held:
            if path in made or (path not in now and os.path.lexists(path)):
                return f"{path} has appeared, and is to be read-only; {_ANEW}"
        return ""
