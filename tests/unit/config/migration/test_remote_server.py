"""Conversion of a URL in an entry into a proposed server."""

import pytest

from mcpwrap.config.agent_files.transport import HttpTransport
from mcpwrap.config.migration.draft import EntryContext, MigrationError
from mcpwrap.config.migration.remote_server import draft
from mcpwrap.config.model import Destination, RemoteServer, SecretRef
from mcpwrap.core.wire.server_files import OAuth

URL = "https://x.example/mcp"
OWN = Destination("x.example", 443, with_subdomains=False)
AROUND = EntryContext(
    account="alice", home="/home/alice", variables={"TOKEN": "abc", "HOST": "x.example"}
)


@pytest.mark.parametrize(
    ("launch", "entry", "expected", "value_by_key", "missing"),
    [
        (HttpTransport(URL), {}, RemoteServer(url=URL), {}, ()),
        (HttpTransport("https://${HOST}/mcp"), {}, RemoteServer(url=URL), {}, ()),
        (
            HttpTransport(URL, {"Authorization": "Bearer s3cr3t", "X-Tenant": "ours"}),
            {},
            RemoteServer(url=URL, bearer_token_env_var="TOKEN", headers={"X-Tenant": ("ours",)}),
            {"TOKEN": "s3cr3t"},
            (),
        ),
        (
            HttpTransport(URL, {"Authorization": "Basic s3cr3t"}),
            {},
            RemoteServer(url=URL, headers={"Authorization": ("Basic ", SecretRef("TOKEN"))}),
            {"TOKEN": "s3cr3t"},
            (),
        ),
        (
            HttpTransport(URL, {}, ("bearer_token_env_var",)),
            {"bearer_token_env_var": "TOKEN"},
            RemoteServer(url=URL, bearer_token_env_var="TOKEN"),
            {"TOKEN": "abc"},
            (),
        ),
        (
            HttpTransport(URL, {}, ("bearer_token_env_var", "env_http_headers")),
            {"bearer_token_env_var": "NONE", "env_http_headers": {"X-Key": "TOKEN"}},
            RemoteServer(
                url=URL, bearer_token_env_var="NONE", headers={"X-Key": (SecretRef("TOKEN"),)}
            ),
            {"TOKEN": "abc"},
            ("NONE",),
        ),
        (HttpTransport(URL, {}, ("oauth",)), {"oauth": {}}, RemoteServer(url=URL), {}, ()),
        (HttpTransport(URL, {}, ("oauth",)), {"oauth": False}, RemoteServer(url=URL), {}, ()),
        (
            HttpTransport(URL, {}, ("auth",)),
            {"auth": {"CLIENT_ID": "x", "scopes": ["a", "b"]}},
            RemoteServer(url=URL, oauth=OAuth(client_id="x", scopes=("a", "b"))),
            {},
            (),
        ),
        (
            HttpTransport(URL, {}, ("scopes",)),
            {"scopes": "a b"},
            RemoteServer(url=URL, oauth=OAuth(scopes=("a", "b"))),
            {},
            (),
        ),
    ],
)
def test_a_url(
    launch: HttpTransport,
    entry: dict[str, object],
    expected: RemoteServer,
    value_by_key: dict[str, str],
    missing: tuple[str, ...],
) -> None:
    found = draft("s", launch, entry, AROUND)
    assert found.server.runs == expected
    assert (found.value_by_key, found.missing) == (value_by_key, missing)
    assert (found.server.agents, found.server.egress) == (("alice",), (OWN,))
    assert bool(found.notes) is (not expected.bearer_token_env_var and not expected.headers)


@pytest.mark.parametrize(
    ("launch", "entry", "why"),
    [
        (HttpTransport("http://localhost:3000/"), {}, "mcpwrap does not accept its URL"),
        (HttpTransport("https://x.example/?api_key=s3cr3t"), {}, "its URL holds a secret"),
        (HttpTransport("https://u:s3cr3t@x.example/"), {}, "its URL holds a secret"),
        (
            HttpTransport("https://s3cr3t@x.example/"),
            {},
            "its URL holds a secret",
        ),  # and it is not quoted
        (HttpTransport("http://s3cr3t@x.example"), {}, "its URL holds a secret"),
        (HttpTransport("https://${NONE}/"), {}, "only the agent can resolve"),
        (
            HttpTransport(URL, {}, ("headersHelper",)),
            {},
            "`headersHelper` changes how it is reached",
        ),
        (
            HttpTransport(URL, {}, ("auth",)),
            {"auth": {"CLIENT_ID": "x", "CLIENT_SECRET": "s3cr3t"}},
            "its OAuth client has a secret",
        ),
    ],
)
def test_what_is_refused(launch: HttpTransport, entry: dict[str, object], why: str) -> None:
    with pytest.raises(MigrationError) as refusal:
        draft("s", launch, entry, AROUND)
    assert why in str(refusal.value)
    assert "s3cr3t" not in str(refusal.value)
