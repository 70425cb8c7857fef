"""Program that `mcpwrap doctor` runs as an agent: opens a session by the stub, lists the tools.

Prints one line. Exit status: 0 the server answered, 10 it did not. Any other: nothing was tested.
"""

import contextlib
import re
import signal
import subprocess
import sys
from typing import IO, cast

import msgspec

from mcpwrap import __version__
from mcpwrap.linux import tty

STUB = "/usr/bin/mcpwrap-connect"
_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception)\b.*: ")  # of Python, and of node
_MAX_ERROR_BYTES = 16 * 1024
_NO_ANSWER = 10
_ANSWER_S = 60  # the first start of a server may download it


class _Answer(msgspec.Struct):
    id: int | str | None = None
    result: dict[str, object] | None = None
    error: dict[str, object] | None = None


def main() -> int:
    """Open one session of the server in argv, list its tools, and end it."""
    signal.alarm(_ANSWER_S)
    signal.signal(signal.SIGALRM, _too_late)
    with subprocess.Popen(
        [STUB, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as stub:
        try:
            tty.say(_listed(cast(IO[bytes], stub.stdin), cast(IO[bytes], stub.stdout)))
        except (OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
            with contextlib.suppress(OSError):
                cast(IO[bytes], stub.stdin).close()
            said = cast(IO[bytes], stub.stderr).read(_MAX_ERROR_BYTES).decode(errors="replace")
            tty.say(telling(said.strip() or str(error)))
            return _NO_ANSWER
        stub.kill()
    return 0


def telling(said: str) -> str:
    """Return the most informative line: the last error of Python or node, else the first line."""
    lines = said.splitlines()
    return next(filter(_ERROR.match, reversed(lines)), lines[0])


def _listed(to_server: IO[bytes], from_server: IO[bytes]) -> str:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "mcpwrap doctor", "version": __version__},
    }
    _ask(to_server, {"id": 1, "method": "initialize", "params": hello})
    _answer(from_server, 1)
    _ask(to_server, {"method": "notifications/initialized"})
    _ask(to_server, {"id": 2, "method": "tools/list", "params": {}})
    tools = _answer(from_server, 2).get("tools", [])
    return f"{len(tools) if isinstance(tools, list) else 0} tools"


def _ask(to_server: IO[bytes], message: dict[str, object]) -> None:
    to_server.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
    to_server.flush()


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
