"""Request of a run: its fields, and how it is received from the worker.

Only the standard library: the run supervisor starts for each run, and imports take time.
"""

import binascii
import json
import os
import re
import select
import socket
import time

from mcpwrap.core.wire.execution import job_frames

_RUN = re.compile(r"[0-9a-f]{1,64}")
_PACKAGES = re.compile(r"(?:[0-9a-f]{64})?")
_FIRST_BYTE_S = 90.0  # the worker connects in advance, and closes an idle connection after 60 s
_REST_S = 10.0
_CHUNK_BYTES = 1024**2
_POLLRDHUP = 0x2000  # linux/poll.h; Python has no name for it
_FIELDS = {
    "run": str, "code": str, "files": dict, "packages": str,
    "seconds": int, "output": int, "cpus": int,
}  # fmt: skip


class RequestError(ValueError):
    """The request does not have the form of `job_frames`."""


class HangUpError(Exception):
    """The worker has closed the connection, or sent nothing for too long: there is no run."""


class JobRequest:
    """Request of a run."""

    __slots__ = ("code", "cpus", "files", "output_bytes", "packages", "run_id", "timeout_s")

    def __init__(self, fields: dict[str, object]) -> None:
        """Take the object of a request.

        Raises:
            RequestError: a field is missing, unknown, of another type, or out of its range.
        """
        if fields.keys() != _FIELDS.keys():
            raise RequestError(f"its fields are {', '.join(sorted(fields))}")
        for name, kind in _FIELDS.items():
            if type(fields[name]) is not kind:
                raise RequestError(f"{name} is not of the type {kind.__name__}")
        self.run_id = _matching("run", str(fields["run"]), _RUN)
        self.packages = _matching("packages", str(fields["packages"]), _PACKAGES)
        self.code = _encoded(str(fields["code"]))
        self.files = _decoded(fields["files"])
        self.timeout_s = _positive("seconds", fields["seconds"])
        self.output_bytes = _positive("output", fields["output"])
        self.cpus = _positive("cpus", fields["cpus"])

    def forget_content(self) -> None:
        """Free code and files once they are written: they count as memory of the run."""
        self.code = b""
        self.files.clear()


def parse(text: bytes) -> JobRequest:
    """Return the request of this JSON text.

    Raises:
        RequestError: it does not have the form of `job_frames`.
    """
    try:
        # msgspec is not in the standard library; each field is checked below.
        fields = json.loads(text)  # noqa: TID251
    except (ValueError, RecursionError) as error:
        raise RequestError(f"it is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RequestError("it is not an object")
    return JobRequest(fields)


def receive(connection: socket.socket) -> tuple[bytes, int]:
    """Return the JSON text of the request, and the pipe for the frames, from the worker.

    Raises:
        HangUpError: the worker sent no complete request.
        RequestError: it is too long, or came with no descriptor, or with several.
    """
    connection.settimeout(0)
    _await_readable(connection, time.monotonic() + _FIRST_BYTE_S)
    deadline_s = time.monotonic() + _REST_S
    try:
        head, fds, _, _ = socket.recv_fds(connection, job_frames.LENGTH.size, 2)
    except ConnectionError as error:
        raise HangUpError from error
    if not head:
        raise HangUpError
    if len(fds) != 1:
        for fd in fds:
            os.close(fd)
        raise RequestError(f"it came with {len(fds)} descriptors instead of one")
    os.set_inheritable(fds[0], False)  # noqa: FBT003 - Python 3.11 ignores flags of recv_fds()
    head += _receive(connection, job_frames.LENGTH.size - len(head), deadline_s)
    (length,) = job_frames.LENGTH.unpack(head)
    if length > job_frames.MAX_REQUEST_BYTES:
        raise RequestError(f"it has {length} bytes")
    return _receive(connection, length, deadline_s), fds[0]


def has_hung_up(connection: socket.socket) -> bool:
    """Return whether the worker has closed the connection, or sent more than its request."""
    poll = select.poll()
    poll.register(connection, select.POLLIN | _POLLRDHUP)
    return bool(poll.poll(0))


def _receive(connection: socket.socket, length: int, deadline_s: float) -> bytes:
    received = bytearray()
    while len(received) < length:
        _await_readable(connection, deadline_s)
        try:
            chunk = connection.recv(min(length - len(received), _CHUNK_BYTES))
        except ConnectionError as error:
            raise HangUpError from error
        if not chunk:
            raise HangUpError
        received += chunk
    return bytes(received)


def _await_readable(connection: socket.socket, deadline_s: float) -> None:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    if not poll.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
        raise HangUpError


def _matching(field: str, value: str, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(value):
        raise RequestError(f"{field} is not hexadecimal of the right length")
    return value


def _positive(field: str, value: object) -> int:
    if not isinstance(value, int) or value < 1:
        raise RequestError(f"{field} is not positive")
    return value


def _encoded(code: str) -> bytes:
    try:
        return code.encode()
    except UnicodeEncodeError as error:
        raise RequestError(f"code is not Unicode text: {error.reason}") from error


def _decoded(files: object) -> dict[str, bytes]:
    """Return the content of the files for /in by name, decoded from base64."""
    if not isinstance(files, dict) or len(files) > job_frames.MAX_FILES_IN:
        raise RequestError(f"files has more than {job_frames.MAX_FILES_IN} entries")
    content_by_name = {}
    for name, text in files.items():
        if not job_frames.is_file_name(name) or not isinstance(text, str):
            raise RequestError("files has a name or a content that is not valid")
        try:
            content_by_name[name] = binascii.a2b_base64(text, strict_mode=True)
        except ValueError as error:
            raise RequestError(f"files has a content that is not base64: {error}") from error
    if sum(map(len, content_by_name.values())) > job_frames.MAX_IN_BYTES:
        raise RequestError(f"files has more than {job_frames.MAX_IN_BYTES} bytes")
    return content_by_name
