"""Encoding of values in MCP's HTTP headers: printable ASCII, and base64 for other values."""

import base64
import re

# RFC 9110 section 5.6.2.
FIELD_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PLAIN = re.compile(r"[\x20-\x7e]*")
_MARKED = re.compile(r"=\?base64\?.*\?=")


def is_plain(value: str) -> bool:
    """Return whether each reader of the header gets this value: ASCII, no space at the ends."""
    return value == value.strip(" ") and _PLAIN.fullmatch(value) is not None


def encoded(value: str) -> str:
    """Encode a value for `Mcp-Name` and similar headers (2026-07-28, SEP-2243)."""
    if is_plain(value) and not _MARKED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
