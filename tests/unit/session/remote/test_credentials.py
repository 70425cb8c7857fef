"""Credential headers from the file: sent with each request, and redacted in all output."""

import base64
import json
from pathlib import Path

import pytest
from aiohttp import web

from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.session.remote.credentials import Credentials
from tests.unit.session.remote.world import (
    Asked,
    agent,
    answer,
    as_usual,
    error,
    modern,
    played,
    request,
    server,
)

TAG: dict[str, object] = {"mcpwrap/headers": {}}
FIRST, SECOND = "canary-0123456789", "canary-of-tomorrow"


def write(path: Path, **headers: str) -> Path:
    """Replace the file as the wrapper does."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps({name.replace("_", "-"): text for name, text in headers.items()}))
    new.replace(path)
    return path


@played
async def test_a_new_secret_is_that_of_the_next_request(tmp_path: Path) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return answer(asked, {"text": f"{asked.headers}, and {FIRST}, {SECOND}"})

    path = write(tmp_path / "h.json", Authorization=f"Bearer {FIRST}\n", X_Team="blue")
    async with server(handle) as there, agent(there.url, headers=path) as alice:
        first = await alice.ask(modern(1))
        assert there.seen[0].headers["authorization"] == f"Bearer {FIRST}"
        assert there.seen[0].headers["x-team"] == "blue"
        assert FIRST not in str(first)
        assert SECOND in str(first)  # not known yet, and harmless
        write(path, Authorization=f"Bearer {SECOND}", X_Team="blue")
        second = await alice.ask(modern(2))
        assert there.seen[1].headers["authorization"] == f"Bearer {SECOND}"
        assert FIRST not in str(second)
        assert SECOND not in str(second)
        assert "[redacted Authorization]" in str(second)
        assert "[redacted Authorization 2]" in str(second)


@played
async def test_a_secret_that_an_upstream_repeats_is_seen_nowhere(tmp_path: Path) -> None:
    coded = base64.b64encode(f"token {FIRST}".encode()).decode()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "tools/call" and asked.id == 1:
            return web.json_response(error(1, -32000, f"bad token {FIRST}"), status=401)
        if asked.method == "tools/call" and asked.id == 2:
            challenge = {"WWW-Authenticate": f'Bearer error="{FIRST}"'}
            return web.Response(status=401, headers=challenge, text=FIRST, reason=FIRST)
        return answer(asked, {"text": coded})

    path = write(tmp_path / "h.json", Authorization=f"Bearer {FIRST}")
    async with server(handle) as there, agent(there.url, headers=path) as alice:
        await alice.say(*(request(n, _meta=TAG) for n in (1, 2, 3)))
        heard = b"".join([await alice.hear_text() for _ in range(3)])
    assert FIRST.encode() not in heard
    assert coded.encode() not in heard
    assert heard.count(b"[redacted Authorization]") == 3


@pytest.mark.parametrize("text", [None, "", "[]", '{"A": 1}', '{"A": "\xff"}'])
@played
async def test_without_its_credential_nothing_is_sent(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "h.json"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    async with server(as_usual) as there, agent(there.url, headers=path) as alice:
        heard = await alice.ask(modern(1))
        assert "credential of this server cannot be read" in heard["error"]["message"]
        assert there.seen == []
        write(path, Authorization=f"Bearer {FIRST}")
        assert "result" in await alice.ask(modern(2))


@pytest.mark.parametrize(
    ("name", "value"), [("X-Key", "a\nb"), ("X-Key", "a\x00b"), ("X Key", "a"), ("", "a")]
)
def test_a_value_that_is_invalid_in_a_header_is_not_sent(
    tmp_path: Path, name: str, value: str
) -> None:
    path = tmp_path / "h.json"
    path.write_text(json.dumps({name: value}))
    with pytest.raises(RemoteError, match="has a character that is not allowed"):
        Credentials(path).headers()


@pytest.mark.parametrize(
    ("value", "line", "clean"),
    [
        ("Bearer 0123456789ab", "x 0123456789ab y", "x [redacted H] y"),
        ("a passphrase of words", "a passphrase of words", "[redacted H]"),
        ("Bearer 1234", "1234 Bearer 1234", "1234 [redacted H]"),  # too short to stand alone
        ("user:password1", "password1", "password1"),  # it is not known which part is secret
    ],
)
def test_what_is_redacted(tmp_path: Path, value: str, line: str, clean: str) -> None:
    one = Credentials(write(tmp_path / "h.json", H=value))
    one.headers()
    assert one.clean(f"{line}\n".encode()) == f"{clean}\n".encode()


def test_where_there_is_no_file_there_are_no_headers() -> None:
    assert Credentials(None).headers() == {}


def test_fixed_headers_are_sent_and_redacted() -> None:
    credentials = Credentials.fixed({"Authorization": f"Bearer {FIRST}", "X-Team": "blue"})
    assert credentials.headers()["Authorization"] == f"Bearer {FIRST}"
    assert credentials.clean(f"what is {FIRST}?\n".encode()) == (
        b"what is [redacted Authorization]?\n"
    )
    with pytest.raises(RemoteError, match="cannot be sent in a header"):
        Credentials.fixed({"X-Team": "blue\nX-More: 1"})
