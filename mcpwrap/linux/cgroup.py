"""One cgroup for each session, so that a session can be ended whole. Source: cgroups(7).

Works in the tree that systemd delegates: cgroup v2, or the `name=systemd` tree of a v1 machine.
"""

import os
import re
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

_V1 = Path("/sys/fs/cgroup/systemd")
_V2 = Path("/sys/fs/cgroup")
_HYBRID = Path("/sys/fs/cgroup/unified")
_END_S = 5.0


def own() -> Path:
    """Return the cgroup of this process, in the tree that systemd delegates.

    Raises:
        RuntimeError: there is none that we could write to.
    """
    text = Path("/proc/self/cgroup").read_text()
    for pattern, root in (
        (r"^0::(.*)$", _V2),
        (r"^0::(.*)$", _HYBRID),
        (r":name=systemd:(.*)$", _V1),
    ):
        found = re.search(pattern, text, re.MULTILINE)
        if not found:
            continue
        path = root / found[1].lstrip("/")
        if os.access(path / "cgroup.procs", os.W_OK) and os.access(path, os.W_OK):
            return path
    raise RuntimeError("no cgroup was delegated to me")


class Leaf:
    """A new cgroup below our own, for one session or for ourselves."""

    def __init__(self, parent: Path, name: str) -> None:
        self._path = parent / name
        self._path.mkdir()

    def enter(self) -> None:
        """Move the calling process into it; its children are born there."""
        (self._path / "cgroup.procs").write_text("0")

    def end(self) -> None:
        """Kill all that is in it, and remove it. Returns when the last process is gone.

        Raises:
            TimeoutError: something could not be killed within 5 s.
        """
        give_up_at = time.monotonic() + _END_S
        while True:
            # Its processes may have made groups of their own inside, where Landlock is not.
            for path in sorted((p for p in self._path.rglob("*") if p.is_dir()), reverse=True):
                _kill(path)
            _kill(self._path)
            try:
                self._path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > give_up_at:
                    raise TimeoutError(f"{self._path} still has processes") from None
            select.select([], [], [], 0.005)


def _kill(path: Path) -> None:
    """Kill what is in a group and remove it if that leaves it empty; it may be gone already."""
    with suppress(OSError):
        try:
            (path / "cgroup.kill").write_text("1")
        except OSError:  # v1, and v2 before Linux 5.14, have no such file
            for pid in (path / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        path.rmdir()
