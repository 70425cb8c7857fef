"""Reason and remedy for each egress refusal, and the configuration entry that would allow it.

Each rule has one line. An operator pastes the entry into the configuration, and a server chose its
content. So it is an entry that config/value_parsers.py accepts, and it allows only what was
requested: no `*`, no group.
"""

import re
from ipaddress import IPv6Address, ip_address

from mcpwrap.core.wire.sni_front_file import ADDRESSES

_LOOPBACK = IPv6Address("::1")
# By rule: reason and remedy. {detail} is a request, a name or an address: see `EgressEvent`.
_ADVICE = {
    "allowed": ("", ""),
    "opened": ("a connection that is still open", ""),
    "no-answer": ("allowed, but the host did not answer ({detail})", "check that the host is up"),
    "not-served": ("Squid could not serve it ({detail})", "check the certificate of the host"),
    "asked": (
        "the name was looked up, and no connection followed",
        "a program that refuses loopback addresses needs `transparent = false`",
    ),
    "host-not-allowed": ("the host is not in `egress`", "add it to `egress`"),
    "port-not-allowed": ("the host is in `egress`, but not with this port", "add it to `egress`"),
    "plain-http": ("not https", "use https; for a host without https, use `direct`"),
    "private-address": (
        "the name resolves to {detail}, which is not a public address",
        "if that is wanted, add the address to `direct`",
    ),
    "sni-not-allowed": (
        "TLS in the tunnel requested {detail}, not the host of the tunnel",
        "the name in TLS must be the host's name; if not, list that name too",
    ),
    "nested-connect": ("a tunnel inside the tunnel", ""),
    "host-not-in-tunnel": ("a request in a tunnel to another host", ""),
    "ambiguous-path": ("a path that can be read in two ways (`..`, `//`, `%2f`, `%c0%ae`)", ""),
    "no-request-rule": ("no entry of `requests` has {detail}", "add it to `requests`"),
    "manager": ("a request to Squid's own management pages", ""),
    "no-sni": (
        "TLS without a server name, so the host is unknown",
        "make the program use the proxy in HTTPS_PROXY",
    ),
    "not-tls": (
        "not TLS on port 443, so the host is unknown",
        "make the program use the proxy in HTTPS_PROXY, or https",
    ),
    "no-proxy": ("{detail}", "see `mcpwrap doctor`"),
    "closed-early": ("closed {detail}", ""),
    "too-many": ("over 256 connections at a time", ""),
    "dns": ("a query to a DNS resolver", "not needed: the proxy resolves names"),
    "past-squid": ("a connection past the proxy", "if that is wanted, add it to `direct`"),
    "not-tcp": ("neither TCP nor through the proxy", ""),
}
_UNKNOWN = ("refused", "")
_IS_ADDRESS = ("an address, but `egress` lists names", "if that is wanted, add it to `direct`")
_IS_NO_HOST = ("not a host name", "")
# For log lines without a detail.
_NO_DETAIL = {"private-address": "an address", "sni-not-allowed": "no host"}
# These have a remedy only if the request can be written as an entry.
_BY_ENTRY_ALONE = {"host-not-allowed", "port-not-allowed", "past-squid"}
_HTTPS = "443"
_MAX_HOST_CHARS = 253
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = rf"(?:{_LABEL}\.)+(?=[a-z]){_LABEL}"
# A method by its name: a server can send the method `*`, and an entry with that allows all.
_REQUEST = re.compile(
    rf"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (?P<host>{_HOST})"
    r"(?!.*(?:\.\.|//))/[A-Za-z0-9._~!$&'()+,=:@/-]*"
)
_PORT = re.compile(r"[1-9][0-9]{0,4}")


def advice(rule: str, place: str, detail: str) -> tuple[str, str, str]:
    """Return reason, remedy, and the entry that would allow it: a key and a value, or ""."""
    allows = _entry(rule, place, detail)
    why, fix = _ADVICE.get(rule, _UNKNOWN)
    if rule == "host-not-allowed" and allows.startswith("direct "):
        why, fix = _IS_ADDRESS
    elif rule == "asked" and detail:
        why, fix = _IS_NO_HOST
    elif rule in _BY_ENTRY_ALONE and not allows:
        fix = ""
    return why.format(detail=detail or _NO_DETAIL.get(rule, "")).rstrip(), fix, allows


def _entry(rule: str, place: str, detail: str) -> str:
    host, _, port = (detail if rule == "past-squid" else place).rpartition(":")
    match rule:
        case "host-not-allowed" | "port-not-allowed":
            return _egress(host, port) or _direct(host, port)
        case "private-address":
            return _direct(f"[{detail}]" if ":" in detail else detail, port)
        case "past-squid":
            return _direct(host, port)
        case "no-request-rule":
            return _request(detail)
        case _:
            return ""


def _egress(host: str, port: str) -> str:
    if not re.fullmatch(_HOST, host) or len(host) > _MAX_HOST_CHARS or not _is_port(port):
        return ""
    return f"egress {host}" if port == _HTTPS else f"egress {host}:{port}"


def _direct(host: str, port: str) -> str:
    """Return the entry for an address in its normal form.

    An unspecified or multicast address, a wrapper's address and IPv4 as IPv6 have no entry.
    """
    is_v6 = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(host[1:-1] if is_v6 else host)
    except ValueError:
        return ""
    if (address.version == 6) != is_v6 or "%" in host or not _is_port(port):
        return ""
    # Not `is_loopback`: since Python 3.13 it is that of an IPv4 address in an IPv6 one.
    is_v4_as_v6 = is_v6 and int(address) < 1 << 48 and address != _LOOPBACK
    if is_v4_as_v6 or address in ADDRESSES or address.is_unspecified or address.is_multicast:
        return ""
    return f"direct [{address}]:{port}" if is_v6 else f"direct {address}:{port}"


def _request(request: str) -> str:
    found = _REQUEST.fullmatch(request)
    return f"requests {request}" if found and len(found["host"]) <= _MAX_HOST_CHARS else ""


def _is_port(text: str) -> bool:
    return _PORT.fullmatch(text) is not None and int(text) <= 65_535
