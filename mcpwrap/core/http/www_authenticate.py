"""`WWW-Authenticate` challenges: Bearer parser, and filter that removes addresses for the agent.

An agent that receives a login address uses it: it requests the address in `resource_metadata`,
registers, and opens a page that the address selects, in front of its user. But authentication to
the server is mcpwrap's task, never the agent's. So the agent receives the error, but no address. It
receives no value with `=` either, since the official SDKs look for `resource_metadata=` within
quotes too. Source: RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1.
"""

import re
from collections.abc import Iterable

import msgspec

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - RFC 9110 section 5.6.2
_QUOTED = r'"(?:[^"\\]|\\.)*"'
# A scheme, a parameter, or both; then a comma or the end.
_ITEM = re.compile(
    rf"[\s,]*(?:(?P<scheme>{_TOKEN})(?=\s+[^\s=]|\s*,|\s*$))?\s*"
    rf"(?:(?P<name>{_TOKEN})\s*=\s*(?P<value>{_QUOTED}|{_TOKEN}))?\s*(?:,|$)"
)
_ESCAPE = re.compile(r"\\(.)")
_MAX_CHALLENGE_CHARS = 4096
_SCHEME = re.compile(_TOKEN)
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|{_TOKEN})')
_HARMLESS_PARAMETERS = frozenset({"realm", "scope", "error", "error_description"})


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """Known parameters of a `WWW-Authenticate: Bearer` challenge; "" for one that is missing."""

    resource_metadata: str = ""  # RFC 9728 section 5.1
    scope: str = ""
    error: str = ""  # RFC 6750 section 3.1


def read(headers: Iterable[str]) -> Challenge:
    """Return the challenge in these headers. Other and malformed schemes are ignored."""
    found: dict[str, str] = {}
    for header in headers:
        for name, value in _bearer(header):
            found.setdefault(name, value)
    return Challenge(
        resource_metadata=found.get("resource_metadata", ""),
        scope=found.get("scope", ""),
        error=found.get("error", ""),
    )


def without_addresses(challenge: str) -> str:
    """Return the scheme and the harmless parameters of a challenge.

    The result is "" if a header cannot hold the challenge, or if it does not begin with a scheme.
    """
    if len(challenge) > _MAX_CHALLENGE_CHARS or not (
        challenge.isascii() and challenge.isprintable()
    ):
        return ""
    scheme = _SCHEME.match(challenge)
    if scheme is None:
        return ""
    found = _PARAMETER.findall(challenge, scheme.end())
    kept = [
        f"{name}={value}"
        for name, value in found
        if name.lower() in _HARMLESS_PARAMETERS and "=" not in value
    ]
    return " ".join([scheme[0], ", ".join(kept)]).rstrip()


def _bearer(header: str) -> Iterable[tuple[str, str]]:
    scheme, at = "", 0
    while at < len(header) and (item := _ITEM.match(header, at)):
        if item.end() == at:
            return
        at = item.end()
        scheme = (item["scheme"] or scheme).lower()
        if scheme == "bearer" and item["name"]:
            yield item["name"].lower(), _plain(item["value"])


def _plain(value: str) -> str:
    return _ESCAPE.sub(r"\1", value[1:-1]) if value.startswith('"') else value
