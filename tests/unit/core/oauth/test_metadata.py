"""OAuth metadata of servers and authorization servers: its URLs, and refusals."""

import json

import pytest

from mcpwrap.core.oauth import metadata
from mcpwrap.core.oauth.errors import OAuthError

GOOD: dict[str, object] = {
    "issuer": "https://as.example",
    "authorization_endpoint": "https://as.example/authorize",
    "token_endpoint": "https://as.example/token",
    "registration_endpoint": None,
    "code_challenge_methods_supported": ["S256"],
    "something_else": {},
}


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("https://a.example", ["/.well-known/oauth-protected-resource"]),
        ("https://a.example/", ["/.well-known/oauth-protected-resource"]),
        (
            "https://a.example:443/mcp/x",
            [
                "/.well-known/oauth-protected-resource/mcp/x",
                "/.well-known/oauth-protected-resource",
            ],
        ),
    ],
)
def test_where_a_server_describes_itself(url: str, places: list[str]) -> None:
    assert metadata.resource_urls(url) == [f"https://a.example{place}" for place in places]


@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        (
            "https://a.example/",
            ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
        ),
        (
            "https://a.example/t",
            [
                "/.well-known/oauth-authorization-server/t",
                "/.well-known/openid-configuration/t",
                "/t/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_where_an_authorization_server_describes_itself(issuer: str, places: list[str]) -> None:
    assert metadata.issuer_urls(issuer) == [f"https://a.example{place}" for place in places]


@pytest.mark.parametrize(
    ("resource", "url", "is_for"),
    [
        ("https://a.example/mcp", "https://a.example/mcp", True),
        ("https://a.example/mcp/", "https://a.example/mcp", True),
        ("https://A.example:443/mcp", "https://a.example/mcp", True),
        ("https://a.example", "https://a.example/mcp", True),
        ("https://a.example/mcp", "https://a.example/mcp/x", True),
        ("https://a.example/mc", "https://a.example/mcp", False),
        ("https://a.example/mcp/x", "https://a.example/mcp", False),
        ("https://b.example/mcp", "https://a.example/mcp", False),
        ("https://a.example:8443/mcp", "https://a.example/mcp", False),
    ],
)
def test_whom_a_description_is_of(*, resource: str, url: str, is_for: bool) -> None:
    text = json.dumps({"resource": resource, "authorization_servers": ["https://b.example"]})
    if is_for:
        assert metadata.read_resource(text.encode(), url).resource == resource
        return
    with pytest.raises(OAuthError, match="another server than itself"):
        metadata.read_resource(text.encode(), url)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b'{"resource": 5}'])
def test_what_describes_nothing_is_refused(text: bytes) -> None:
    with pytest.raises(OAuthError, match=r"a\.example describes itself in a way"):
        metadata.read_resource(text, "https://a.example/")


def test_a_good_issuer_is_taken() -> None:
    text = json.dumps(GOOD).encode()
    found = metadata.read_issuer(text, "https://as.example")
    assert found.token_endpoint == "https://as.example/token"
    assert metadata.read_issuer(text, "https://as.example/") == found  # a slash is no other


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("issuer", "https://evil.example", "another authorization server"),
        ("issuer", "https://as.example/t", "another authorization server"),
        ("issuer", None, "cannot be read"),
        ("token_endpoint", "http://as.example/token", "not reached by https"),
        ("authorization_endpoint", "javascript:alert(1)", "no URL"),
        ("authorization_endpoint", "https://as.example/\x1b", "no URL"),
        ("registration_endpoint", "https://me@as.example/", "no URL"),
        ("revocation_endpoint", "https://as.example/#x", "no URL"),
        ("revocation_endpoint", "https://[x/", "no URL"),
        ("token_endpoint", "https://as.example:0/", "no URL"),
        ("token_endpoint", "https:///token", "no URL"),
        ("code_challenge_methods_supported", ["plain"], "PKCE"),
        ("code_challenge_methods_supported", None, "PKCE"),
    ],
)
def test_an_issuer_that_is_not_as_it_has_to_be(field: str, value: object, why: str) -> None:
    with pytest.raises(OAuthError, match=why):
        metadata.read_issuer(json.dumps({**GOOD, field: value}).encode(), "https://as.example")
