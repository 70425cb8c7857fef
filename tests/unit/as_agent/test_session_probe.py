"""Attempts of `doctor` in a session, against servers that answer as they should, or not."""

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

from mcpwrap.as_agent import session_probe
from mcpwrap.as_agent.session_probe import telling
from mcpwrap.core.execution.probe_code import CONNECT

# Server behind the stub: answers tools/call with the text in argv, whatever the code is.
SERVER = """\
#!{python}
import json, sys
result = json.loads({result!r})
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "tools/call":
        answer = {{"result": result}} if "error" not in result else result
    else:
        answer = {{"result": {{"tools": [{{}}, {{}}]}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **answer}}), flush=True)
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("mcpwrap-connect: no\nmore", "mcpwrap-connect: no"),
        ('Traceback (most recent call last):\n  File "x"\nKeyError: 1', "KeyError: 1"),
        (
            "node:internal/modules:873\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find x\n    at y",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find x",
        ),
    ],
)
def test_the_most_informative_line(said: str, told: str) -> None:
    assert telling(said) == told


def ran(stdout: str = "", exit_code: int = 0, **more: object) -> dict[str, object]:
    """Return the result of a call whose code was executed."""
    run = {"stdout": stdout, "exit_code": exit_code, "duration_ms": 12, **more}
    return {"content": [{"type": "text", "text": json.dumps(run)}], "isError": False}


REFUSED = {"content": [{"type": "text", "text": "busy [E-WORKER-BUSY]\nmore"}], "isError": True}
STATUS = {"content": [{"type": "text", "text": "loaded 2 tools from 1/1 servers\ngit: 2 tools"}]}
BLOCKED = {"error": {"code": -32000, "message": "blocked"}}


@pytest.mark.parametrize(
    ("argv", "result", "status", "line"),
    [
        ([], {}, 0, "2 tools"),
        (["hub"], STATUS, 0, '2 tools\n{"what":"python: members","state":"good"'),
        (["hub"], {"content": []}, 0, '2 tools\n{"what":"python: members","state":"warning"'),
        (["hub"], BLOCKED, 10, "the server returned an error: {'code': -32000, "),
        (["print"], ran("1\n"), 0, "printed 1, 12 ms"),
        (["print"], ran("2\n"), 10, "exit status 0"),
        (
            ["print"],
            ran("", 1, stderr="Traceback\nKeyError: 1\n"),
            10,
            "exit status 1; KeyError: 1",
        ),
        (["print"], ran("1\n", 137, error="memory: 1 MiB"), 10, "exit status 137; memory: 1 MiB"),
        (["print"], REFUSED, 10, "busy [E-WORKER-BUSY]"),
        (["print"], {"content": []}, 10, "Input data was truncated"),
        (["connect"], ran("97 Address family not supported\n"), 10, "Address family not supported"),
        (["connect"], ran("1 Operation not permitted\n"), 10, "Operation not permitted"),
        (["connect"], ran("101 Network is unreachable\n"), 11, "Network is unreachable"),
        # The socket was made, and only packet rules of this machine refused the rest.
        (["connect"], ran("111 Connection refused\n"), 0, "Connection refused"),
        (["connect"], ran("sent\n"), 0, "a packet was sent"),
        (["connect"], ran("", 1, stderr="KeyError: 1"), 12, "exit status 1; KeyError: 1"),
        (["connect"], REFUSED, 12, "busy [E-WORKER-BUSY]"),  # this is no refusal of the network
        (["connect"], BLOCKED, 12, "the server returned an error: {'code': -32000, "),
        (["other"], {}, 2, ""),
    ],
)
def test_the_status_tells_what_happened(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    result: dict[str, object],
    status: int,
    line: str,
) -> None:
    stub = tmp_path / "stub"
    stub.write_text(SERVER.format(python=sys.executable, result=json.dumps(result)))
    stub.chmod(0o755)
    monkeypatch.setattr(session_probe, "STUB", str(stub))
    monkeypatch.setattr(sys, "argv", ["mcpwrap-try-session", "python", *argv])
    assert session_probe.main() == status
    assert capsys.readouterr().out.startswith(line)


def test_the_code_itself_reports_a_refused_socket(tmp_path: Path) -> None:
    """Where no socket can be made, the code prints the error's number, and does not fail."""
    refusing = textwrap.dedent("""\
        import socket
        def refuse(*_, **__): raise OSError(97, "Address family not supported")
        socket.socket = refuse
        """)
    script = tmp_path / "main.py"
    script.write_text(refusing + CONNECT)
    with os.popen(f"{sys.executable} {script}") as output:
        assert output.read() == "97 Address family not supported\n"
