"""Error responses in the place of refused messages: JSON-RPC errors, and results of tools.

A refusal says what refused, what would pass, who may change it, and has a code that stays the same.
"""

from enum import StrEnum
from math import ceil
from typing import Literal, assert_never

import msgspec

from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.ports import ApprovalUnavailable, PinRefusal, PolicyOwner
from mcpwrap.core.gate.session import SessionState
from mcpwrap.core.policy.decision import Decision, Judgement, LimitExceeded
from mcpwrap.core.policy.rules import DEFAULT_PREFIX, LIMITS
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import (
    INTERNAL_ERROR,
    Id,
    error_response,
    failed_call,
    result_response,
)
from mcpwrap.core.protocol.methods import CALL_RESULTS, ProtocolEra

# Outside of -32768 to -32000, which JSON-RPC and MCP reserve.
DENIED = -31403
LIMITED = -31429
META_KEY = "org.mcpwrap/refusal"  # of a result's `_meta`
STRUCTURED_SINCE = "2025-06-18"  # the first revision with `structuredContent`
MAX_HIT_CHARS = 300
_NO_RULE = "no rule allows it"
_NO_OTHER_WAY = "Do not do the same in another way."


class CallCode(StrEnum):
    """Code of a refusal. It keeps its meaning in later versions; the text can change."""

    BLOCKED = "E-CALL-BLOCKED"
    RATE = "E-CALL-RATE"
    LOOP = "E-CALL-LOOP"
    FAILURES = "E-CALL-FAILURES"
    HELD = "E-CALL-HELD"
    DENIED = "E-CALL-DENIED"
    UNANSWERED = "E-CALL-UNANSWERED"
    NOBODY = "E-CALL-NOBODY"
    NO_APPROVER = "E-CALL-NO-APPROVER"
    PAUSED = "E-CALL-PAUSED"
    UNRECORDED = "E-CALL-UNRECORDED"
    RESULT = "E-RESULT-BLOCKED"


