"""Sealed file of one server's OAuth login, which all its sessions share, with a lock."""

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
_PATIENCE_S = 60.0  # whoever has the lock waits for an authorization server, for at most 30 s
_MAX_BYTES = 1024 * 1024


class Store:
    """Sealed file. It is replaced as a whole, so reading needs no lock; changing it does."""

    def __init__(self, given: OAuthSessionFile) -> None:
        self._name = given.name
        self._key = given.key
        self._path = Path(given.store)
        self._seen: tuple[int, int, int] | None = None
        self._kept: StoredLogin | None = None

    def read(self) -> StoredLogin | None:
        """Return what is kept, None if nothing is. A file that was read before is not read again.

        Raises:
            OAuthError: it does not open.
        """
        try:
            found = self._path.stat()
            seen = found.st_ino, found.st_mtime_ns, found.st_size
            if seen != self._seen:
                self._kept = self._opened()
                self._seen = seen
        except FileNotFoundError:
            self._seen = self._kept = None
        except (OSError, UnicodeDecodeError, SealError) as error:
            self._seen = self._kept = None
            why = error if isinstance(error, SealError) else "it cannot be read"
            fix = f"`mcpwrap login {self._name}` makes it anew"
            raise OAuthError(f"what is kept of the login does not open: {why}; {fix}") from error
        return self._kept

    def _opened(self) -> StoredLogin:
        with self._path.open("rb") as file:
            return token_store.take(file.read(_MAX_BYTES).decode(), self._name, self._key)

    def read_or_nothing(self) -> StoredLogin | None:
        """Return what is kept, None also if it does not open: for whoever replaces it."""
        try:
            return self.read()
        except OAuthError:
            return None

    def write(self, kept: StoredLogin) -> None:
        """Replace what is kept; `lock` is held.

        Raises:
            OAuthError: there is no room, or no key.
        """
        try:
            text = token_store.put(kept, self._name, self._key, os.urandom(aead.NONCE_BYTES))
            root_files.replace(str(self._path), text, mode=0o600)
        except (OSError, SealError) as error:
            raise OAuthError(f"the login cannot be kept: {error}") from error

    def remove(self) -> None:
        """Forget all; `lock` is held."""
        self._path.unlink(missing_ok=True)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Be the only one on this machine that changes the file. Source: flock(2).

        Of a file of its own: the other one is replaced by a rename, and a lock with it.

        Raises:
            OAuthError: another does not let go.
        """
        path = self._path.with_suffix(".lock")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            await _locked(fd)
            yield
        finally:
            os.close(fd)


async def _locked(fd: int) -> None:
    """Wait without a thread: one that waits for a lock cannot be called off."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while not _has_locked(fd):  # noqa: ASYNC110 - another process lets go of it
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        raise OAuthError("another session renews the login, and does not end") from None


def _has_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
