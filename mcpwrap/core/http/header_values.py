"""Encoding of values in MCP's HTTP headers: printable ASCII, and base64 for all else."""

import base64
import re

# RFC 9110 section 5.6.2.
FIELD_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PLAIN = re.compile(r"[\x20-\x7e]*")
_MARKED = re.compile(r"=\?base64\?.*\?=")


def is_plain(value: str) -> bool:
    """Say whether every reader of the header finds this value: ASCII, no space at the ends."""
    return value == value.strip(" ") and _PLAIN.fullmatch(value) is not None


def encoded(value: str) -> str:
    """Return a value as it stands in `Mcp-Name` and its like (2026-07-28, SEP-2243)."""
    if is_plain(value) and not _MARKED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
