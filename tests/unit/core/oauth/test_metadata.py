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
def test_the_urls_of_a_servers_metadata(url: str, places: list[str]) -> None:
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
def test_the_urls_of_an_authorization_servers_metadata(issuer: str, places: list[str]) -> None:
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
def test_the_server_that_metadata_is_for(*, resource: str, url: str, is_for: bool) -> None:
    text = json.dumps({"resource": resource, "authorization_servers": ["https://b.example"]})
    if is_for:
        assert metadata.read_resource(text.encode(), url).resource == resource
        return
    with pytest.raises(OAuthError, match="is for another server"):
        metadata.read_resource(text.encode(), url)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b'{"resource": 5}'])
def test_malformed_metadata_is_refused(text: bytes) -> None:
    with pytest.raises(OAuthError, match=r"metadata of a\.example cannot be read"):
        metadata.read_resource(text, "https://a.example/")


def test_a_valid_issuer_is_accepted() -> None:
    text = json.dumps(GOOD).encode()
    found = metadata.read_issuer(text, "https://as.example")
    assert found.token_endpoint == "https://as.example/token"
    assert (
        metadata.read_issuer(text, "https://as.example/") == found
    )  # a slash at the end makes no difference


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("issuer", "https://evil.example", "another authorization server"),
        ("issuer", "https://as.example/t", "another authorization server"),
        ("issuer", None, "cannot be read"),
        ("token_endpoint", "http://as.example/token", "is not https"),
        ("authorization_endpoint", "javascript:alert(1)", "not one that can be used"),
        ("authorization_endpoint", "https://as.example/\x1b", "not one that can be used"),
        ("registration_endpoint", "https://me@as.example/", "not one that can be used"),
        ("revocation_endpoint", "https://as.example/#x", "not one that can be used"),
        ("revocation_endpoint", "https://[x/", "malformed"),
        ("token_endpoint", "https://as.example:0/", "not one that can be used"),
        ("token_endpoint", "https:///token", "not one that can be used"),
        ("code_challenge_methods_supported", ["plain"], "PKCE"),
        ("code_challenge_methods_supported", None, "PKCE"),
    ],
)
def test_an_invalid_issuer_is_refused(field: str, value: object, why: str) -> None:
    with pytest.raises(OAuthError, match=why):
        metadata.read_issuer(json.dumps({**GOOD, field: value}).encode(), "https://as.example")
