"""Revision of a request that mcpwrap's own servers get, in both eras, and the errors of each.

Sources: schema.ts of the revisions, and "Versioning" of 2026-07-28. A session may use both eras: a
request with the envelope of 2026-07-28 stands alone, and `initialize` sets the revision of all
requests without one.
"""

from collections.abc import Mapping

from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Request

MODERN = "2026-07-28"
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # the newest one first
UNSUPPORTED_VERSION = -32022
RESOURCE_NOT_FOUND = -32002  # of the handshake era; since 2026-07-28 it is INVALID_PARAMS
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
PING = "ping"


class McpRequestError(Exception):
    """Request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def revision_of(request: Request, handshake: str | None) -> str:
    """Return the revision of a request; `handshake` is that of the session, None before it.

    Raises:
        McpRequestError: the envelope is incomplete, or names a revision that is not supported.
    """
    if methods.has_odd_envelope(request.params):
        raise McpRequestError(INVALID_PARAMS, f"{methods.PROTOCOL_VERSION} must be a string")
    revision = methods.revision_of(request.params)
    if revision is None:
        return _without_envelope(request, handshake)
    if revision != MODERN:
        data: Json = {"supported": [MODERN], "requested": revision}
        raise McpRequestError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    meta = request.params["_meta"]
    if not isinstance(meta, dict) or not isinstance(meta.get(CLIENT_CAPABILITIES), dict):
        raise McpRequestError(
            INVALID_PARAMS, f"params._meta must have {CLIENT_CAPABILITIES}, an object"
        )
    if request.method in (methods.INITIALIZE, PING):
        raise unknown_method(request.method)
    return revision


def _without_envelope(request: Request, handshake: str | None) -> str:
    if request.method in (methods.INITIALIZE, PING):
        return handshake or HANDSHAKES[0]
    if request.method == methods.DISCOVER or handshake is None:
        raise McpRequestError(
            INVALID_PARAMS,
            f"params._meta must have {methods.PROTOCOL_VERSION} and {CLIENT_CAPABILITIES} "
            f"({MODERN}), or the session must begin with initialize",
        )
    return handshake


def unknown_method(method: str) -> McpRequestError:
    """Return the error for a method that this server does not have."""
    return McpRequestError(METHOD_NOT_FOUND, f"Method not found: {method}")


def negotiated(params: Mapping[str, Json]) -> str:
    """Return the revision for `initialize`: the client's, or the newest that begins so.

    Raises:
        McpRequestError: the client names none.
    """
    requested = params.get("protocolVersion")
    if not isinstance(requested, str):
        raise McpRequestError(INVALID_PARAMS, "protocolVersion must be a string")
    return requested if requested in HANDSHAKES else HANDSHAKES[0]


def resource_not_found(uri: str, revision: str) -> McpRequestError:
    """Return the error for a resource that does not exist, or does not any more."""
    code = INVALID_PARAMS if revision == MODERN else RESOURCE_NOT_FOUND
    return McpRequestError(code, "Resource not found", {"uri": uri})


def check_cursor(params: Mapping[str, Json]) -> None:
    """Check the cursor of a list, each of which has one page alone.

    Raises:
        McpRequestError: there is one, and no list has returned it.
    """
    if params.get("cursor") is not None:
        raise McpRequestError(INVALID_PARAMS, "Invalid cursor")
