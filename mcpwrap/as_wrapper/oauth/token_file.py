"""Token store: sealed file of one server's OAuth login, shared by its sessions, with a lock."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcpwrap.core.oauth import token_store
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.oauth.token_store import StoredLogin
from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile
from mcpwrap.linux import root_files

_LOOK_EVERY_S = 0.05
_TIMEOUT_S = 60.0  # the holder of the lock waits at most 30 s for an authorization server
_MAX_BYTES = 1024 * 1024


class Store:
    """Sealed file. It is replaced as a whole, so a reader needs no lock, but a writer does."""

    def __init__(self, given: OAuthSessionFile) -> None:
        self._name = given.name
        self._key = given.key
        self._path = Path(given.store)
        self._seen: tuple[int, int, int] | None = None
        self._stored: StoredLogin | None = None

    def read(self) -> StoredLogin | None:
        """Return the stored login, or None. An unchanged file is not read again.

        Raises:
            OAuthError: the file cannot be opened.
        """
        try:
            found = self._path.stat()
            seen = found.st_ino, found.st_mtime_ns, found.st_size
            if seen != self._seen:
                self._stored = self._opened()
                self._seen = seen
        except FileNotFoundError:
            self._seen = self._stored = None
        except (OSError, UnicodeDecodeError, SealError) as error:
            self._seen = self._stored = None
            why = error if isinstance(error, SealError) else "it cannot be read"
            fix = f"`mcpwrap login {self._name}` makes a new one"
            raise OAuthError(
                f"the stored login cannot be opened: {why}; {fix} [E-OAUTH-STORE-DAMAGED]"
            ) from error
        return self._stored

    def _opened(self) -> StoredLogin:
        with self._path.open("rb") as file:
            return token_store.take(file.read(_MAX_BYTES).decode(), self._name, self._key)

    def read_or_nothing(self) -> StoredLogin | None:
        """Return the stored login, also None if it cannot be opened: the caller replaces it."""
        try:
            return self.read()
        except OAuthError:
            return None

    def write(self, login: StoredLogin) -> None:
        """Replace the stored login. The caller holds `lock`.

        Raises:
            OAuthError: there is no room on the disk, or no valid key.
        """
        try:
            text = token_store.put(login, self._name, self._key, os.urandom(aead.NONCE_BYTES))
            root_files.replace(str(self._path), text, mode=0o600)
        except (OSError, SealError) as error:
            raise OAuthError(
                f"the login cannot be stored: {error} [E-OAUTH-STORE-WRITE]"
            ) from error

    def remove(self) -> None:
        """Remove the file. The caller holds `lock`."""
        self._path.unlink(missing_ok=True)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Hold the lock for changes of the file, on this machine. Source: flock(2).

        The lock has a file of its own: the token file is replaced by rename, and its lock with it.

        Raises:
            OAuthError: another process does not release it within 60 s.
        """
        path = self._path.with_suffix(".lock")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            await _locked(fd)
            yield
        finally:
            os.close(fd)


async def _locked(fd: int) -> None:
    """Wait without a thread: a thread that waits for a lock cannot be cancelled."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            while not _has_locked(fd):  # noqa: ASYNC110 - another process releases it
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        raise OAuthError(
            "another session is refreshing the login, and does not end [E-OAUTH-LOCKED]"
        ) from None


def _has_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
