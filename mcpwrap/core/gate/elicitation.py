"""Elicitation of an approval in the agent's own window: less trusted, and only if a rule allows it.

The answer passes through the agent, so it is trusted as little as the agent. Source:
elicitation/create of 2025-06-18 and later; inputRequests of 2026-07-28.
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
_MAX_SHOWN_CHARS = 4000  # a longer question is not asked in the window


def is_offered(request: Request) -> bool:
    """Return whether a request declares that its agent shows elicitation forms."""
    meta = request.params.get("_meta")
    return _has_form(meta.get(_CAPABILITIES) if isinstance(meta, dict) else None)


def can_elicit(params: dict[str, Json]) -> bool:
    """Return whether a request `initialize` declares the same."""
    return _has_form(params.get("capabilities"))


def _has_form(capabilities: Json) -> bool:
    """Return whether these capabilities have forms: `form`, or empty as until 2025-06-18.

    Until then there was no other mode to declare.
    """
    modes = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(modes, dict) and (not modes or "form" in modes)


def id_for(pending: PendingApproval) -> str:
    """Return the id of the elicitation for a held request."""
    return f"{_ID_PREFIX}{pending.approval.id}-{pending.number}"


def may_be_ours(request_id: Id) -> bool:
    """Return whether an id could be that of the gate's elicitation.

    A server must not use such an id: the agent's answer to the server would approve a call.
    """
    return isinstance(request_id, str) and request_id.startswith(_ID_PREFIX)


def elicitation(pending: PendingApproval) -> bytes:
    """Return the elicitation, as a request to the agent."""
    request: Json = {
        "jsonrpc": "2.0", "id": pending.window, "method": ELICITATION, "params": _params(pending)
    }  # fmt: skip
    return encode(request)


def input_requests(pending: PendingApproval) -> dict[str, Json]:
    """Return the elicitation, as the `inputRequests` of a result."""
    return {KEY: {"method": ELICITATION, "params": {"mode": "form", **_params(pending)}}}


def close(pending: PendingApproval) -> bytes:
    """Return the notification that cancels the elicitation."""
    params: Json = {"requestId": pending.window, "reason": "approval is no longer requested here"}
    return encode({"jsonrpc": "2.0", "method": CANCELLED, "params": params})


def answer_in(request: Request) -> bool | None:
    """Return the user's answer in a retried request; None if it has no answer."""
    answers = request.params.get("inputResponses")
    return answer(answers.get(KEY)) if isinstance(answers, dict) else None


def answer(result: Json) -> bool | None:
    """Return the user's answer; None if the window was closed without an answer."""
    if not isinstance(result, dict):
        return None
    if result.get("action") == "decline":
        return False
    content = result.get("content")
    if result.get("action") != "accept" or not isinstance(content, dict):
        return None
    return content.get("approve") is True


def fits(pending: PendingApproval) -> bool:
    """Return whether the whole question can be shown in the window."""
    return len(_message(pending)) <= _MAX_SHOWN_CHARS


def _params(pending: PendingApproval) -> dict[str, Json]:
    return {"message": _message(pending), "requestedSchema": _SCHEMA}


def _message(pending: PendingApproval) -> str:
    call = f"{told_apart(pending.asked.target)}\n{pretty_params(pending.request.params)}"
    return f"mcpwrap asks for your approval (rule {pending.judgement.rule}): {call}"
