"""HTTP status codes for JSON-RPC errors and refused sessions."""

from mcpwrap.core.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from mcpwrap.core.wire.session_socket import Exit

UNSUPPORTED_VERSION = -32022
DISCOVER = "server/discover"
CANCELLED = -32800  # of the Language Server Protocol; MCP's own numbers are in another range
# MCP 2026-07-28, transports, "Error Codes". In earlier revisions a JSON-RPC error has status 200.
_STATUS_BY_CODE = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    -32020: 400,  # the headers do not match the body
    -32021: 400,  # a capability is missing
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
_STATUS_BY_EXIT = {
    Exit.BUSY: 503,
    Exit.UNAVAILABLE: 503,
    Exit.NOT_ALLOWED: 403,
    Exit.NO_SUCH_SERVER: 404,
}


def of_error(code: int, method: str) -> int:
    """Return the status for an error of 2026-07-28.

    A server that does not know `server/discover` is of an older era. Agents learn that from a 400,
    as HTTP servers of that era reply.
    """
    if method == DISCOVER and code == METHOD_NOT_FOUND:
        return 400
    return _STATUS_BY_CODE.get(code, 200)


def of_refusal(exit_status: int) -> int:
    """Return the status for a session that the gate refused, or whose server did not start."""
    try:
        return _STATUS_BY_EXIT.get(Exit(exit_status), 502)
    except ValueError:
        return 502
