"""OAuth metadata discovery: of a server (RFC 9728), then of its authorization server (RFC 8414)."""

import re
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from mcpwrap.core.oauth.errors import OAuthError

T = TypeVar("T")
_RESOURCE = "/.well-known/oauth-protected-resource"
_OAUTH = "/.well-known/oauth-authorization-server"
_OPENID = "/.well-known/openid-configuration"
_PLAIN = re.compile(r"[!-~]{1,4096}")


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of protected resource metadata (RFC 9728 section 2) that mcpwrap uses."""

    resource: str
    authorization_servers: list[str] | None = None
    scopes_supported: list[str] | None = None


class Issuer(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of authorization server metadata that mcpwrap uses.

    Sources: RFC 8414 section 2, RFC 9207 section 3 and client id metadata.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    client_id_metadata_document_supported: bool | None = None

    def expect_sound(self, asked: str) -> None:
        """Refuse metadata of another issuer, with a URL that is not https, or without PKCE.

        Raises:
            OAuthError: with the reason. RFC 8414 section 3.3; MCP requires S256 to be listed.
        """
        if self.issuer.removesuffix("/") != asked.removesuffix("/"):
            raise OAuthError(f"the metadata of {host(asked)} names another authorization server")
        for url in (
            self.authorization_endpoint,
            self.token_endpoint,
            self.registration_endpoint,
            self.revocation_endpoint,
        ):
            if url is not None:
                expect_https(url)
        if "S256" not in (self.code_challenge_methods_supported or ()):
            raise OAuthError(f"the metadata of {host(asked)} does not list PKCE with S256")


def resource_urls(url: str) -> list[str]:
    """Return the URLs of a server's metadata, most specific first, for a server that named none."""
    origin, path = _cut(url)
    exact = [f"{origin}{_RESOURCE}{path}"] if path else []
    return [*exact, f"{origin}{_RESOURCE}"]


def issuer_urls(issuer: str) -> list[str]:
    """Return the URLs of an authorization server's metadata. Source: MCP, authorization."""
    origin, path = _cut(issuer)
    if not path:
        return [f"{origin}{_OAUTH}", f"{origin}{_OPENID}"]
    return [f"{origin}{_OAUTH}{path}", f"{origin}{_OPENID}{path}", f"{origin}{path}{_OPENID}"]


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL."""
    return _cut(url)[0]


def host(url: str) -> str:
    """Return the host of a URL, with its port if the URL has one."""
    return urlsplit(url).netloc


def expect_https(url: str) -> None:
    """Refuse a URL that is malformed, not https, or has a fragment or a user name.

    Raises:
        OAuthError: with the reason. The text has no more of the URL than its host.
    """
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise OAuthError("a URL of the authorization server is malformed") from None
    if not _PLAIN.fullmatch(url) or not has_host or parts.fragment or "@" in parts.netloc:
        raise OAuthError("a URL of the authorization server is not one that can be used")
    if parts.scheme != "https":
        raise OAuthError(f"a URL of {parts.netloc} is not https")


def read_resource(text: bytes, url: str) -> Resource:
    """Parse the metadata of the server at `url`.

    Raises:
        OAuthError: it is malformed, or for another server (RFC 9728 section 3.3).
    """
    found = _decode(text, Resource, host(url))
    expect_https(found.resource)
    if not _is_for(found.resource, url):
        raise OAuthError(f"the metadata of {host(url)} is for another server")
    return found


def read_issuer(text: bytes, asked: str) -> Issuer:
    """Parse the metadata of the authorization server `asked`.

    Raises:
        OAuthError: it is malformed, or fails `Issuer.expect_sound`.
    """
    found = _decode(text, Issuer, host(asked))
    found.expect_sound(asked)
    return found


def _is_for(resource: str, url: str) -> bool:
    """Return whether a resource is the URL, or a folder above it."""
    (origin, path), (own_origin, own_path) = _cut(resource), _cut(url)
    return origin == own_origin and f"{own_path}/".startswith(f"{path}/")


def _cut(url: str) -> tuple[str, str]:
    """Return the origin of a URL, and its path without a slash at the end."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}".removesuffix(":443"), parts.path.rstrip("/")


def _decode(text: bytes, kind: type[T], whose: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise OAuthError(f"the metadata of {whose} cannot be read") from None
