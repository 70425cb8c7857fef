"""URIs (RFC 3986): check that all servers read the same one, and removal of parts not for logs."""

import ipaddress
import re

# Schemes whose parsers normalise different spellings. Source: WHATWG URL, "special scheme".
_SPECIAL = frozenset({"file", "ftp", "http", "https", "ws", "wss"})
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
# Escapes of characters that need none (section 2.3) or that end a part once decoded, and parts of a
# path that are removed (5.2.4).
_NEEDLESS = re.compile(r"%(?:2[def]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5[cf]|7e|00)", re.IGNORECASE)
_DOTS = re.compile(r"/\.\.?(?:[/?#]|$)")
_AUTHORITY = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:]+\])(?::[1-9][0-9]{0,4})?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DEFAULT_PORT = re.compile(r"(?:https?|wss?|ftp)://[^/?#]*:(?:80|443|21)?(?:[/?#]|$)")


def is_normal(uri: str) -> bool:
    """Return whether a URI is as parsers write it: a server with a parser compares and opens it so.

    Text without a scheme is not a URI, and no URI has invisible characters, spaces or backslashes.
    """
    scheme = _SCHEME.match(uri)
    if scheme is None or not uri.isprintable() or " " in uri or "\\" in uri:
        return False
    if _NEEDLESS.search(uri.partition("?")[0]) or _DOTS.search(uri) or _DEFAULT_PORT.match(uri):
        return False
    return scheme[0][:-1] not in _SPECIAL or _has_normal_host(scheme[0], uri[scheme.end() :])


def _has_normal_host(scheme: str, rest: str) -> bool:
    authority, slash, _ = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not slash:
        return False
    if scheme == "file:":
        return not authority and not any(mark in rest[2:] for mark in ("//", "?", "#"))
    host = _AUTHORITY.fullmatch(authority)
    return host is not None and _is_normal_host(host[1])


def _is_normal_host(host: str) -> bool:
    """Return whether it is a name, or an address in normal form. Source: WHATWG URL, 3.5."""
    if not host.startswith("["):
        last = host.rpartition(".")[2]
        return last != "" and (not _NUMBER.fullmatch(last) or _is_address(host))
    return _is_address(host[1:-1])


def _is_address(text: str) -> bool:
    try:
        return str(ipaddress.ip_address(text)) == text
    except ValueError:
        return False


def bare(text: str) -> str:
    """Return a URI without user, password, query and fragment; any other text as it is."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text
    rest = rest.partition("?")[0].partition("#")[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"
