"""Filter of a remote server's `WWW-Authenticate` challenge, before an agent receives it.

An agent that receives a login address goes there: it requests the address in `resource_metadata`,
registers, and opens a page of that address's choice in front of its user. But authentication to the
server is mcpwrap's task, never the agent's. So the agent receives the error, and no address: nor a
value with `=`, since the official SDKs look for `resource_metadata=` within quotes too. Source: RFC
9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1.
"""

import re

_MAX_CHARS = 4096
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME = re.compile(_WORD)
_PARAMETER = re.compile(rf'({_WORD})[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|{_WORD})')
_KEPT = frozenset({"realm", "scope", "error", "error_description"})


def without_addresses(challenge: str) -> str:
    """Return a challenge with what nobody follows; "" if no header can hold it, or it is none."""
    if len(challenge) > _MAX_CHARS or not (challenge.isascii() and challenge.isprintable()):
        return ""
    scheme = _SCHEME.match(challenge)
    if scheme is None:
        return ""
    found = _PARAMETER.findall(challenge, scheme.end())
    kept = [
        f"{name}={value}" for name, value in found if name.lower() in _KEPT and "=" not in value
    ]
    return " ".join([scheme[0], ", ".join(kept)]).rstrip()
