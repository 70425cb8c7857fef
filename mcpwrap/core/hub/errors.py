"""Errors of a hub: each names the member, the reason, and the next command."""

import msgspec

from mcpwrap.core.hub.state.agent_side import has_envelope
from mcpwrap.core.hub.state.hub_state import HubState
from mcpwrap.core.hub.state.member_side import MemberSide
from mcpwrap.core.protocol import raw_message
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import failed_call
from mcpwrap.core.protocol.methods import TOOLS_CALL, ProtocolEra
from mcpwrap.core.protocol.raw_message import RawMessage, fields_of, text_at, value_of
from mcpwrap.core.text.sanitise import shown

# Outside of -32768 to -32000, which JSON-RPC and MCP reserve.
MEMBER_UNAVAILABLE = -31503
AMBIGUOUS = -31409
_MAX_WHY_CHARS = 400


def unavailable(state: HubState, request: RawMessage, member: MemberSide, why: str) -> None:
    """Answer a request that a member cannot answer: for a call with a result that models read."""
    if request.id is None:
        return
    message = text(member.name, why)
    if request.method == TOOLS_CALL:
        era = ProtocolEra.MODERN if has_envelope(request) else ProtocolEra.HANDSHAKE
        state.to_agent(raw_message.result(request.id, failed_call(message, era)))
    else:
        state.fail(request.id, MEMBER_UNAVAILABLE, message)


def text(member: str, why: str) -> str:
    """Return the error for a member that does not answer."""
    next_command = "" if "`" in why else f" Next: `mcpwrap status {member}`."
    return f"{member} does not answer: {why}.{next_command}"


def code_of(error: msgspec.Raw) -> Json:
    """Return the code of a JSON-RPC error; None without one."""
    return value_of(fields_of(error).get("code", b""))


def reason_of(error: msgspec.Raw) -> str:
    """Return the message of a JSON-RPC error, on one line."""
    return reason(text_at(fields_of(error), "message")) or "an error without a message"


def reason(untrusted: str) -> str:
    """Return a reason that another process gives, on one line and bounded."""
    return shown(untrusted, _MAX_WHY_CHARS)
