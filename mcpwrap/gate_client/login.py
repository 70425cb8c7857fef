"""Client of a remote server's OAuth login program, through the gate, by two pipes."""

import os
import select
import socket
import time
from contextlib import suppress
from typing import Self, TypeVar

from mcpwrap.core.wire import login_pipe, session_socket
from mcpwrap.core.wire.login_pipe import LoginFailed, LoginMessage, LoginProtocolError
from mcpwrap.errors import McpwrapError, split_name
from mcpwrap.linux.unix_socket import fd_passing

GATE_SOCKET = "/run/mcpwrap/gate.sock"
_ANSWER_S = 150.0  # the program asks several servers, each within 30
_EXIT_REPORT_S = 2.0
T = TypeVar("T", bound=LoginMessage)


class LoginClient:
    """One login or logout. As a context manager it ends at the exit."""

    def __init__(self, name: str, verb: str, path: str = GATE_SOCKET) -> None:
        """Connect, and send the request. Reading comes later, because root must not read replies.

        Raises:
            McpwrapError: the gate does not listen.
        """
        self._name = name
        self._buffer = b""
        self._gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        from_helper_fd, theirs_out = os.pipe()
        theirs_in, to_helper_fd = os.pipe()
        self._from_helper_fd, self._to_helper_fd = from_helper_fd, to_helper_fd
        try:
            self._gate.connect(path)
            text = session_socket.encode_hello(
                session_socket.Protocol.GATE, name, {session_socket.LOGIN: verb}
            )
            fd_passing.send(self._gate, text, [theirs_in, theirs_out])
        except OSError as error:
            self.__exit__()
            raise McpwrapError(
                f"cannot be reached: {error.strerror}",
                where="the gate",
                fix="`systemctl status mcpwrap-gate.socket mcpwrap-gate` shows whether it runs",
                code="E-CONNECT-NO-GATE",
            ) from error
        finally:
            fd_passing.close_all([theirs_in, theirs_out])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.close()
        fd_passing.close_all([self._from_helper_fd, self._to_helper_fd])

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the program writes or ends."""
        return self._from_helper_fd

    def await_start(self) -> None:
        """Wait until the program runs.

        Raises:
            McpwrapError: it does not start, with the reason.
        """
        self._gate.settimeout(session_socket.START_S + session_socket.HANDSHAKE_S)
        try:
            self._until_started()
        except (OSError, session_socket.ProtocolError) as error:
            raise self._failed(f"the gate does not answer: {error} [E-CONNECT-NO-GATE]") from error

    def _until_started(self) -> None:
        while True:
            match session_socket.decode(self._gate.recv(session_socket.MAX_PACKET_BYTES)):
                case session_socket.ServerStarted():
                    return
                case session_socket.VariablesRequest():
                    self._gate.send(b"\0")
                case session_socket.SessionRefused(_, why):
                    raise self._failed(why)
                case session_socket.ServerEnded(status, why):
                    raise self._failed(why or f"its program ended with {status}")
                case _:
                    pass

    def send(self, message: LoginMessage) -> None:
        """Send a message. A program that has ended has sent its reason before."""
        with suppress(BrokenPipeError):
            os.write(self._to_helper_fd, login_pipe.encode(message))

    def receive(self, kind: type[T]) -> T:
        """Return the next message.

        Raises:
            McpwrapError: the program has failed or ended, with its reason.
        """
        line = self._line()
        with suppress(LoginProtocolError):
            raise self._failed(login_pipe.expect(line, LoginFailed).failed)
        try:
            return login_pipe.expect(line, kind)
        except LoginProtocolError as error:
            raise self._failed(str(error)) from error

    def _line(self) -> bytes:
        give_up_at_s = time.monotonic() + _ANSWER_S
        while b"\n" not in self._buffer:
            left_s = max(0.0, give_up_at_s - time.monotonic())
            if not select.select([self._from_helper_fd], [], [], left_s)[0]:
                raise self._failed(f"no answer within {_ANSWER_S:.0f} s")
            chunk = os.read(self._from_helper_fd, login_pipe.MAX_LINE_BYTES)
            self._buffer += chunk
            if not chunk or len(self._buffer) > login_pipe.MAX_LINE_BYTES:
                raise self._failed(self._exit_reason())
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _exit_reason(self) -> str:
        """Return the reason why the program has ended: its standard error, or the gate's report."""
        stderr = b""
        self._gate.settimeout(_EXIT_REPORT_S)
        try:
            while packet := self._gate.recv(session_socket.MAX_PACKET_BYTES):
                match session_socket.decode(packet):
                    case session_socket.StderrChunk(text):
                        stderr += text
                    case session_socket.ServerEnded(status, why):
                        output = stderr.decode(errors="replace").strip()
                        return output or why or f"its program ended with {status}"
                    case _:
                        pass
        except (OSError, session_socket.ProtocolError):
            pass
        return stderr.decode(errors="replace").strip() or "its program ended before it was done"

    def _failed(self, why: str) -> McpwrapError:
        problem, code = split_name(why, code="E-LOGIN-FAILED")
        where, fix = f"server {self._name}", "fix the cause named above, then retry"
        return McpwrapError(problem, where=where, fix=fix, code=code)
