"""Elicitation of an approval in the agent's own window: less trusted, and only if a rule allows it.

The answer passes through the agent, so it is worth as much as the agent. Source: elicitation/create
of 2025-06-18 and later; inputRequests of 2026-07-28.
"""

from mcpwrap.core.approval.rendering import pretty_params
from mcpwrap.core.gate.pending_approvals import PendingApproval
from mcpwrap.core.protocol.confusable_names import told_apart
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, Request
from mcpwrap.core.protocol.methods import CANCELLED, ELICITATION
from mcpwrap.core.protocol.strict_json import encode

KEY = "mcpwrap_approval"
_ID_PREFIX = "mcpwrap-"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_SCHEMA: Json = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Approve this call"}},
    "required": ["approve"],
}
_MAX_SHOWN_CHARS = 4000  # who cannot be shown all of it is asked elsewhere


def is_offered(request: Request) -> bool:
    """Say whether the agent that sent a request has such a window, by its own word."""
    meta = request.params.get("_meta")
    return _has_form(meta.get(_CAPABILITIES) if isinstance(meta, dict) else None)


def can_elicit(params: dict[str, Json]) -> bool:
    """Say the same of the agent that sent a handshake."""
    return _has_form(params.get("capabilities"))


def _has_form(capabilities: Json) -> bool:
    """Say whether an agent shows forms: until 2025-06-18 there was nothing else, or it says so."""
    modes = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(modes, dict) and (not modes or "form" in modes)


def id_for(pending: PendingApproval) -> str:
    """Return the id of the question about a request that is held."""
    return f"{_ID_PREFIX}{pending.approval.id}-{pending.number}"


def may_be_ours(request_id: Id) -> bool:
    """Say whether an id could be that of a question: an answer to a server would approve a call."""
    return isinstance(request_id, str) and request_id.startswith(_ID_PREFIX)


def elicitation(pending: PendingApproval) -> bytes:
    """Return the question, as a request to the agent."""
    asked: Json = {
        "jsonrpc": "2.0", "id": pending.window, "method": ELICITATION, "params": _params(pending)
    }  # fmt: skip
    return encode(asked)


def input_requests(pending: PendingApproval) -> dict[str, Json]:
    """Return the question, as what a result asks for."""
    return {KEY: {"method": ELICITATION, "params": {"mode": "form", **_params(pending)}}}


def close(pending: PendingApproval) -> bytes:
    """Return word to the agent that the question is not asked there any more."""
    params: Json = {"requestId": pending.window, "reason": "not asked here any more"}
    return encode({"jsonrpc": "2.0", "method": CANCELLED, "params": params})


def answer_in(request: Request) -> bool | None:
    """Return what the user said, in a request that comes again; None if nothing."""
    answers = request.params.get("inputResponses")
    return answer(answers.get(KEY)) if isinstance(answers, dict) else None


def answer(result: Json) -> bool | None:
    """Return what the user said; None if the window was closed without an answer."""
    if not isinstance(result, dict):
        return None
    if result.get("action") == "decline":
        return False
    content = result.get("content")
    if result.get("action") != "accept" or not isinstance(content, dict):
        return None
    return content.get("approve") is True


def fits(pending: PendingApproval) -> bool:
    """Say whether all of it can be shown there."""
    return len(_message(pending)) <= _MAX_SHOWN_CHARS


def _params(pending: PendingApproval) -> dict[str, Json]:
    return {"message": _message(pending), "requestedSchema": _SCHEMA}


def _message(pending: PendingApproval) -> str:
    what = f"{told_apart(pending.asked.target)}\n{pretty_params(pending.request.params)}"
    return f"mcpwrap asks for your approval (rule {pending.judgement.rule}): {what}"
