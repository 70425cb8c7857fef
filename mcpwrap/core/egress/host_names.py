"""Host names that servers request: validation, and printable form of any other text."""

import re

# RFC 1035 section 3.1: 255 octets, among them the first length and the root.
MAX_NAME_CHARS = 253
# RFC 1123 section 2.1, and the underscore, which names of services and of some hosts have.
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# `127.1`, `0x7f.1` and `2130706433` are addresses to some resolvers. Source: URL Standard, section
# 3.5, "ends in a number".
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def is_host_name(untrusted_name: str) -> bool:
    """Return whether this is a host name: lower case, no dot at the end, not an address."""
    labels = untrusted_name.split(".")
    return (
        len(untrusted_name) <= MAX_NAME_CHARS
        and all(map(_LABEL.fullmatch, labels))
        and not _NUMBER.fullmatch(labels[-1])
    )


def shown(untrusted: bytes) -> str:
    r"""Return the text as printable ASCII, cut to `MAX_NAME_CHARS`; `\x1b` is an escape."""
    text = "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else f"\\x{b:02x}" for b in untrusted)
    return text[:MAX_NAME_CHARS]
