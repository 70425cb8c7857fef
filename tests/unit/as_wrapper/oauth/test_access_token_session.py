"""Session with a server that needs a login, from lines to lines, by the remote program."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import mcpwrap
from mcpwrap.as_wrapper.oauth.token_file import Store
from mcpwrap.core.wire.login_pipe import LoginDone, LoginFailed, LoginStart, encode, expect
from tests.unit.as_wrapper.oauth.world import World

ROOT = str(Path(mcpwrap.__file__).parent.parent)
START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from mcpwrap.as_wrapper.remote.main import main
sys.exit(main())
"""


class Program:
    """Remote program as the wrapper starts it, with its variables and files."""

    def __init__(self, there: World, folder: Path) -> None:
        self._there = there
        (folder / "oauth.json").write_bytes(msgspec.json.encode(there.given))
        (folder / "ca.pem").write_bytes(there.ca_pem)
        self._env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": ":".join(filter(None, sys.path)),
            "SSL_CERT_FILE": str(folder / "ca.pem"),
            "MCPWRAP_OAUTH": str(folder / "oauth.json"),
            "MCPWRAP_REMOTE": there.server.mcp_url,
        }
        self.said = b""

    def run(self, text: bytes, **env: str) -> bytes:
        argv = [sys.executable, "-c", START, ROOT]
        ended = subprocess.run(argv, input=text, capture_output=True, env={**self._env, **env})
        self.said += ended.stdout + ended.stderr
        return ended.stdout

    def call(self, *, echo: str = "") -> dict[str, Any]:
        """Send one request; return its answer."""
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        params = {"name": "echo", "arguments": {"text": echo}, "_meta": meta}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer: dict[str, Any] = json.loads(self.run(json.dumps(request).encode() + b"\n"))
        return answer


@pytest.fixture
def program(there: World, tmp_path: Path) -> Program:
    return Program(there, tmp_path)


def make_old(there: World) -> None:
    kept = Store(there.given).read()
    assert kept
    assert kept.tokens
    old = msgspec.structs.replace(kept.tokens, expires_at=time.time())
    Store(there.given).write(msgspec.structs.replace(kept, tokens=old))


def test_without_a_login_the_agent_gets_an_error(program: Program) -> None:
    answer = program.call()
    assert "not logged in: `mcpwrap login remote`" in answer["error"]["message"]


def test_a_request_has_the_token_of_the_login(there: World, program: Program) -> None:
    there.log_in()
    assert "result" in program.call()
    assert there.server.seen_tokens[-1] == there.token()


def test_a_token_that_is_over_is_renewed_on_the_way(there: World, program: Program) -> None:
    there.log_in()
    make_old(there)
    assert "result" in program.call()
    there.server.end_access()  # early, as after a restart of the server
    assert "result" in program.call()
    assert len(there.server.grants("refresh_token")) == 2


def test_a_revoked_login_is_an_error(there: World, program: Program) -> None:
    there.log_in()
    there.server.revoked.update(there.server.family_by_refresh.values())
    answer = program.call()
    assert "revoked, or has expired): `mcpwrap login remote`" in answer["error"]["message"]
    assert "data" not in answer["error"]  # no agent is sent to log in itself
    assert "not logged in" in program.call()["error"]["message"]
    there.log_in()
    assert "result" in program.call()


def test_a_changed_store_is_an_error(there: World, program: Program) -> None:
    there.log_in()
    path = Path(there.given.store)
    text = path.read_text()
    path.write_text(("0" if text[0] != "0" else "1") + text[1:])
    assert "cannot be opened" in program.call()["error"]["message"]
    path.write_text(text)
    assert "result" in program.call()


def test_too_few_scopes_are_an_error(there: World, program: Program) -> None:
    there.log_in()
    there.server.ways.wants_scope = "admin"
    assert "scopes of the login do not allow this" in program.call()["error"]["message"]


def test_a_server_that_refuses_every_token_gets_no_more_requests(
    there: World, program: Program
) -> None:
    there.log_in()
    there.server.ways.refuses_all = True
    assert "refuses a new token" in program.call()["error"]["message"]
    assert len(there.server.grants("refresh_token")) == 1


def test_a_token_that_the_server_repeats_is_redacted(there: World, program: Program) -> None:
    there.log_in()
    there.server.ways.echoes = True
    make_old(there)
    answer = program.call()
    assert answer["result"]["said"].startswith("Bearer [redacted access token")
    for token in there.server.all_tokens():
        assert token.encode() not in program.said


def test_a_login_is_a_session_too(there: World, program: Program) -> None:
    """As far as possible without a person; `test_login` has the rest."""
    line = program.run(encode(LoginStart(port=1)), MCPWRAP_LOGIN="login")
    assert "port of the redirect" in expect(line, LoginFailed).failed
    line = program.run(b"x\n", MCPWRAP_LOGIN="login")
    assert "violated its protocol" in expect(line, LoginFailed).failed
    assert expect(program.run(b"", MCPWRAP_LOGIN="logout"), LoginDone).revoked is False
    assert not there.server.forms


def test_incomplete_settings_are_an_error(program: Program, tmp_path: Path) -> None:
    (tmp_path / "oauth.json").write_text("{}")
    assert program.run(b"") == b""
    assert b"cannot be read" in program.said
