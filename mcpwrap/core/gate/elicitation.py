"""Elicitation of an approval in the agent's own window: less trusted, and only if a rule allows it.

The answer passes through the agent, so it is trusted as little as the agent. Source:
elicitation/create of 2025-06-18 and later; inputRequests of 2026-07-28.
"""

from math import ceil, inf

from mcpwrap.core.approval.client_forms import (
    MAX_NAME_CHARS,
    NO_CLIENT,
    ClientIdentity,
    FormAnswer,
)
from mcpwrap.core.approval.views.rendering import pretty_params
from mcpwrap.core.approval.views.shown_arguments import CHANGED
from mcpwrap.core.gate.pending_approvals import PendingApproval
from mcpwrap.core.gate.ports import ApprovalRequest
from mcpwrap.core.protocol.confusable_names import told_apart
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, Request
from mcpwrap.core.protocol.methods import CANCELLED, ELICITATION
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.text.rows import most_rows
from mcpwrap.core.text.sanitise import shown

KEY = "mcpwrap_approval"
_ID_PREFIX = "mcpwrap-"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CLIENT = "io.modelcontextprotocol/clientInfo"
# Of a form at a terminal of 80 columns and 24 rows, as Claude Code 2.1.330 and Codex 0.171.0 draw
# it: no key reaches what is lower or higher, and Codex shows no sign of it. Claude Code shows three
# rows of the message and all of a field's description, so the call is there: docs/design/run.md.
_COLUMNS = 66
_MAX_ROWS, _MAX_MESSAGE_ROWS = 14, 3


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


def client_of(params: dict[str, Json]) -> ClientIdentity:
    """Return the client that a request `initialize` names, or the `_meta` of another one."""
    meta = params.get("_meta")
    info = params.get("clientInfo", meta.get(_CLIENT) if isinstance(meta, dict) else None)
    if not isinstance(info, dict):
        return NO_CLIENT
    name, version = info.get("name"), info.get("version")
    return ClientIdentity(
        shown(name, MAX_NAME_CHARS) if isinstance(name, str) else "",
        shown(version, MAX_NAME_CHARS) if isinstance(version, str) else "",
    )


def id_for(pending: PendingApproval) -> str:
    """Return the id of the elicitation for a held request."""
    return f"{_ID_PREFIX}{pending.approval.id}-{pending.number}"


def may_be_ours(request_id: Id) -> bool:
    """Return whether an id could be that of the gate's elicitation.

    A server must not use such an id: the agent's answer to the server would approve a call.
    """
    return isinstance(request_id, str) and request_id.startswith(_ID_PREFIX)


def elicitation(pending: PendingApproval, server: str, left_s: float) -> bytes:
    """Return the elicitation, as a request to the agent; the question expires in `left_s`."""
    params = _params(pending, server, left_s)
    request: Json = {
        "jsonrpc": "2.0", "id": pending.window, "method": ELICITATION, "params": params
    }  # fmt: skip
    return encode(request)


def input_requests(pending: PendingApproval, server: str, left_s: float) -> dict[str, Json]:
    """Return the elicitation, as the `inputRequests` of a result."""
    params = {"mode": "form", **_params(pending, server, left_s)}
    return {KEY: {"method": ELICITATION, "params": params}}


def close(pending: PendingApproval) -> bytes:
    """Return the notification that cancels the elicitation."""
    params: Json = {"requestId": pending.window, "reason": "approval is no longer requested here"}
    return encode({"jsonrpc": "2.0", "method": CANCELLED, "params": params})


def answer_in(request: Request) -> FormAnswer | None:
    """Return the answer in a retried request; None if it has none."""
    answers = request.params.get("inputResponses")
    return answer(answers[KEY]) if isinstance(answers, dict) and KEY in answers else None


def answer(result: Json) -> FormAnswer:
    """Return the answer in a result. Only an accepted form with `approve: true` approves.

    Some clients accept a form that they have not shown, with empty content.
    """
    if not isinstance(result, dict):
        return FormAnswer.BY_ITSELF
    content = result.get("content")
    match result.get("action"):
        case "accept":
            approve = content.get("approve") if isinstance(content, dict) else None
            if approve is True:
                return FormAnswer.APPROVED
            return FormAnswer.CLOSED if approve is None else FormAnswer.DENIED
        case "decline":
            return FormAnswer.DENIED
        case "cancel":
            return FormAnswer.CLOSED
        case _:
            return FormAnswer.BY_ITSELF


def fits(wanted: ApprovalRequest) -> bool:
    """Return whether the whole question can be shown in the window, without a row of spaces.

    What is below such a row seems to be no part of it.
    """
    call = _call(wanted)
    rows = sum(most_rows(line, _COLUMNS) for line in call.split("\n"))
    return rows <= _MAX_ROWS - _MAX_MESSAGE_ROWS and " " * _COLUMNS not in call


def _params(pending: PendingApproval, server: str, left_s: float) -> dict[str, Json]:
    approve: Json = {
        "type": "boolean",
        "title": "Approve this call",
        "description": _call(pending.wanted),
        "default": False,
    }
    form: Json = {
        "type": "object",
        "properties": {"approve": approve},
        "required": ["approve"],
    }
    return {"message": _message(pending, server, left_s), "requestedSchema": form}


def _message(pending: PendingApproval, server: str, left_s: float) -> str:
    left = f", {ceil(left_s)} s left" if left_s < inf else ""
    whose = f"server {server}, " if server else ""
    about = f"{whose}rule {pending.judgement.rule}, approval {pending.approval.id}{left}"
    return f"mcpwrap asks for your approval ({about})"


def _call(wanted: ApprovalRequest) -> str:
    """Return the call; its arguments are last, so that they cannot pass for the rest."""
    changed = [CHANGED] if wanted.definition else []
    message = [wanted.message] if wanted.message else []
    call = pretty_params(wanted.params, wanted.asking.deciding)
    return "\n".join([*changed, *message, told_apart(wanted.target), call])
