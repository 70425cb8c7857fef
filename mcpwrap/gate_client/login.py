"""Client of a remote server's OAuth login program, through the gate, by two pipes."""

import os
import select
import socket
import time
from contextlib import suppress
from typing import Self, TypeVar

from mcpwrap.core.wire import login_pipe, session_socket
from mcpwrap.core.wire.login_pipe import LoginFailed, LoginMessage, LoginProtocolError
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.unix_socket import fd_passing

GATE_SOCKET = "/run/mcpwrap/gate.sock"
_ANSWER_S = 150.0  # of several servers, each within 30
_LAST_WORDS_S = 2.0
T = TypeVar("T", bound=LoginMessage)


class LoginClient:
    """One login or logout. As a context manager it is over at the end."""

    def __init__(self, name: str, verb: str, path: str = GATE_SOCKET) -> None:
        """Connect and say what is wanted. Nothing is read yet: that is for who is not root.

        Raises:
            McpwrapError: the gate does not listen.
        """
        self._name = name
        self._buffer = b""
        self._gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        heard_fd, theirs_out = os.pipe()
        theirs_in, say_fd = os.pipe()
        self._heard_fd, self._say_fd = heard_fd, say_fd
        try:
            self._gate.connect(path)
            text = session_socket.encode_hello(
                session_socket.Protocol.GATE, name, {session_socket.LOGIN: verb}
            )
            fd_passing.send(self._gate, text, [theirs_in, theirs_out])
        except OSError as error:
            self.__exit__()
            fix = "`systemctl status mcpwrap-gate.socket mcpwrap-gate` says whether it runs"
            why = f"cannot be asked: {error.strerror}"
            raise McpwrapError(why, where="the gate", fix=fix) from error
        finally:
            fd_passing.close_all([theirs_in, theirs_out])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.close()
        fd_passing.close_all([self._heard_fd, self._say_fd])

    def fileno(self) -> int:
        """Return what becomes readable when the program says something, or ends."""
        return self._heard_fd

    def await_start(self) -> None:
        """Wait until the program runs.

        Raises:
            McpwrapError: it does not, and why.
        """
        self._gate.settimeout(session_socket.START_S + session_socket.HANDSHAKE_S)
        try:
            self._until_started()
        except (OSError, session_socket.ProtocolError) as error:
            raise self._failed(f"the gate does not answer: {error}") from error

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
                    raise self._failed(why or f"it ended with {status}")
                case _:
                    pass

    def send(self, word: LoginMessage) -> None:
        """Say something. A program that has ended has said why before."""
        with suppress(BrokenPipeError):
            os.write(self._say_fd, login_pipe.encode(word))

    def receive(self, kind: type[T]) -> T:
        """Return the next word.

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
            if not select.select([self._heard_fd], [], [], left_s)[0]:
                raise self._failed(f"no answer within {_ANSWER_S:.0f} s")
            chunk = os.read(self._heard_fd, login_pipe.MAX_LINE_BYTES)
            self._buffer += chunk
            if not chunk or len(self._buffer) > login_pipe.MAX_LINE_BYTES:
                raise self._failed(self._last_words())
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _last_words(self) -> str:
        """Return what the gate says of a program that has ended."""
        said = b""
        self._gate.settimeout(_LAST_WORDS_S)
        try:
            while packet := self._gate.recv(session_socket.MAX_PACKET_BYTES):
                match session_socket.decode(packet):
                    case session_socket.StderrChunk(text):
                        said += text
                    case session_socket.ServerEnded(status, why):
                        words = said.decode(errors="replace").strip()
                        return words or why or f"it ended with {status}"
                    case _:
                        pass
        except (OSError, session_socket.ProtocolError):
            pass
        return said.decode(errors="replace").strip() or "it ended before it was done"

    def _failed(self, why: str) -> McpwrapError:
        where = f"server {self._name}"
        return McpwrapError(why, where=where, fix="mend what it says, and try again")
