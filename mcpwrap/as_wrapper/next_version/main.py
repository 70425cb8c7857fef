"""Entry point of `mcpwrap-next.service`: one session of a server's next version.

It starts the program as a wrapper starts a server, reads its definitions, ends it, and writes them
to standard output. When root's program is gone, the request's pipe is closed and this one ends.
"""

import os
import socket
import sys
from pathlib import Path

import msgspec

from mcpwrap.as_wrapper.next_version.definitions_reader import DefinitionsReader, ServerPipes
from mcpwrap.as_wrapper.session import (
    ServerSession,
    SessionRequest,
    WrapperContext,
    open_session,
    prepare_slot,
)
from mcpwrap.core.wire import next_version_pipe
from mcpwrap.core.wire.next_version_pipe import (
    MAX_REQUEST_BYTES,
    NextVersionAnswer,
    NextVersionRequest,
)
from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.linux.isolation import cgroup, prctl
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing

ACCOUNT = "mcpwrap-next"
_CHUNK_BYTES = 64 * 1024
_REQUEST_FD, _ANSWER_FD = 0, 1


def main() -> int:
    """Answer the one request. Standard error is the journal."""
    prctl.forbid_dumps()
    prctl.adopt_orphans()
    os.umask(0o077)
    try:
        request = next_version_pipe.decode_request(_read_line())
    except msgspec.MsgspecError as error:
        log_line(f"mcpwrap-next: not a request of root's program: {error} [E-NEXT-REQUEST]")
        return 1
    left = memoryview(next_version_pipe.encode_answer(_answer_to(request)))
    while left:
        left = left[os.write(_ANSWER_FD, left) :]
    return 0


def _read_line() -> bytes:
    """Read the request; the pipe stays open behind it."""
    line = b""
    while not line.endswith(b"\n") and len(line) <= MAX_REQUEST_BYTES:
        if not (chunk := os.read(_REQUEST_FD, _CHUNK_BYTES)):
            break
        line += chunk
    return line


def _answer_to(request: NextVersionRequest) -> NextVersionAnswer:
    """Start the program, read its definitions, and end it."""
    pipes = ServerPipes.new()
    try:
        server = _started(request, pipes.theirs)
    except (OSError, RuntimeError) as error:
        return NextVersionAnswer(problem=str(error))
    finally:
        fd_passing.close_all(pipes.theirs)
    reader = DefinitionsReader(pipes, requester_fd=_REQUEST_FD)
    try:
        reader.read()
    finally:
        server.kill()
        server.close()
    reader.read_last_output()
    server.stop_copying()
    return reader.answer()


def _started(request: NextVersionRequest, fds: list[int]) -> ServerSession:
    """Start the program.

    Raises:
        OSError: it cannot be started; the text has the reason.
    """
    context = _context(request.spec)
    slot = prepare_slot(context, context.runtime)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # in the gate's place
    with ours:
        opening = SessionRequest(agent_uid="0", inherited={}, fds=fds)
        try:
            return open_session(context, slot, opening, theirs, request.value_by_key)
        except OSError:
            slot.give_up()
            raise


def _context(spec: ServerSpec) -> WrapperContext:
    """Return the context of a wrapper that has no state, no workspace and no gate."""
    tree, limits = cgroup.split_off_supervisor(
        cgroup.CgroupLimits(
            memory_bytes=spec.memory_bytes, tasks=spec.tasks, cpu_percent=spec.cpu_percent
        )
    )
    return WrapperContext(
        spec=spec,
        account=ACCOUNT,
        gate_uid=os.geteuid(),
        runtime=Path(next_version_pipe.FOLDER),
        state=None,
        tree=tree,
        limits=limits,
        view=None,
    )


if __name__ == "__main__":
    sys.exit(main())
