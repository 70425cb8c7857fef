"""Error responses in the place of refused messages: JSON-RPC errors, and results of tools."""

from math import ceil

from mcpwrap.core.policy.decision import Decision, Judgement, LimitExceeded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import INTERNAL_ERROR, Id, error_response, result_response
from mcpwrap.core.protocol.methods import CALL_RESULTS, ProtocolEra

# Outside of -32768 to -32000, which JSON-RPC and MCP keep for themselves.
DENIED = -31403
LIMITED = -31429
UNRECORDED = "Refused by mcpwrap: the audit cannot be written"


def failed_call(text: str, era: ProtocolEra) -> Json:
    """Return a tool's result that says no: models read it, where an error ends with the client."""
    refusal: dict[str, Json] = {"content": [{"type": "text", "text": text}], "isError": True}
    if era is ProtocolEra.MODERN:
        refusal["resultType"] = "complete"
    return refusal


def denied(request_id: Id, method: str, era: ProtocolEra, judgement: Judgement) -> bytes:
    """Return what a request gets that the policy refuses, or whose result it does."""
    if method in CALL_RESULTS:
        return result_response(request_id, failed_call(why(judgement), era))
    return error_response(request_id, DENIED, why(judgement), {"rule": judgement.rule})


def limit_exceeded(request_id: Id, held: LimitExceeded, era: ProtocolEra) -> bytes:
    """Return what a call gets that a limit holds back."""
    return result_response(
        request_id, failed_call(f"Refused by mcpwrap: {why_limited(held)}.", era)
    )


def not_approved(request_id: Id, method: str, era: ProtocolEra, text: str, rule: str) -> bytes:
    """Return what a request gets that no person approved, or not yet."""
    if method in CALL_RESULTS:
        return result_response(request_id, failed_call(text, era))
    return error_response(request_id, DENIED, text, {"rule": rule})


def unrecorded(request_id: Id, method: str, era: ProtocolEra) -> bytes:
    """Return what a request gets that could not be written down."""
    if method in CALL_RESULTS:
        return result_response(request_id, failed_call(f"{UNRECORDED}.", era))
    return error_response(request_id, DENIED, f"{UNRECORDED}.")


def server_ended(request_id: Id, why: str) -> bytes:
    """Return what a request gets whose server ended before it answered."""
    text = f"The server ended before it answered: {why}. Start a new session."
    return error_response(request_id, INTERNAL_ERROR, text)


def why_limited(held: LimitExceeded) -> str:
    """Return what a limit says, and after how many whole seconds it will say something else."""
    return f"{held.why}; retry in {max(1, ceil(held.retry_after_s))} s"


def why(judgement: Judgement) -> str:
    """Return what the agent is told: who refuses, by which rule, and what its author says."""
    by = f"rule {judgement.rule}" if judgement.rule else "no rule allows it"
    asks = "needs approval, " if judgement.decision is Decision.NEEDS_APPROVAL else ""
    return f"Refused by mcpwrap ({asks}{by}). {judgement.message}".rstrip()