_CODE_BY_LIMIT = {"rate": CallCode.RATE, "loop": CallCode.LOOP, "failures": CallCode.FAILURES}
_CODE_BY_CAUSE = {
    "denied": CallCode.DENIED,
    "paused": CallCode.PAUSED,
    "nobody": CallCode.NOBODY,
    "no-approver": CallCode.NO_APPROVER,
}  # fmt: skip


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Refusal of a request: its text for the model, and the same for programs."""

    code: str
    text: str
    rule: str = ""
    argument: str = ""  # that a rule's condition holds for, and the part of it
    retry_after_s: int = 0
    approval: str = ""  # id of the question to a person

    def fields(self) -> dict[str, Json]:
        """Return what programs read; empty fields are left out."""
        named: dict[str, Json] = {
            "code": self.code,
            "rule": self.rule,
            "argument": self.argument,
            "retry_after_s": self.retry_after_s,
            "approval": self.approval,
        }
        return {key: value for key, value in named.items() if value}


def respond(
    session: SessionState, request_id: Id, context: RequestContext, refusal: Refusal
) -> bytes:
    """Return the response to a refused request: an error, for a call a result."""
    fields = refusal.fields()
    if context.method not in CALL_RESULTS:
        data: Json = {"rule": refusal.rule, "mcpwrap": fields}
        return error_response(request_id, DENIED, refusal.text, data)
    result = failed_call(refusal.text, context.era)
    if _takes_structure(session, context):
        # Some clients give their model this in the place of the text.
        result["structuredContent"] = {"mcpwrap": {"message": refusal.text, **fields}}
    result["_meta"] = {META_KEY: fields}
    return result_response(request_id, result)


def server_ended(request_id: Id, why: str) -> bytes:
    """Return the response to a request whose server ended before it answered."""
    text = f"The server ended before it answered: {why}. Start a new session."
    return error_response(request_id, INTERNAL_ERROR, text)


def why_limited(exceeded: LimitExceeded) -> str:
    """Return the reason of a limit, and after how many whole seconds to retry: at least 1."""
    return f"{exceeded.why}; retry in {_retry_after_s(exceeded)} s"


def blocked(session: SessionState, judgement: Judgement) -> Refusal:
    """Return the refusal of a request by the policy, without asking a person."""
    asks = judgement.decision is Decision.NEEDS_APPROVAL
    code = CallCode.NOBODY if asks else CallCode.BLOCKED
    return _by_policy(judgement, code, _blocked_advice(session.owner, judgement))


def result_blocked(session: SessionState, judgement: Judgement) -> Refusal:
    """Return the refusal of a result, or of an error."""
    advice = "The server has had the request: only its response is refused. Do not repeat it."
    lines = _advice(session.owner, advice)
    if session.owner is not None and judgement.rule:
        lines.append(_rule_owner(session.owner, judgement.rule))
    return _by_policy(judgement, CallCode.RESULT, lines)


def limited(session: SessionState, exceeded: LimitExceeded) -> Refusal:
    """Return the refusal of a call that exceeds a limit."""
    code, retry_after_s = _CODE_BY_LIMIT[exceeded.kind], _retry_after_s(exceeded)
    lines = [
        f"Refused by mcpwrap: {why_limited(exceeded)}. [{code}]",
        *_advice(session.owner, _what_passes_limit(exceeded.kind, retry_after_s)),
    ]
    if session.owner is not None:
        lines.append(_limits_owner(session.owner, exceeded))
    return Refusal(code=code, text="\n".join(lines), retry_after_s=retry_after_s)


def held(session: SessionState, judgement: Judgement, approval: str) -> Refusal:
    """Return the answer to a request that waits for a person, and is to be sent again."""
    code = CallCode.HELD
    first = (
        f"Held by mcpwrap. Pending approval {approval}: a person has been asked. "
        f"Send the same request again to continue. [{code}]"
    )
    advice = (
        f"Nothing was done yet. {_NO_OTHER_WAY} Your user sees it with "
        f"`mcpwrap approvals show {approval}`."
    )
    lines = [first, *_rule_lines(judgement), *_advice(session.owner, advice)]
    return _about(judgement, code, lines, approval)


def denied(session: SessionState, judgement: Judgement, why: str, approval: str) -> Refusal:
    """Return the refusal of a request that a person has denied."""
    first = f"Refused by mcpwrap ({why}). Approval {approval}, rule {judgement.rule}."
    advice = f"A person has decided this: do not send it again. {_NO_OTHER_WAY}"
    return _decided(session, judgement, CallCode.DENIED, (first, advice, approval))


def unanswered(session: SessionState, judgement: Judgement, approval: str) -> Refusal:
    """Return the refusal of a request that no person has answered in time."""
    why = "no approver answered in time"
    first = f"Refused by mcpwrap ({why}). Approval {approval}, rule {judgement.rule}."
    advice = (
        "This is not a denial: no person has decided. Tell your user that it needs an answer; the "
        f"same request, sent again, asks once more. {_NO_OTHER_WAY}"
    )
    return _decided(session, judgement, CallCode.UNANSWERED, (first, advice, approval))


def unasked(session: SessionState, judgement: Judgement, answer: ApprovalUnavailable) -> Refusal:
    """Return the refusal of a request that no person is asked for."""
    code = _CODE_BY_CAUSE[answer.cause]
    why = answer.why.removesuffix(".")
    first = f"Refused by mcpwrap (needs approval, rule {judgement.rule}): {why}. [{code}]"
    lines = [first, *_rule_lines(judgement)]
    if answer.cause == "denied":
        advice = f"A person has decided this: do not send it again. {_NO_OTHER_WAY}"
        return _about(judgement, code, [*lines, *_advice(session.owner, advice)])
    advice = f"This is not a denial: no person was asked. {_NO_OTHER_WAY} Tell your user."
    lines += _advice(session.owner, advice)
    if answer.remedy:
        lines.append(answer.remedy)
    if answer.cause in {"nobody", "no-approver"} and session.owner is not None:
        lines.append(_rule_owner(session.owner, judgement.rule))
    return _about(judgement, code, lines)


def unaccepted(refusal: PinRefusal) -> Refusal:
    """Return the refusal of a request for what was not accepted."""
    return Refusal(code=refusal.code, text=refusal.text)


def unrecorded() -> Refusal:
    """Return the refusal of a request that could not be recorded in the audit."""
    code = CallCode.UNRECORDED
    text = f"Refused by mcpwrap: the audit cannot be written. [{code}]"
    return Refusal(code=code, text=text)


def _takes_structure(session: SessionState, context: RequestContext) -> bool:
    """Return whether the agent accepts `structuredContent` for a refused call.

    The TypeScript SDK compares it with the tool's `outputSchema`, for an error too
    (modelcontextprotocol/typescript-sdk#1943). A client may have a tool's definition from an
    earlier connection, so one that this session has not listed has no structure either.
    """
    is_known = context.era is ProtocolEra.MODERN or session.version >= STRUCTURED_SINCE
    return is_known and session.has_no_output_schema(context.target)


def _by_policy(judgement: Judgement, code: CallCode, advice: list[str]) -> Refusal:
    first = f"{_reason(judgement)} [{code}]"
    return _about(judgement, code, [first, *_hit_lines(judgement), *advice])


def _decided(
    session: SessionState, judgement: Judgement, code: CallCode, parts: tuple[str, str, str]
) -> Refusal:
    first, advice, approval = parts
    lines = [f"{first} [{code}]", *_rule_lines(judgement), *_advice(session.owner, advice)]
    return _about(judgement, code, lines, approval)


def _about(judgement: Judgement, code: CallCode, lines: list[str], approval: str = "") -> Refusal:
    return Refusal(
        code=code,
        text="\n".join(lines),
        rule=judgement.rule,
        argument=judgement.hit[:MAX_HIT_CHARS],
        approval=approval,
    )


def _reason(judgement: Judgement) -> str:
    """Return the reason of a refusal: the rule and its message, the default, or MCP itself."""
    if not _is_of_policy(judgement):
        return f"Refused by mcpwrap: {judgement.message}"
    message = "" if judgement.message == _NO_RULE else judgement.message
    by = f"rule {judgement.rule}" if judgement.rule else _NO_RULE
    asks = "needs approval, " if judgement.decision is Decision.NEEDS_APPROVAL else ""
    return f"Refused by mcpwrap ({asks}{by}). {message}".rstrip()


def _is_of_policy(judgement: Judgement) -> bool:
    return bool(judgement.rule) or judgement.message in {"", _NO_RULE}


def _hit_lines(judgement: Judgement) -> list[str]:
    return [f"The rule applies to {judgement.hit[:MAX_HIT_CHARS]}"] if judgement.hit else []


def _rule_lines(judgement: Judgement) -> list[str]:
    says = [f"The rule says: {judgement.message}"] if judgement.message else []
    return [*says, *_hit_lines(judgement)]


def _advice(owner: PolicyOwner | None, text: str) -> list[str]:
    return [] if owner is None else [text]


def _blocked_advice(owner: PolicyOwner | None, judgement: Judgement) -> list[str]:
    """Return what would pass, and who may change it; nothing where MCP itself is the reason."""
    if owner is None or not _is_of_policy(judgement):
        return []
    advice = "Tell your user if it is needed."
    if judgement.rule and judgement.message:
        advice = "Change the request as the rule says, or tell your user."
    return [f"{_NO_OTHER_WAY} {advice}", _rule_owner(owner, judgement.rule)]


def _rule_owner(owner: PolicyOwner, rule: str) -> str:
    """Return who may change a rule, and the command for it."""
    name = rule.removeprefix(DEFAULT_PREFIX)
    if name != rule:
        disable = f"mcpwrap policy default disable {name} --server {owner.server}"
        if owner.is_user:
            return f"Your user can disable the rule: `{disable} --user`"
        return f"Root can disable the rule: `sudo {disable}`"
    if owner.is_user:
        return "Your user can change the policy of `mcpwrap run`: ~/.config/mcpwrap/policy.yaml"
    explain = f"mcpwrap policy explain {owner.server} TOOL ARGUMENTS"
    return f"Root can change the policy in /etc/mcpwrap; `{explain}` shows what applies."


def _what_passes_limit(kind: Literal["rate", "loop", "failures"], retry_after_s: int) -> str:
    match kind:
        case "rate":
            return f"Other tools pass now, and this one in {retry_after_s} s."
        case "loop":
            return "The same call brings nothing new: another call passes now."
        case "failures":
            return (
                f"The tool keeps failing: other tools pass now, and this one in {retry_after_s} s."
            )
        case _:
            assert_never(kind)


def _limits_owner(owner: PolicyOwner, exceeded: LimitExceeded) -> str:
    if exceeded.of_default_policy:
        return _rule_owner(owner, f"{DEFAULT_PREFIX}{LIMITS}")
    if owner.is_user:
        return "Your user can change `limits` in ~/.config/mcpwrap/policy.yaml"
    return f"Root can change `limits` for {owner.server} in /etc/mcpwrap/policy.yaml"


def _retry_after_s(exceeded: LimitExceeded) -> int:
    return max(1, ceil(exceeded.retry_after_s))
