"""Root's part of `mcpwrap tools diff NAME --next COMMAND…`: start, exchange and end.

Root sends the server's descriptor and receives bytes, which it passes on unread. If this program is
killed, its end of the request's pipe is closed: then the unit ends, and systemd removes the
destinations from the packet rules.
"""

import fcntl
import os
import pwd
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mcpwrap.as_root import panic, server_descriptor
from mcpwrap.as_root.lock import if_free
from mcpwrap.as_root.secrets import store
from mcpwrap.core import environment
from mcpwrap.core.names import is_server_name
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire import next_version_pipe
from mcpwrap.core.wire.next_version_pipe import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    NextVersionRequest,
)
from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files, tty
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, run
from mcpwrap.machine import nft_table, observer
from mcpwrap.plan import next_version, paths

_WHERE = "mcpwrap tools diff --next"
_CHUNK_BYTES = 1024 * 1024


def answer(name: str, command: Sequence[str], *, with_secrets: bool) -> bytes:
    """Return the answer of the next version of a server: JSON that root does not parse.

    Raises:
        McpwrapError: there is no such server or command, a person has not confirmed that it gets
            the secrets, or the unit does not start.
    """
    spec = _spec(name)
    started = (_program(command[0]), *command[1:])
    value_by_key = _values(spec, started, with_secrets=with_secrets)
    request = next_version_pipe.encode_request(
        NextVersionRequest(
            spec=next_version.next_spec(spec, started, with_secrets=with_secrets),
            value_by_key=value_by_key,
        )
    )
    with if_free(next_version.LOCK) as is_free:
        if not is_free:
            raise McpwrapError(
                "the next version of a server is read now",
                where=_WHERE,
                fix="wait until that command has ended",
                code="E-NEXT-BUSY",
            )
        return _exchanged(spec, request)


def _spec(name: str) -> ServerSpec:
    """Return the applied descriptor of a server that is a program of this machine."""
    if not is_server_name(name) or not Path(paths.spec(name)).exists():
        raise UsageError(
            f"no server {name!a}",
            where=_WHERE,
            fix="`mcpwrap status` lists the servers",
            code="E-USAGE-NO-SERVER",
        )
    panic.expect_not_stopped(name)
    spec = server_descriptor.read(name)
    if spec.remote or spec.python or spec.hub:
        raise UsageError(
            "the server is not a program that is started on this machine",
            where=f"server {name}",
            fix=f"changes that it lists are held back: `mcpwrap tools diff {name}` shows them",
            code="E-NEXT-NOT-LOCAL",
        )
    return spec


def _program(command: str) -> str:
    """Return the absolute path of a command; a server's PATH is searched, not the caller's."""
    found = (
        [command]
        if command.startswith("/")
        else [f"{folder}/{command}" for folder in environment.PATH.split(":") if "/" not in command]
    )
    for path in found:
        if Path(path).is_file() and os.access(path, os.X_OK):
            return path
    raise UsageError(
        f"there is no program {command!a} in {environment.PATH}; nothing was started",
        where=_WHERE,
        fix="write the absolute path of the program behind `--next`",
        code="E-NEXT-NO-COMMAND",
    )


def _values(spec: ServerSpec, command: Sequence[str], *, with_secrets: bool) -> dict[str, str]:
    """Return a value for each secret: a placeholder, or what a person has agreed to give.

    Raises:
        McpwrapError: the person has not, or a secret is not set.
        UsageError: there is no terminal to ask at.
    """
    if not with_secrets or not spec.secrets:
        return dict.fromkeys(spec.secrets, next_version.PLACEHOLDER)
    lines = [
        f"This program gets the secrets of {spec.name}, and can send them to each of its hosts:",
        f"  program: {' '.join(command)}",
        f"  secrets: {', '.join(spec.secrets)}",
    ]
    text = "".join(f"{visible(line)[:1000]}\n" for line in lines)
    if not tty.says_yes(lambda _: text, "Type `yes` to give it these secrets: "):
        raise McpwrapError(
            "not confirmed with `yes`; nothing was started",
            where=_WHERE,
            fix="leave out `--with-secrets`, or run the same command again and answer `yes`",
            code="E-NEXT-NOT-CONFIRMED",
        )
    return {key: secret.value for key, secret in store.take(spec.name, spec.secrets).items()}


def _exchanged(spec: ServerSpec, request: bytes) -> bytes:
    if len(request) > MAX_REQUEST_BYTES:
        raise UsageError(
            f"command and variables take over {MAX_REQUEST_BYTES} bytes; nothing was started",
            where=_WHERE,
            fix="use fewer or shorter arguments",
            code="E-NEXT-TOO-LARGE",
        )
    _end()  # an earlier one, whose program was killed
    _prepare(spec)
    try:
        with _pipes() as (request_fd, answer_fd):
            os.write(request_fd, request)  # it fits, so this waits for no reader
            run(SYSTEMCTL, "start", "--", next_version.UNIT)
            os.set_blocking(answer_fd, True)
            return _read_to_end(answer_fd)
    except KeyboardInterrupt:
        raise McpwrapError(
            "interrupted; the program was ended",
            where=_WHERE,
            fix="run the same command again",
            code="E-NEXT-INTERRUPTED",
        ) from None
    finally:
        _end()


def _prepare(spec: ServerSpec) -> None:
    """Write what the units read: rules and drop-in of this server."""
    allocation = observer.registry().by_name[spec.name]
    egress = next_version.egress_of(allocation.uid, nft_table.elements())
    own_uid = pwd.getpwnam(next_version.ACCOUNT).pw_uid
    Path(next_version_pipe.FOLDER).mkdir(mode=0o700, exist_ok=True)
    root_files.replace(next_version.RULES, next_version.rules(egress), mode=0o600)
    Path(next_version.DROP_IN).parent.mkdir(parents=True, exist_ok=True)
    text = next_version.drop_in(spec, egress, allocation.squid or "", own_uid)
    root_files.replace(next_version.DROP_IN, text)
    run(SYSTEMCTL, "daemon-reload")


def _end() -> None:
    """Stop the units, if they run; their destinations are removed before this returns."""
    run(SYSTEMCTL, "stop", "--", next_version.UNIT, next_version.EGRESS_UNIT)


@contextmanager
def _pipes() -> Iterator[tuple[int, int]]:
    """Yield the ends of root's program: the request's, and the answer's, which does not block yet.

    Only this process holds the request's pipe open for writing. systemd opens the other ends.
    """
    made = (next_version.REQUEST, next_version.ANSWER)
    for path in made:
        with suppress(FileNotFoundError):
            Path(path).unlink()
        os.mkfifo(path, 0o600)
    request_fd = os.open(next_version.REQUEST, os.O_RDWR | os.O_CLOEXEC)
    answer_fd = os.open(next_version.ANSWER, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.fcntl(request_fd, fcntl.F_SETPIPE_SZ, MAX_REQUEST_BYTES)
        yield request_fd, answer_fd
    finally:
        os.close(request_fd)
        os.close(answer_fd)
        for path in made:
            Path(path).unlink()


def _read_to_end(answer_fd: int) -> bytes:
    """Read until the unit has closed its end, which its own time limit bounds."""
    text = bytearray()
    while chunk := os.read(answer_fd, _CHUNK_BYTES):
        text += chunk
        if len(text) > MAX_ANSWER_BYTES:
            raise McpwrapError(
                f"it answered with over {MAX_ANSWER_BYTES} bytes",
                where=next_version.UNIT,
                fix="read its code before it is used: it may be an attack",
                code="E-NEXT-TOO-LARGE",
            )
    return bytes(text)
