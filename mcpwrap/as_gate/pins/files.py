"""Files with the pins of one server, below `/var/lib/mcpwrap/pins`.

A new version is written beside the file, recorded in the audit, and then put in its place. So the
version that the audit recorded last is in one of two files, whenever the gate is killed.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mcpwrap.core.pins import pins_file
from mcpwrap.core.pins.pins_file import (
    MAX_PINS_BYTES,
    DamagedPinsError,
    HeldDefinitions,
    ServerPins,
)
from mcpwrap.linux.folder_sync import sync_folder

FOLDER = Path(pins_file.FOLDER)
# Of a file: its definitions, their names, and what else stands beside them.
_MAX_FILE_BYTES = 2 * MAX_PINS_BYTES + 4 * 1024 * 1024


class PinsFiles:
    """Files of one server. Methods raise OSError if a file cannot be read or written."""

    def __init__(self, server: str) -> None:
        self._pins = FOLDER / pins_file.pins_name(server)
        self._held = FOLDER / pins_file.held_name(server)
        self._next = FOLDER / pins_file.next_name(server)

    def read(self) -> tuple[ServerPins, str]:
        """Return the pins in force, and the digest of their file; "" if there is none.

        Raises:
            DamagedPinsError: the file was damaged or changed.
        """
        content = _content(self._pins)
        if content is None:
            return ServerPins(), ""
        return pins_file.decode_pins(content), pins_file.file_digest(content)

    def read_held(self) -> HeldDefinitions:
        """Return what is held; nothing if its file is damaged, as servers list it again."""
        content = _content(self._held)
        with suppress(DamagedPinsError):
            if content is not None:
                return pins_file.decode_held(content)
        return HeldDefinitions()

    def digest_of_next(self) -> str:
        """Return the digest of the next version; "" if there is none.

        An unfinished one is removed.
        """
        content = _content(self._next)
        if content is None:
            return ""
        try:
            pins_file.decode_pins(content)
            return pins_file.file_digest(content)
        except DamagedPinsError:
            self._next.unlink()
            return ""

    def write_next(self, content: bytes) -> None:
        """Write the next version of the pins. Without room none is left."""
        try:
            _write(self._next, content)
            sync_folder(FOLDER)
        except OSError:
            with suppress(OSError):
                self._next.unlink()
            raise

    def remove_next(self) -> None:
        """Remove the next version, which is not in force."""
        self._next.unlink(missing_ok=True)

    def put_next_in_force(self) -> None:
        """Replace the pins by the next version. When this returns, a power cut does not undo it."""
        self._next.rename(self._pins)
        sync_folder(FOLDER)

    def write_held(self, held: HeldDefinitions) -> None:
        """Write what is held back. It may be lost, and servers list it again."""
        temporary = self._held.with_name(f".{self._held.name}")
        _write(temporary, pins_file.encode(held))
        temporary.rename(self._held)


def servers_with_files() -> set[str]:
    """Return the names of the servers that have pins, or had them begun."""
    with suppress(FileNotFoundError):
        return {path.name.lstrip(".").partition(".")[0] for path in FOLDER.iterdir()}
    return set()


def others_pins(server: str) -> Iterator[ServerPins]:
    """Yield the pins of the other servers; damaged ones are left out."""
    for name in sorted(servers_with_files() - {server}):
        with suppress(OSError, DamagedPinsError):
            yield PinsFiles(name).read()[0]


def _content(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES)
    except FileNotFoundError:
        return None


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
