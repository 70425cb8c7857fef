"""Digests of the pins of servers, for the verification of the audit. No definition is parsed."""

import os
import stat
from pathlib import Path

from mcpwrap.core.audit.verify_pins import PinsFileState
from mcpwrap.core.names import is_server_name
from mcpwrap.core.pins import pins_file
from mcpwrap.core.pins.pins_file import DamagedPinsError

FOLDER = Path(pins_file.FOLDER)
_MAX_BYTES = 64 * 1024 * 1024  # the gate writes less, and a longer file counts as changed


def states() -> dict[str, PinsFileState]:
    """Return the state of the pins by server. The folder belongs to the gate, which may lie."""
    try:
        names = [path.name for path in FOLDER.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    servers = {name.lstrip(".").partition(".")[0] for name in names}
    return {server: _state(server) for server in sorted(servers) if is_server_name(server)}


def _state(server: str) -> PinsFileState:
    try:
        digest = _digest(FOLDER / pins_file.pins_name(server))
    except DamagedPinsError:
        return PinsFileState(is_damaged=True)
    try:
        return PinsFileState(digest, _digest(FOLDER / pins_file.next_name(server)))
    except DamagedPinsError:  # unfinished
        return PinsFileState(digest)


def _digest(path: Path) -> str:
    """Return the digest of a file; "" if there is none.

    Raises:
        DamagedPinsError: it is not the first line of the file, or the file is not a plain one.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:  # a link
        raise DamagedPinsError(str(error)) from error
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise DamagedPinsError("it is not a plain file")
        return pins_file.file_digest(file.read(_MAX_BYTES))
