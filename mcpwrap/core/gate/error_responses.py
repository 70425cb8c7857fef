"""Error responses in the place of refused messages: JSON-RPC errors, and results of tools."""

from math import ceil

from mcpwrap.core.policy.decision import Decision, Judgement, LimitExceeded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import INTERNAL_ERROR, Id, error_response, result_response
from mcpwrap.core.protocol.methods import CALL_RESULTS, ProtocolEra

# Outside of -32768 to -32000, which JSON-RPC and MCP reserve.
DENIED = -31403
LIMITED = -31429
UNRECORDED = "Refused by mcpwrap: the audit cannot be written"


def failed_call(text: str, era: ProtocolEra) -> Json:
    """Return a refusal as a tool's result: models read it, while an error ends at the client."""
    refusal: dict[str, Json] = {"content": [{"type": "text", "text": text}], "isError": True}
    if era is ProtocolEra.MODERN:
        refusal["resultType"] = "complete"
    return refusal


def denied(request_id: Id, method: str, era: ProtocolEra, judgement: Judgement) -> bytes:
    """Return the response to a request that the policy refuses, or whose result it refuses."""
    if method in CALL_RESULTS:
        return result_response(request_id, failed_call(why(judgement), era))
    return error_response(request_id, DENIED, why(judgement), {"rule": judgement.rule})


def limit_exceeded(request_id: Id, exceeded: LimitExceeded, era: ProtocolEra) -> bytes:
    """Return the response to a call that exceeds a limit."""
    return result_response(
        request_id, failed_call(f"Refused by mcpwrap: {why_limited(exceeded)}.", era)
    )


def not_approved(request_id: Id, method: str, era: ProtocolEra, text: str, rule: str) -> bytes:
    """Return the response to a request that is not approved, or not yet."""
    if method in CALL_RESULTS:
        return result_response(request_id, failed_call(text, era))
    return error_response(request_id, DENIED, text, {"rule": rule})


def refused(request_id: Id, method: str, era: ProtocolEra, text: str) -> bytes:
    """Return the response to a request that is refused for another reason than the policy."""
    if method in CALL_RESULTS:
        return result_response(request_id, failed_call(text, era))
    return error_response(request_id, DENIED, text)


def unrecorded(request_id: Id, method: str, era: ProtocolEra) -> bytes:
    """Return the response to a request that could not be recorded in the audit."""
    return refused(request_id, method, era, f"{UNRECORDED}.")


def server_ended(request_id: Id, why: str) -> bytes:
    """Return the response to a request whose server ended before it answered."""
    text = f"The server ended before it answered: {why}. Start a new session."
    return error_response(request_id, INTERNAL_ERROR, text)


def why_limited(exceeded: LimitExceeded) -> str:
    """Return the reason of a limit, and after how many whole seconds to retry: at least 1."""
    return f"{exceeded.why}; retry in {max(1, ceil(exceeded.retry_after_s))} s"


def why(judgement: Judgement) -> str:
    """Return the reason for the agent: mcpwrap, the rule, and the message of the rule's author."""
    by = f"rule {judgement.rule}" if judgement.rule else "no rule allows it"
    asks = "needs approval, " if judgement.decision is Decision.NEEDS_APPROVAL else ""
    return f"Refused by mcpwrap ({asks}{by}). {judgement.message}".rstrip()
