"""Body of `POST /execute`: the memory that it takes, and its validation."""

import binascii
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from aiohttp import hdrs, web

from mcpwrap.core.execution import endings
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.execute_api import ExecuteRequest
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.http_server.body_reader import BodyError, read_body

_MAX_HELD_BYTES = 256 * 1024**2  # of all requests that are read, queued or run
_ESCAPED = 6  # bytes of JSON for one of code or name, at most: \u0000
_REST_BYTES = 64 * 1024  # of the body beside code and files


class BodyMemory:
    """Bound of the memory that bodies take: of all pools together, and half of it of one pool."""

    def __init__(self, limit_bytes: int = _MAX_HELD_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._bytes_by_pool = Counter[str]()

    @contextmanager
    def share(self, pool: str) -> Iterator["BodyShare"]:
        """Hold a share during the block; it grows while a body is read."""
        share = BodyShare(self, pool)
        try:
            yield share
        finally:
            self._bytes_by_pool[pool] -= share.held_bytes

    def take(self, pool: str, more_bytes: int) -> bool:
        """Count more bytes; return False if there is no room for them."""
        of_all = self._bytes_by_pool.total() + more_bytes
        of_pool = self._bytes_by_pool[pool] + more_bytes
        if of_all > self._limit_bytes or of_pool > self._limit_bytes // 2:
            return False
        self._bytes_by_pool[pool] += more_bytes
        return True


class BodyShare:
    """Bytes that one request holds."""

    def __init__(self, memory: BodyMemory, pool: str) -> None:
        self._memory = memory
        self._pool = pool
        self.held_bytes = 0

    def grow(self, more_bytes: int) -> None:
        """Hold more.

        Raises:
            BodyError: other requests hold too much.
        """
        if not self._memory.take(self._pool, more_bytes):
            why = "the worker holds too many bodies of requests"
            raise BodyError(429, why, retry_after_s=1)
        self.held_bytes += more_bytes


async def read(
    request: web.BaseRequest, limits: RunLimits, timeout_s: float, share: BodyShare
) -> ExecuteRequest:
    """Read and validate a request.

    Raises:
        BodyError: it is invalid, too long, or takes too long.
    """
    if request.headers.getall(hdrs.CONTENT_ENCODING, []):
        raise BodyError(400, "Content-Encoding is not supported")
    body = await read_body(request, max_body_bytes(limits), timeout_s, share.grow)
    return validated(body, limits)


def validated(untrusted_body: bytes, limits: RunLimits) -> ExecuteRequest:
    """Return the request in a body.

    Raises:
        BodyError: it is malformed, or beyond the limits of its pool.
    """
    try:
        request = msgspec.json.decode(untrusted_body, type=ExecuteRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BodyError(400, f"the body is not a valid request: {error}") from error
    if not request.code.strip():
        raise BodyError(400, "`code` is empty")
    code_bytes = len(request.code.encode())
    if code_bytes > limits.code_bytes:
        most = endings.size(limits.code_bytes)
        raise BodyError(
            400, f"`code` has {code_bytes} bytes; at most {most} are allowed (runs.code)"
        )
    _expect_files(request.files)
    return request


def max_body_bytes(limits: RunLimits) -> int:
    """Return the length of the longest valid body, however it is escaped."""
    names = job_frames.MAX_FILES_IN * job_frames.MAX_FILE_NAME_BYTES
    base64 = 4 * (job_frames.MAX_IN_BYTES + 2 * job_frames.MAX_FILES_IN) // 3
    return _ESCAPED * (limits.code_bytes + names) + base64 + _REST_BYTES


def _expect_files(untrusted_files: dict[str, str]) -> None:
    if len(untrusted_files) > job_frames.MAX_FILES_IN:
        raise BodyError(400, f"`files` has more than {job_frames.MAX_FILES_IN} files")
    total = 0
    for number, (name, text) in enumerate(untrusted_files.items(), start=1):
        if not job_frames.is_file_name(name):
            raise BodyError(400, f"the name of file {number} is not a plain file name")
        try:
            total += len(binascii.a2b_base64(text.encode(), strict_mode=True))
        except binascii.Error as error:
            raise BodyError(400, f"file {number} is not base64") from error
    if total > job_frames.MAX_IN_BYTES:
        most = endings.size(job_frames.MAX_IN_BYTES)
        raise BodyError(413, f"`files` has {total} bytes; at most {most} are allowed")
