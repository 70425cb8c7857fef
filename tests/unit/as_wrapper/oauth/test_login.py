"""OAuth login: the requests to each party, and the responses that are accepted."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from mcpwrap.core.wire.login_pipe import PASTE_PORT, LoginDone, LoginFailed, LoginStart
from tests.unit.as_wrapper.oauth.world import PORT, Change, World, with_given

REDIRECT = f"http://127.0.0.1:{PORT}/callback"


def why(outcome: LoginDone | LoginFailed) -> str:
    assert isinstance(outcome, LoginFailed)
    return outcome.failed


def with_(query: str, **changed: str) -> str:
    """Return the query with some values changed; "" leaves one out."""
    pairs = {**{name: values[0] for name, values in parse_qs(query).items()}, **changed}
    return urlencode({name: value for name, value in pairs.items() if value})


def test_a_login_gives_a_token_that_the_server_takes(there: World) -> None:
    assert there.log_in() == LoginDone(scopes=("tools:read", "tools:write"), expires_in=3600)
    assert there.token() in there.server.family_by_access


def test_the_requests_are_those_of_oauth_2_1(there: World) -> None:
    there.log_in()
    (asked,) = there.server.asked
    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == REDIRECT
    assert asked["resource"] == there.server.mcp_url
    assert asked["scope"] == "tools:read tools:write"
    assert len(asked["state"]) >= 32
    (form,) = there.server.forms
    assert form["resource"] == there.server.mcp_url
    assert form["redirect_uri"] == REDIRECT
    (client,) = there.server.clients.values()
    assert client["redirect_uris"] == [REDIRECT]
    assert client["token_endpoint_auth_method"] == "none"


def test_the_command_never_sees_a_verifier_or_a_token(there: World) -> None:
    there.log_in()
    there.log_out()
    (verifier,) = there.server.verifiers
    assert 43 <= len(verifier) <= 128
    seen = there.seen.decode()
    assert "https://localhost" in seen  # so it is the right text
    for secret in (verifier, *there.server.all_tokens()):
        assert secret not in seen


def test_the_store_is_sealed_and_its_owners_alone(there: World) -> None:
    there.log_in()
    (path,) = [found for found in _files(there) if found.name == "oauth.sealed"]
    assert re.fullmatch(r"[0-9a-f]+\n", path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600
    sealed = bytes.fromhex(path.read_text())
    for token in there.server.all_tokens():
        assert token.encode() not in sealed


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda query: with_(query, state="x" * 64), "does not belong to this login"),
        (lambda query: with_(query, state=""), "does not belong to this login"),
        (lambda query: with_(query, iss="https://evil.example"), "not from the authorization"),
        # The metadata promised one.
        (lambda query: with_(query, iss=""), "not from the authorization"),
        (lambda query: f"{query}&state=x", "more than once"),
        (lambda query: f"{query}&code=x", "more than once"),
        (lambda query: with_(query, code=""), "does not belong to this login"),
        (lambda query: with_(query, code="of-another-login"), "invalid_grant"),
        (lambda query: with_(query, code="", error="access_denied"), "denied in the browser"),
        (lambda query: with_(query, code="", error="<b>"), "it gave no valid reason"),
        (lambda _: "", "did not return a response"),
        (lambda _: "a\u00e9", "did not return a response"),
        (lambda _: "x" * 20_000, "did not return a response"),
    ],
)
def test_an_answer_that_is_not_to_this_login_is_refused(
    there: World, change: Change, expected: str
) -> None:
    assert re.search(expected, why(there.log_in(change)))
    assert isinstance(there.log_in(), LoginDone)  # the same response without the change is accepted


def test_an_answer_is_used_once(there: World) -> None:
    queries: list[str] = []

    def note(query: str) -> str:
        queries.append(query)
        return query

    there.log_in(note)
    assert isinstance(there.log_in(lambda _: queries[0]), LoginFailed)  # the state of another login
    assert len(there.server.forms) == 1  # and the code was not tried


def test_a_code_that_was_stolen_and_used_is_refused(there: World) -> None:
    """A thief has no verifier and is refused, and so is the owner of the used code."""

    def steal(query: str) -> str:
        code = parse_qs(query)["code"][0]
        there.server.codes[code].family = "of the thief"
        return query

    assert "invalid_grant" in why(there.log_in(steal))
    assert isinstance(there.log_in(), LoginDone)


def test_an_answer_without_iss_will_do_where_none_was_promised(there: World) -> None:
    there.server.ways.names_itself = False
    assert isinstance(there.log_in(), LoginDone)
    assert "iss" not in parse_qs(urlsplit(there.visited[0]).query)


def test_another_iss_is_refused_also_where_none_was_promised(there: World) -> None:
    there.server.ways.names_itself = False
    there.server.ways.iss = "https://evil.example"
    assert "not from the authorization server" in why(there.log_in())


def test_a_server_without_pkce_is_refused(there: World) -> None:
    there.server.ways.methods = ("plain",)
    assert "PKCE" in why(there.log_in())
    there.server.ways.methods = ("plain", "S256")
    assert isinstance(there.log_in(), LoginDone)


def test_metadata_of_another_issuer_is_refused(there: World) -> None:
    there.server.ways.issuer = f"{there.server.base}/other"
    assert "another authorization server" in why(there.log_in())


def test_metadata_of_another_server_is_refused(there: World) -> None:
    there.server.ways.resource = "https://bank.example/mcp"
    assert "is for another server" in why(there.log_in())
    there.server.ways.resource = there.server.base  # for all URLs below it
    assert isinstance(there.log_in(), LoginDone)
    assert there.server.asked[-1]["resource"] == there.server.base


def test_metadata_is_found_without_a_challenge(there: World) -> None:
    there.server.ways.says_where = False
    assert isinstance(there.log_in(), LoginDone)


def test_invalid_metadata_is_an_error(there: World) -> None:
    path = "/.well-known/oauth-authorization-server/tenant"
    for text, expected in [("{", "cannot be read"), ("{}", "cannot be read")]:
        there.server.ways.documents[path] = text
        assert expected in why(there.log_in())


# ------------------------------------------------------------------------------- client identity
def test_a_registered_client_is_kept(there: World) -> None:
    there.log_in()
    there.log_in()
    assert len(there.server.clients) == 1
    there.log_in(begin=LoginStart(port=PORT + 1))  # another redirect URI
    assert len(there.server.clients) == 2


def test_a_client_that_was_forgotten_is_registered_anew(there: World) -> None:
    there.log_in()

    def forget(query: str) -> str:
        there.server.clients.clear()
        return query

    assert "invalid_client" in why(there.log_in(forget))
    assert isinstance(there.log_in(), LoginDone)


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_secret_of_a_client_is_sent_as_was_agreed(there: World, method: str) -> None:
    there.server.ways.secret_method = method
    assert isinstance(there.log_in(), LoginDone)


def test_an_unknown_authentication_method_is_refused(there: World) -> None:
    there.server.ways.secret_method = "private_key_jwt"
    assert "unusable data" in why(there.log_in())


def test_a_configured_client_is_used(there: World) -> None:
    there.server.ways.registers = False
    assert "has no automatic client registration" in why(there.log_in())
    there.server.clients["mine"] = {"redirect_uris": [REDIRECT]}
    assert isinstance(with_given(there, client_id="mine").log_in(), LoginDone)


def test_a_document_is_a_client_where_the_server_knows_documents(there: World) -> None:
    document = "https://mcp.example/client.json"
    there.server.clients[document] = {"redirect_uris": [REDIRECT]}
    here = with_given(there, client_id_metadata=document)
    assert isinstance(here.log_in(), LoginDone)
    assert (
        there.server.asked[-1]["client_id"] != document
    )  # the server does not, so the client is registered
    there.server.ways.knows_documents = True
    assert isinstance(here.log_in(), LoginDone)
    assert there.server.asked[-1]["client_id"] == document


# ---------------------------------------------------------------------------------------- scopes
def test_scopes_that_are_configured_are_asked_for_and_no_others(there: World) -> None:
    there.server.ways.scopes_supported = ("offline_access",)
    with_given(there, scopes=("a", "b")).log_in()
    assert there.server.asked[-1]["scope"] == "a b"
    assert "prompt" not in there.server.asked[-1]


def test_offline_access_is_requested_where_it_is_supported(there: World) -> None:
    there.server.ways.scopes_supported = ("offline_access",)
    there.log_in()
    assert there.server.asked[-1]["scope"] == "tools:read tools:write offline_access"
    assert there.server.asked[-1]["prompt"] == "consent"


# ------------------------------------------------------------------------------- pasted URL
def test_the_address_may_be_pasted(there: World) -> None:
    assert isinstance(there.log_in(begin=LoginStart(port=0, paste=True)), LoginDone)
    assert there.server.asked[-1]["redirect_uri"] == f"http://127.0.0.1:{PASTE_PORT}/callback"


@pytest.mark.parametrize("port", [0, 80, 65_536])
def test_an_invalid_port_is_refused(there: World, port: int) -> None:
    assert "port of the redirect is not valid" in why(there.log_in(begin=LoginStart(port=port)))


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"[]"),
        (200, b"{}"),
        (200, b"\xff"),
        (200, b'{"access_token": "a"}'),
        (200, b'{"access_token": "a", "token_type": "mac"}'),
        (200, b'{"access_token": "a b", "token_type": "bearer"}'),
        (200, b'{"access_token": "a", "token_type": "bearer", "expires_in": "soon"}'),
        (200, b'{"access_token": "a", "token_type": "bearer", "refresh_token": ""}'),
        (500, b'{"access_token": "a", "token_type": "bearer"}'),
        (200, b"x" * 2_000_000),
    ],
)
def test_an_answer_without_a_token_is_no_login(there: World, answer: tuple[int, bytes]) -> None:
    there.server.ways.token_answer = answer
    outcome = there.log_in()
    if b'"refresh_token": ""' in answer[1]:  # not a token
        assert outcome == LoginDone(scopes=("tools:read", "tools:write"), renewable=False)
    else:
        assert isinstance(outcome, LoginFailed)


# ----------------------------------------------------------------------------------------- logout
def test_a_logout_revokes_and_forgets(there: World) -> None:
    there.log_in()
    token = there.token()
    assert there.log_out() == LoginDone(revoked=True)
    assert there.server.family_by_access[token] in there.server.revoked
    assert there.log_out() == LoginDone(revoked=False)  # there is nothing left


def test_a_logout_removes_the_login_also_without_revocation(there: World) -> None:
    there.log_in()
    there.server.clients.clear()
    assert there.log_out() == LoginDone(revoked=False)
    assert not [path for path in _files(there) if path.name == "oauth.sealed"]


def _files(there: World) -> list[Path]:
    return sorted(Path(there.given.store).parent.iterdir())
