"""Access list of agents (`gate.json`), read again when root has replaced it."""

from pathlib import Path

from mcpwrap.core.wire.server_files import AccessList, decode_access_list
from mcpwrap.linux.root_files import expect_roots_file

PATH = Path("/var/lib/mcpwrap/gate.json")


class AccessListFile:
    """Access list in `gate.json`. Root replaces the whole file: a new identity is a change."""

    def __init__(self, path: Path = PATH) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._admissions = AccessList()

    def last_read(self) -> AccessList:
        """Return the list that `current` returned last."""
        return self._admissions

    def current(self) -> AccessList:
        """Return the list as it is now; without a file it is empty.

        Raises:
            UsageError: others than root could have written the file.
            msgspec.MsgspecError: the file is not an access list. Then no account is admitted.
        """
        try:
            expect_roots_file(str(self._path))
            info = self._path.stat()
        except FileNotFoundError:
            self._seen, self._admissions = None, AccessList()
            return self._admissions
        identity = (info.st_ino, info.st_mtime_ns, info.st_size)
        if identity != self._seen:
            self._seen, self._admissions = None, AccessList()
            self._admissions = decode_access_list(self._path.read_bytes())
            self._seen = identity
        return self._admissions
