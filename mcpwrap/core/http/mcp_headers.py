"""Check that the MCP headers of a request of 2026-07-28 agree with its body.

An intermediary may decide by the headers alone; the server decides by the body. Source: MCP
2026-07-28, transports, "Standard Headers" (SEP-2243).
"""

import binascii
from dataclasses import dataclass

from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import INVALID_PARAMS, Request
from mcpwrap.core.protocol.methods import PROTOCOL_VERSION

HEADER_MISMATCH = -32020
MODERN = "2026-07-28"
HANDSHAKE_VERSIONS = frozenset(
    {"2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
)
DEFAULT_VERSION = "2025-03-26"  # of a request without the header
VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_NAME_KEY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_OPENER, _CLOSER = "=?base64?", "?="


@dataclass(frozen=True, slots=True)
class HeaderMismatch:
    """Error code and reason of a refused request."""

    code: int
    why: str


def header_mismatch(request: Request, head: RequestHead) -> HeaderMismatch | None:
    """Return the error of a request's envelope and headers; None if they agree."""
    for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
        if len(head.every(name)) > 1:
            return _mismatch(f"{name} is given more than once")
    meta = request.params.get("_meta")
    keys = meta.keys() if isinstance(meta, dict) else frozenset[str]()
    if missing := [key for key in (PROTOCOL_VERSION, _CAPABILITIES) if key not in keys]:
        return HeaderMismatch(INVALID_PARAMS, f"params._meta has no {' and no '.join(missing)}")
    version = meta[PROTOCOL_VERSION] if isinstance(meta, dict) else None
    if not isinstance(version, str) or head.every(VERSION_HEADER) != [version]:
        return _mismatch(f"{VERSION_HEADER} is not the version in params._meta")
    if head.every(METHOD_HEADER) != [request.method]:
        return _mismatch(f"{METHOD_HEADER} is not the method")
    return _name_mismatch(request, head)


def _name_mismatch(request: Request, head: RequestHead) -> HeaderMismatch | None:
    key = _NAME_KEY.get(request.method, "")
    value: Json = request.params.get(key)
    if value is None:
        return None  # the server itself reports what is missing
    if [decoded(name) for name in head.every(NAME_HEADER)] != [value]:
        return _mismatch(f"{NAME_HEADER} is not params.{key}")
    return None


def _mismatch(why: str) -> HeaderMismatch:
    return HeaderMismatch(HEADER_MISMATCH, f"the headers do not match the body: {why}")


def decoded(value: str) -> str | None:
    """Return a header's value, decoded if it is wrapped as base64; None if that is malformed."""
    if not (value.startswith(_OPENER) and value.endswith(_CLOSER)):
        return value
    wrapped = value[len(_OPENER) : -len(_CLOSER)]
    try:
        value_bytes = binascii.a2b_base64(wrapped)
        # Python accepts padding that is too long: only a value that encodes to itself is base64.
        is_base64 = binascii.b2a_base64(value_bytes, newline=False).decode() == wrapped
        return value_bytes.decode() if is_base64 else None
    except ValueError:
        return None
