"""Discovery of the authorization server for a server. Source: MCP, authorization."""

from dataclasses import dataclass

from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.core.oauth import metadata
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.oauth.metadata import Issuer, Resource, expect_https, host

_OFFLINE = (
    "offline_access"  # OpenID Connect Core section 11: without it there may be no refresh token
)


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """Resource that tokens are for, its authorization server, and the scopes it requires."""

    resource: str
    issuer: Issuer
    scopes: tuple[str, ...]

    def to_ask_for(self, configured: tuple[str, ...]) -> tuple[str, ...]:
        """Return the scopes of a login. Configured ones are requested unchanged."""
        scopes = configured or self.scopes
        if scopes and not configured and _OFFLINE in (self.issuer.scopes_supported or ()):
            scopes = tuple(dict.fromkeys([*scopes, _OFFLINE]))
        return scopes

    def prompt(self, scopes: tuple[str, ...]) -> str:
        """Return the `prompt` that OpenID Connect requires with the scope offline_access."""
        return "consent" if _OFFLINE in scopes else ""


async def discover(web: JsonClient, url: str) -> DiscoveryResult:
    """Query the server at `url`, and then the authorization server that it names.

    Raises:
        OAuthError: one of them has no usable metadata.
    """
    challenge = await web.challenge(url)
    resource = await _resource(web, url, challenge.resource_metadata)
    if resource is None:  # servers before 2025-06-18 are their own authorization servers
        resource = Resource(resource=url)
    servers = resource.authorization_servers or [metadata.origin_of(url)]
    scopes = challenge.scope.split() or resource.scopes_supported or []
    return DiscoveryResult(resource.resource, await _issuer(web, servers[0]), tuple(scopes))


async def _resource(web: JsonClient, url: str, named_url: str) -> Resource | None:
    for candidate in [named_url] if named_url else metadata.resource_urls(url):
        reply = await web.get(candidate)
        if reply.is_good:
            return metadata.read_resource(reply.text, url)
    if named_url:
        raise OAuthError(
            f"{host(url)} has no metadata at the URL that it names [E-OAUTH-DISCOVERY]"
        )
    return None


async def _issuer(web: JsonClient, issuer: str) -> Issuer:
    expect_https(issuer)
    for candidate in metadata.issuer_urls(issuer):
        reply = await web.get(candidate)
        if reply.is_good:
            return metadata.read_issuer(reply.text, issuer)
    raise OAuthError(
        f"{host(issuer)} has no metadata of an authorization server [E-OAUTH-DISCOVERY]"
    )
