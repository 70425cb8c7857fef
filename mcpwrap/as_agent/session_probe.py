"""Program that `mcpwrap doctor` runs as an agent: opens a session by the stub, and uses the server.

Arguments: `NAME` lists its tools. `NAME hub` also calls `mcpwrap_status` of a hub, and prints the
checks of `hub_probe` after the first line, as JSON, one a line. `NAME print` and `NAME connect`
have a Python server execute code, which prints 1 or tries to connect to an address that no host
has. Prints one line. Exit status: 0 it worked, 10 it did not; of `connect`: 0 a packet was sent, 10
the run was refused a socket, 11 it has no route, 12 the code was not executed. Any other: nothing
was tested.
"""

import contextlib
import errno
import os
import pwd
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import IO, cast

import msgspec

from mcpwrap import __version__
from mcpwrap.core.execution.probe_code import CONNECT, PRINT
from mcpwrap.core.hub.names import STATUS_TOOL
from mcpwrap.linux import tty

STUB = "/usr/bin/mcpwrap-connect"
_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception)\b.*: ")  # of Python, and of node
_MAX_ERROR_BYTES = 16 * 1024
_WORKED, _NO_ANSWER, _NO_ROUTE, _NOT_EXECUTED = 0, 10, 11, 12
_REFUSED = _NO_ANSWER  # one status, of different attempts
_MISUSED = 2
_ANSWER_S = 60  # the first start of a server may download it
_REFUSALS = {errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES}


class _Answer(msgspec.Struct):
    id: int | str | None = None
    result: dict[str, object] | None = None
    error: dict[str, object] | None = None


class _Text(msgspec.Struct):
    text: str = ""


class _ToolResult(msgspec.Struct, rename={"is_error": "isError"}):
    content: list[_Text]
    is_error: bool = False


class _Run(msgspec.Struct):
    exit_code: int
    duration_ms: int
    stdout: str = ""
    stderr: str = ""
    error: str | None = None


class _NotExecutedError(Exception):
    """Result of a tool call whose code was not executed, with the tool's reason."""


class _Session:
    """Session of a server, by the two ends of its stub."""

    def __init__(self, to_server: IO[bytes], from_server: IO[bytes]) -> None:
        self._to_server = to_server
        self._from_server = from_server
        self._requests = 0

    def request(self, method: str, **params: object) -> dict[str, object]:
        """Return the result of a request.

        Raises:
            ValueError: the server returned an error.
            EOFError: it ended.
        """
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        return _answer(self._from_server, self._requests)

    def begin(self) -> None:
        """Make the handshake."""
        client = {"name": "mcpwrap doctor", "version": __version__}
        self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, object]) -> None:
        self._to_server.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
        self._to_server.flush()


def main() -> int:
    """Open one session of the server in argv, make one attempt, and end it."""
    match sys.argv[1:]:
        case [server]:
            return _tried(server, _list_tools, _NO_ANSWER)
        case [server, "hub"]:
            return _tried(server, partial(_examine_hub, server), _NO_ANSWER)
        case [server, "print"]:
            return _tried(server, _print, _NO_ANSWER)
        case [server, "connect"]:
            return _tried(server, _connect, _NOT_EXECUTED)
        case _:
            return _MISUSED


def telling(said: str) -> str:
    """Return the most informative line: the last error of Python or node, else the first line."""
    lines = said.splitlines()
    return next(filter(_ERROR.match, reversed(lines)), lines[0])


def _tried(server: str, attempt: Callable[[_Session], tuple[int, str]], without_result: int) -> int:
    signal.alarm(_ANSWER_S)
    signal.signal(signal.SIGALRM, _too_late)
    with subprocess.Popen(
        [STUB, server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as stub:
        session = _Session(cast(IO[bytes], stub.stdin), cast(IO[bytes], stub.stdout))
        try:
            session.begin()
            status, line = attempt(session)
        except _NotExecutedError as error:  # its reason, not what the server logs beside it
            stub.kill()
            tty.say(telling(str(error)))
            return without_result
        except (OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
            with contextlib.suppress(OSError):
                cast(IO[bytes], stub.stdin).close()
            said = cast(IO[bytes], stub.stderr).read(_MAX_ERROR_BYTES).decode(errors="replace")
            tty.say(telling(said.strip() or str(error)))
            return without_result
        tty.say_lines(line.split("\n"))
        stub.kill()
    return status


def _list_tools(session: _Session) -> tuple[int, str]:
    tools = session.request("tools/list").get("tools", [])
    return _WORKED, f"{len(tools) if isinstance(tools, list) else 0} tools"


def _examine_hub(hub: str, session: _Session) -> tuple[int, str]:
    from mcpwrap.as_agent.hub_probe import checks  # noqa: PLC0415 - for hubs alone; it loads yaml

    _, line = _list_tools(session)  # a hub that knows nothing yet waits for its members here
    called = session.request("tools/call", name=STATUS_TOOL, arguments={})
    result = msgspec.convert(called, _ToolResult)
    tools = session.request("tools/list").get("tools")
    status = result.content[0].text if result.content else ""
    home = pwd.getpwuid(os.getuid()).pw_dir
    rows = [msgspec.json.encode(check).decode() for check in checks(hub, home, tools, status)]
    return _WORKED, "\n".join([line, *rows])


def _print(session: _Session) -> tuple[int, str]:
    run = _executed(session, PRINT)
    if run.stdout == "1\n" and run.exit_code == 0:
        return _WORKED, f"printed 1, {run.duration_ms} ms"
    return _NO_ANSWER, _outcome(run)


def _connect(session: _Session) -> tuple[int, str]:
    run = _executed(session, CONNECT)
    number, _, text = run.stdout.rstrip("\n").partition(" ")
    if number == "sent":
        return _WORKED, "a packet was sent"
    if not number.isdecimal():
        return _NOT_EXECUTED, _outcome(run)
    if int(number) in _REFUSALS:
        return _REFUSED, text
    return (_NO_ROUTE if int(number) == errno.ENETUNREACH else _WORKED), text


def _executed(session: _Session, code: str) -> _Run:
    """Return the result of a run.

    Raises:
        _NotExecutedError: the tool has refused the call.
    """
    called = session.request("tools/call", name="run_python", arguments={"code": code})
    result = msgspec.convert(called, _ToolResult)
    text = result.content[0].text if result.content else ""
    if result.is_error:
        raise _NotExecutedError(text.strip() or "the tool gave no reason")
    return msgspec.json.decode(text, type=_Run)


def _outcome(run: _Run) -> str:
    """Return a line about a run with another result than the code has."""
    last = run.stderr.strip().splitlines()[-1:]
    why = [each for each in (run.error or "", *last) if each]
    return "; ".join([f"exit status {run.exit_code}", *why])


def _answer(from_server: IO[bytes], request_id: int) -> dict[str, object]:
    for line in from_server:
        answer = msgspec.json.decode(line, type=_Answer)
        if answer.id == request_id:
            if answer.result is None:
                raise ValueError(f"the server returned an error: {answer.error}"[:200])
            return answer.result
    raise EOFError("the server ended without an answer")


def _too_late(*_: object) -> None:
    raise TimeoutError(f"no answer within {_ANSWER_S} s")


if __name__ == "__main__":
    sys.exit(main())
