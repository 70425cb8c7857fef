"""Stored resolutions: the lock that was found for some requirements, and when."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.core.execution.packages import package_lock
from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.execution.packages.package_lock import PackageLock
from mcpwrap.core.execution.packages.requirements import PackageRequirement, requirements_file
from mcpwrap.linux import root_files

FRESH_S = 24 * 3600.0
_MAX_FILES = 500


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Lock of some requirements. `at_s` is the time of the resolution, since the epoch."""

    at_s: float
    lock: str

    def is_fresh(self, now_s: float) -> bool:
        """Return whether the index need not be asked again. A time in the future does not count."""
        return 0 <= now_s - self.at_s < FRESH_S


def key(requirements: Sequence[PackageRequirement], interpreter: str, index: str) -> str:
    """Return the name of the resolution: 64 hexadecimal digits.

    `interpreter` is its version and platform; `index` the variables that choose the index.
    """
    return hashlib.sha256(
        msgspec.json.encode([requirements_file(requirements), interpreter, index])
    ).hexdigest()


class Resolutions:
    """Folder of resolutions. The caller holds a lock of the key while it writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> tuple[Resolution, PackageLock] | None:
        """Return a resolution; None if there is none, or its file is damaged."""
        try:
            stored = msgspec.json.decode(self._path(name).read_bytes(), type=Resolution)
            return stored, package_lock.parse(stored.lock)
        except (OSError, UnicodeDecodeError, msgspec.DecodeError, PackageError):
            return None

    def write(self, name: str, resolution: Resolution) -> None:
        """Store a resolution, and remove the oldest beyond 500.

        Raises:
            OSError: it cannot be written.
        """
        text = msgspec.json.encode(resolution).decode()
        root_files.replace(str(self._path(name)), text)
        found = sorted(self._folder.glob("*.json"), key=_changed_at)
        for oldest in found[:-_MAX_FILES]:
            oldest.unlink(missing_ok=True)

    def forget(self, name: str) -> None:
        """Remove a resolution, whose files the index no longer has."""
        with suppress(FileNotFoundError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another session removed it
        return 0.0
