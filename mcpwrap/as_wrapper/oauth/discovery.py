"""Discovery of a server's authorization server. Source: MCP, authorization."""

from dataclasses import dataclass

from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.core.oauth import metadata
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.oauth.metadata import Issuer, Resource, expect_https, host

_OFFLINE = "offline_access"  # OpenID Connect Core section 11: else there may be no refresh token


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """Resource that tokens are for, its authorization server, and the scopes that it wants."""

    resource: str
    issuer: Issuer
    scopes: tuple[str, ...]

    def to_ask_for(self, configured: tuple[str, ...]) -> tuple[str, ...]:
        """Return the scopes of a login. What is configured is asked for as it is."""
        scopes = configured or self.scopes
        if scopes and not configured and _OFFLINE in (self.issuer.scopes_supported or ()):
            scopes = tuple(dict.fromkeys([*scopes, _OFFLINE]))
        return scopes

    def prompt(self, scopes: tuple[str, ...]) -> str:
        """Return what OpenID Connect wants to be said where that scope is asked for."""
        return "consent" if _OFFLINE in scopes else ""


async def discover(web: JsonClient, url: str) -> DiscoveryResult:
    """Ask the server at `url`, and then whom it names.

    Raises:
        OAuthError: one of them says nothing that can be used.
    """
    said = await web.challenge(url)
    resource = await _resource(web, url, said.resource_metadata)
    if resource is None:  # as servers of before 2025-06-18, which are their own
        resource = Resource(resource=url)
    servers = resource.authorization_servers or [metadata.origin_of(url)]
    scopes = said.scope.split() or resource.scopes_supported or []
    return DiscoveryResult(resource.resource, await _issuer(web, servers[0]), tuple(scopes))


async def _resource(web: JsonClient, url: str, told: str) -> Resource | None:
    for place in [told] if told else metadata.resource_urls(url):
        reply = await web.get(place)
        if reply.is_good:
            return metadata.read_resource(reply.text, url)
    if told:
        raise OAuthError(f"{host(url)} does not describe itself where it says that it does")
    return None


async def _issuer(web: JsonClient, issuer: str) -> Issuer:
    expect_https(issuer)
    for place in metadata.issuer_urls(issuer):
        reply = await web.get(place)
        if reply.is_good:
            return metadata.read_issuer(reply.text, issuer)
    raise OAuthError(f"{host(issuer)} does not describe itself as an authorization server")
