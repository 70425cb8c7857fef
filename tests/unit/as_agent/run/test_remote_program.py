"""Client of `mcpwrap run --url` as the sandbox starts it: variables, and what it says of logins."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from aiohttp import web

from mcpwrap.as_agent.run.remote_server import parsed
from mcpwrap.as_agent.run.toolchain import CommandContext
from tests.unit.session.remote.world import (
    PATIENCE_S,
    Asked,
    Handle,
    as_usual,
    error,
    modern,
    played,
    server,
)

TOKEN = "tok-0123456789"
NO_WIDE_FOLDERS = CommandContext(frozenset(), Path("/"), "", frozenset())


async def run(url: str, *, has_token: bool, text: bytes = b"") -> tuple[bytes, str, int | None]:
    """Send a call, or another text; return output, standard error and exit status."""
    target = parsed(url, "TOKEN" if has_token else None, (), {"TOKEN": TOKEN})
    program = await asyncio.create_subprocess_exec(
        *target.command(), stdin=-1, stdout=-1, stderr=-1,
        env={"PATH": os.environ["PATH"], **target.environment(NO_WIDE_FOLDERS)},
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        out, err = await program.communicate(text or json.dumps(modern(1)).encode() + b"\n")
    return out, err.decode(), program.returncode


@pytest.mark.parametrize("has_token", [True, False])
def test_a_call_has_the_token_of_the_variable(*, has_token: bool) -> None:
    @played
    async def story() -> None:
        async with server(as_usual) as there:
            out, err, status = await run(there.url, has_token=has_token)
            assert json.loads(out)["result"] == {"content": []}
            assert (err, status) == ("", 0)
            expected = f"Bearer {TOKEN}" if has_token else None
            assert there.seen[0].headers.get("authorization") == expected

    story()


def answering(status: int, *, body: object = None) -> Handle:
    async def handle(asked: Asked) -> web.StreamResponse:
        if body is not None:
            return web.json_response(body, status=status)
        return web.Response(status=status, text=str(asked.headers.get("authorization")))

    return handle


OWN_WORDS = error(1, -32001, "not in your plan")


@pytest.mark.parametrize(
    ("handle", "has_token", "said"),
    [
        (answering(401), False, ["requires a login", "the installed package", "--bearer-from"]),
        (answering(401), True, ["refuses the credential", "the installed package"]),
        (answering(401, body=OWN_WORDS), False, ["requires a login"]),
        (answering(403), True, ["may lack a permission", "--header-from"]),
        (answering(403, body=OWN_WORDS), True, ["not in your plan"]),  # the server's own message
        (answering(404), True, ["has nothing at its URL"]),
    ],
)
def test_an_error_says_what_to_do_without_a_login(
    handle: Handle,
    has_token: bool,  # noqa: FBT001
    said: list[str],
) -> None:
    @played
    async def story() -> None:
        async with server(handle) as there:
            out, err, status = await run(there.url, has_token=has_token)
        message = json.loads(out)["error"]["message"]
        assert [part for part in said if part not in message] == []
        assert TOKEN not in message
        assert (err, status) == ("", 0)

    story()


@played
async def test_a_bug_quotes_nothing() -> None:
    out, err, status = await run("http://127.0.0.1:1/", has_token=True, text=b"no message\n")
    assert (out, status) == (b"", 1)
    assert err.endswith("mcpwrap run: a bug in mcpwrap: ExceptionGroup\n")
    assert "no message" not in err
    assert TOKEN not in err
