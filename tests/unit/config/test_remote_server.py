"""Remote servers with a login: the `oauth` table."""

import pytest

from mcpwrap.config.model import ConfigError, RemoteServer, Server
from mcpwrap.config.parse import parse
from mcpwrap.core.wire.server_files import OAuth
from tests.unit.config.places import HEADERS, OURS, REMOTE, REMOTE_OURS, Place, source


def only(place: Place, line: str) -> Server:
    return parse([source(place.with_line(line))]).servers["a"]


@pytest.mark.parametrize(
    ("line", "oauth"),
    [
        ("", None),
        ("oauth = false", None),
        ("oauth = true", OAuth()),
        ("oauth = {}", OAuth()),
        ("oauth = { scopes = ['a:b', 'https://x/y!'] }", OAuth(scopes=("a:b", "https://x/y!"))),
        ("oauth = { client_id = 'a b' }", OAuth(client_id="a b")),
        (
            "oauth = { client_id_metadata = 'https://x.example/c.json' }",
            OAuth(client_id_metadata="https://x.example/c.json"),
        ),
    ],
)
def test_how_a_person_logs_in(line: str, oauth: OAuth | None) -> None:
    server = only(REMOTE_OURS, line)
    assert isinstance(server.runs, RemoteServer)
    assert server.runs.oauth == oauth
    assert server.has_oauth() == (oauth is not None)
    assert server.secrets() == ({"MCPWRAP_OAUTH_KEY"} if oauth else set())


@pytest.mark.parametrize(
    ("place", "line", "problem"),
    [
        (OURS, "oauth = true", "is only valid for a server with `url`"),
        (REMOTE, "oauth = true", "no such setting"),
        (REMOTE_OURS, "oauth = 1", "a number where true or false belongs"),
        (REMOTE_OURS, "oauth = 'yes'", "text where true or false belongs"),
        (REMOTE_OURS, "oauth = { scope = 'a' }", "no such setting"),
        (REMOTE_OURS, "oauth = { scopes = 'a' }", "text where a list"),
        (REMOTE_OURS, "oauth = { scopes = ['a b'] }", "is not a valid scope"),
        (REMOTE_OURS, "oauth = { scopes = [''] }", "is not a valid scope"),
        (REMOTE_OURS, "oauth = { client_id = '' }", "not a client id"),
        (REMOTE_OURS, "oauth = { client_id = 'é' }", "not a client id"),
        (REMOTE_OURS, "oauth = { client_id_metadata = 'http://x.example/c' }", "not an https"),
        (REMOTE_OURS, "oauth = { client_id_metadata = 'https://x.example/' }", "has no path"),
        (
            REMOTE_OURS,
            "oauth = { client_id = 'a', client_id_metadata = 'https://x.example/c' }",
            "`client_id` is set, too",
        ),
        (HEADERS, "authorization = 'x'\n[mcp_servers.a.mcpwrap]\noauth = true", "sets an Auth"),
        (
            REMOTE,
            "bearer_token_env_var = 'K'\n[mcp_servers.a.mcpwrap]\noauth = true",
            "sets an Authorization header",
        ),
    ],
)
def test_what_is_wrong_is_said(place: Place, line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        only(place, line)
