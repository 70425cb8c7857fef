"""Root's files of the worker: `worker.json`, and a token hash for each pool.

Root replaces whole files, so a new identity is a change. They are looked at before each request.
"""

import hmac
import re
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

import msgspec

from mcpwrap.core.wire import panic_file
from mcpwrap.core.wire.execution import worker_file
from mcpwrap.core.wire.execution.worker_file import Worker
from mcpwrap.errors import UsageError
from mcpwrap.linux.root_files import expect_roots_file
from mcpwrap.linux.systemd.stderr_log import log_line

CONFIGURATION = Path("/var/lib/mcpwrap/worker.json")
PANIC = Path("/var/lib/mcpwrap/panic.json")
_HASH = re.compile(rb"([0-9a-f]{64})\n?")
_NO_HASH = "0" * 64  # of no known text
_Identity = tuple[int, int, int]


class WorkerFile:
    """Configuration of the worker. Without a valid file it has no pools."""

    def __init__(self, path: Path = CONFIGURATION) -> None:
        self._path = path
        self._seen: _Identity | None = None
        self._worker = Worker()

    def current(self) -> Worker:
        """Return the configuration as it is now: the same object until the file is replaced."""
        seen = _identity(self._path)
        if seen != self._seen:
            self._seen = seen
            self._worker = Worker() if seen is None else self._read()
        return self._worker

    def _read(self) -> Worker:
        try:
            expect_roots_file(str(self._path))
            return worker_file.decode(self._path.read_bytes())
        except (OSError, UsageError, msgspec.MsgspecError) as error:
            log_line(
                f"{self._path}: cannot be used: {error}; each request is refused until "
                "`sudo mcpwrap apply` has written it [E-WORKER-CONFIG]"
            )
            return Worker()


def is_stopped(pool: str, path: Path = PANIC) -> bool:
    """Return whether `mcpwrap panic` has stopped this server, or all that this machine executes."""
    try:
        return panic_file.decode(path.read_bytes()).stops(pool)
    except FileNotFoundError:
        return False
    except OSError:
        return True


class TokenHashes:
    """SHA-256 of each pool's token, by pool."""

    def __init__(self, folder: Path = Path(worker_file.TOKENS)) -> None:
        self._folder = folder
        self._by_pool: dict[str, tuple[_Identity | None, str]] = {}

    def pool_of(self, untrusted_token: str, pools: list[str]) -> str | None:
        """Return the pool with this token; None if it has no pool.

        It is compared with the hash of every pool, each in constant time, so that the time of an
        answer tells nothing.
        """
        digest = sha256(untrusted_token.encode(errors="replace")).hexdigest()
        found = None
        for pool in pools:
            known = self._hash_of(pool)
            if hmac.compare_digest(known or _NO_HASH, digest) and known:
                found = pool
        return found

    def _hash_of(self, pool: str) -> str:
        """Return the hash of a pool's token; "" without a valid file."""
        path = self._folder / pool
        identity = _identity(path)
        seen, known = self._by_pool.get(pool, (None, ""))
        if identity != seen:
            known = "" if identity is None else _read_hash(path)
            self._by_pool[pool] = (identity, known)
        return known if identity is not None else ""


def _read_hash(path: Path) -> str:
    try:
        expect_roots_file(str(path))
        found = _HASH.fullmatch(path.read_bytes())
    except (OSError, UsageError) as error:
        log_line(f"{path}: cannot be used: {error}; its pool has no token [E-WORKER-TOKEN-FILE]")
        return ""
    if found is None:
        log_line(f"{path}: is not a SHA-256; its pool has no token [E-WORKER-TOKEN-FILE]")
        return ""
    return found[1].decode()


def _identity(path: Path) -> _Identity | None:
    """Return inode, time of change and size of a plain file; None if it does not exist."""
    try:
        info = path.stat()
    except OSError:
        return None
    return (info.st_ino, info.st_mtime_ns, info.st_size) if S_ISREG(info.st_mode) else None
