"""Access tokens: one session refreshes for all, and a revoked login is deleted."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_wrapper.oauth.access_token import AccessToken
from mcpwrap.as_wrapper.oauth.token_file import Store
from mcpwrap.core.oauth.errors import NotLoggedInError, OAuthError
from mcpwrap.core.oauth.token_store import EARLY_S, StoredLogin, Tokens
from mcpwrap.core.wire.login_pipe import LoginDone
from tests.shared import pace
from tests.unit.as_wrapper.oauth.world import World

AS_ANOTHER_PROCESS = """
import asyncio, ssl, sys, msgspec
from aiohttp import ClientSession
from mcpwrap.as_wrapper.oauth.access_token import AccessToken
from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile

async def main():
    given = msgspec.json.decode(sys.argv[1], type=OAuthSessionFile)
    async with ClientSession() as http:
        print(await AccessToken(given, sys.argv[2], JsonClient(http, lambda _: "")).token(), end="")

asyncio.run(main())
"""


@pytest.fixture
def inside(there: World) -> World:
    """Return the world after a login."""
    assert isinstance(there.log_in(), LoginDone)
    return there


def stored(there: World) -> StoredLogin:
    found = Store(there.given).read()
    assert found
    return found


def make_old(there: World, *, left_s: float = 0.0) -> Tokens:
    """Have the access token expire in `left_s` seconds; return the tokens."""
    before = stored(there)
    assert before.tokens
    old = msgspec.structs.replace(before.tokens, expires_at=time.time() + left_s)
    Store(there.given).write(msgspec.structs.replace(before, tokens=old))
    return old


def test_a_token_that_is_fresh_is_used_as_it_is(inside: World) -> None:
    assert inside.token() == inside.token()
    assert not inside.server.grants("refresh_token")


def test_without_a_login_there_is_no_token(there: World) -> None:
    with pytest.raises(NotLoggedInError, match="not logged in: `mcpwrap login remote`"):
        there.token()


@pytest.mark.parametrize("left_s", [0.0, EARLY_S - 5])
def test_a_token_that_ends_is_renewed_before_it_is_used(inside: World, left_s: float) -> None:
    old = make_old(inside, left_s=left_s)
    assert inside.token() not in {old.access, ""}
    (form,) = inside.server.grants("refresh_token")
    assert form["refresh_token"] == old.refresh
    assert form["resource"] == inside.server.mcp_url
    assert form["client_id"] in inside.server.clients


def test_a_refresh_token_that_rotates_is_kept(inside: World) -> None:
    for _ in range(3):
        make_old(inside)
        inside.token()
    sent = [form["refresh_token"] for form in inside.server.grants("refresh_token")]
    assert len(set(sent)) == 3
    assert not inside.server.revoked


def test_a_refresh_token_that_does_not_rotate_is_kept(inside: World) -> None:
    inside.server.ways.rotates = False
    refresh = {make_old(inside).refresh}
    inside.token()
    refresh.add(make_old(inside).refresh)
    inside.token()
    forms = inside.server.grants("refresh_token")
    assert {form["refresh_token"] for form in forms} == refresh
    assert len(refresh) == 1


def test_sessions_that_renew_at_once_renew_once(inside: World) -> None:
    """Twenty sessions, each with its own connection and lock, and twenty requests of each."""
    make_old(inside)

    async def all_of_them() -> set[str]:
        async with inside.web() as web:
            accesses = [AccessToken(inside.given, inside.server.mcp_url, web) for _ in range(20)]
            return set(await asyncio.gather(*(a.token() for a in accesses for _ in range(20))))

    (token,) = asyncio.run(all_of_them())
    assert token in inside.server.family_by_access
    assert len(inside.server.grants("refresh_token")) == 1
    assert not inside.server.revoked


def test_processes_that_renew_at_once_renew_once(inside: World, tmp_path: Path) -> None:
    """Also as after a restart: they have only the store and its key."""
    make_old(inside)
    (ca := tmp_path / "ca.pem").write_bytes(inside.ca_pem)
    argv = [sys.executable, "-c", AS_ANOTHER_PROCESS]
    argv += [msgspec.json.encode(inside.given).decode(), inside.server.mcp_url]
    env = {"SSL_CERT_FILE": str(ca), "PYTHONPATH": ":".join(filter(None, sys.path))}
    running = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) for _ in range(3)]
    said = {process.communicate(timeout=pace.WAIT_S)[0].decode() for process in running}
    (token,) = said
    assert token in inside.server.family_by_access
    assert len(inside.server.grants("refresh_token")) == 1


def test_a_token_that_the_server_refuses_is_renewed(inside: World) -> None:
    """Also if two requests were sent with it."""

    async def ask() -> tuple[str, set[str]]:
        async with inside.access() as access:
            old = await access.token()
            new = await asyncio.gather(*(access.instead_of(old) for _ in range(2)))
            return old, set(new)

    old, new = asyncio.run(ask())
    assert len(new) == 1
    assert old not in new
    assert len(inside.server.grants("refresh_token")) == 1


def test_a_server_that_refuses_new_tokens_gets_no_more_of_them(inside: World) -> None:
    async def ask() -> None:
        async with inside.access() as access:
            new = await access.instead_of(await access.token())
            await access.instead_of(new)

    with pytest.raises(NotLoggedInError, match="refuses a token that is new"):
        asyncio.run(ask())
    assert len(inside.server.grants("refresh_token")) == 1
    assert inside.token()  # it stays: perhaps the server is wrong


def test_a_login_that_was_revoked_is_forgotten(inside: World) -> None:
    inside.server.revoked.update(inside.server.family_by_refresh.values())
    make_old(inside)
    with pytest.raises(NotLoggedInError, match="revoked"):
        inside.token()
    assert stored(inside).tokens is None
    with pytest.raises(NotLoggedInError, match="not logged in"):
        inside.token()
    assert len(inside.server.grants("refresh_token")) == 1  # there was no second request
    assert isinstance(inside.log_in(), LoginDone)
    assert inside.token()
    assert len(inside.server.clients) == 1  # as the same client


def test_a_client_that_is_unknown_now_is_forgotten_with_its_tokens(inside: World) -> None:
    inside.server.clients.clear()
    make_old(inside)
    with pytest.raises(NotLoggedInError):
        inside.token()
    assert stored(inside).client is None
    assert isinstance(inside.log_in(), LoginDone)


def test_a_login_that_cannot_be_renewed_ends(there: World) -> None:
    there.server.ways.gives_refresh = False
    there.log_in()
    assert there.token()
    make_old(there)
    with pytest.raises(NotLoggedInError, match="cannot be refreshed"):
        there.token()


def test_a_token_without_an_end_is_used_until_it_is_refused(there: World) -> None:
    there.server.ways.expires_in_s = None
    there.log_in()
    assert there.token() == there.token()


def test_while_the_authorization_server_is_away_a_token_that_is_left_is_used(
    inside: World,
) -> None:
    url = inside.server.base.replace("localhost", "127.0.0.2")  # nothing listens there
    away = msgspec.structs.replace(stored(inside), token_endpoint=f"{url}/token")
    Store(inside.given).write(away)
    old = make_old(inside, left_s=EARLY_S - 5)
    assert inside.token() == old.access
    make_old(inside)
    with pytest.raises(OAuthError, match=r"127\.0\.0\.2:[0-9]+ cannot be reached"):
        inside.token()
    assert stored(inside).tokens  # a retry is possible


def test_an_unusable_response_keeps_the_login(inside: World) -> None:
    make_old(inside)
    inside.server.ways.token_answer = (503, b"busy")
    with pytest.raises(OAuthError, match="HTTP 503"):
        inside.token()
    inside.server.ways.token_answer = (400, b'{"error": "invalid_request"}')
    with pytest.raises(OAuthError, match="invalid_request"):
        inside.token()
    inside.server.ways.token_answer = None
    assert inside.token()


def test_a_login_is_valid_for_its_url_only(inside: World) -> None:
    async def ask() -> None:
        async with inside.access("https://elsewhere.example/mcp") as access:
            await access.token()

    with pytest.raises(NotLoggedInError, match="another URL"):
        asyncio.run(ask())


def test_a_cancelled_request_does_not_lose_the_login(inside: World) -> None:
    """The old refresh token is used up, so the new one must be stored."""
    make_old(inside)

    async def ask() -> None:
        async with inside.access() as access:
            task = asyncio.ensure_future(access.token())
            while not access._renewing:  # noqa: ASYNC110 - it has begun
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await access.finish()

    asyncio.run(ask())
    assert inside.token() in inside.server.family_by_access
    assert len(inside.server.grants("refresh_token")) == 1


def test_all_tokens_that_were_seen_can_be_redacted(inside: World) -> None:
    async def ask() -> dict[str, str]:
        async with inside.access() as access:
            await access.instead_of(await access.token())
            await access.token()
            return access.values()

    assert set(asyncio.run(ask()).values()) == inside.server.all_tokens()


# ------------------------------------------------------------------------------------ token store
def test_one_changed_bit_is_detected(inside: World) -> None:
    path = Path(inside.given.store)
    text = path.read_bytes()
    for at in range(0, len(text), 97):
        path.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
        with pytest.raises(
            OAuthError, match=r"cannot be opened.*`mcpwrap login remote` makes a new one"
        ):
            inside.token()
    path.write_bytes(text)
    assert inside.token()


def test_a_store_that_does_not_open_is_replaced_by_a_login(inside: World) -> None:
    Path(inside.given.store).write_text("00")
    assert isinstance(inside.log_in(), LoginDone)
    assert inside.token()


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"key": "A" * 43 + "="}, {"key": "none"}, {"key": "-"}]
)
def test_a_store_opens_for_its_own_server_and_key(inside: World, change: dict[str, str]) -> None:
    with pytest.raises(OAuthError, match="cannot be opened"):
        Store(msgspec.structs.replace(inside.given, **change)).read()


def test_a_store_that_cannot_be_written_is_an_error(inside: World) -> None:
    store = Store(msgspec.structs.replace(inside.given, store="/proc/oauth.sealed"))
    with pytest.raises(OAuthError, match="cannot be stored"):
        store.write(stored(inside))


def test_a_folder_in_place_of_the_store_is_an_error(there: World) -> None:
    Path(there.given.store).mkdir()
    with pytest.raises(OAuthError, match="cannot be read"):
        there.token()


def test_a_lock_that_is_never_released_is_an_error(
    inside: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpwrap.as_wrapper.oauth.token_file._TIMEOUT_S", 0.01)
    make_old(inside)

    async def ask() -> None:
        async with Store(inside.given).lock(), inside.access() as access:
            await access.token()

    with pytest.raises(OAuthError, match="another session is refreshing"):
        asyncio.run(ask())
    assert inside.token()  # after the release
