"""Approval rule: a person's approval of one call, for later calls that differ in ticked arguments.

It answers the questions of the policy rules that asked for that call, for one tool of one server
and one agent's account, and is bounded by time, by count or by the session. A call that a policy
rule blocks is never asked about, so no approval rule covers it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import Question
from mcpwrap.core.protocol import json_keys
from mcpwrap.core.protocol.json_keys import folded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import without
from mcpwrap.core.protocol.strict_json import encode_sorted
from mcpwrap.core.text import globs

MAX_FOR_S = 365 * 86_400
MAX_TIMES = 10_000
MAX_TICKED = 32  # arguments
MAX_GLOB_CHARS = 256
MAX_REQUEST_BYTES = 4096  # of an encoded `RuleRequest`
MAX_DOCUMENT_BYTES = 64 * 1024  # of the approved call, which the rule keeps
ANY = "*"  # the glob of a ticked argument that may have any value, of any type, or none
# In the place of the names of arguments that must not be ticked, where they are too many: none may.
ALL_EXACT = "*"
BY_RULE = "rule "
_MAX_DECODINGS = 5  # of percent-encoding within percent-encoding
_PART_END = re.compile(r"[/\\?#;]")  # where some reader ends a part of a path


class TickedArgument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Argument whose value may differ from the approved one."""

    name: str
    glob: str = ANY  # of the texts that it may have


class RuleRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Request of an approver to save an approval as a rule, with at least one bound."""

    ticked: tuple[TickedArgument, ...] = ()
    for_s: int = 0  # 0: not bounded by time
    times: int = 0  # 0: not bounded by count
    in_session: bool = False  # only in the session that asked


class ApprovalRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Saved approval. Times are seconds since 1970."""

    id: str
    agent_uid: int
    server: str
    method: str
    target: str  # as in lists of questions; the document has it in full
    answers: tuple[str, ...]  # names of the policy rules whose questions it answers
    approved: str  # the document that the person was shown
    ticked: tuple[TickedArgument, ...]
    by: str  # approver and channel
    made_at: float
    until: float  # 0: not bounded by time
    times: int  # left; 0: not bounded by count
    session: str  # by its name in the audit; "": of any session


class UnsavableRuleError(ValueError):
    """Reason for which an approval cannot be saved as a rule."""


@dataclass(frozen=True, slots=True)
class FixedArguments:
    """Arguments of a question that an approver must not let vary freely."""

    deciding: tuple[str, ...] = ()  # which the rules of the policy are about: by a pattern alone
    exact: tuple[str, ...] = ()  # not at all; `ALL_EXACT` is all


NO_FIXED = FixedArguments()


def encoded(request: RuleRequest) -> str:
    """Return the canonical text of a request for a rule, as clients send it."""
    return msgspec.json.encode(request).decode()


def decoded(untrusted: str) -> RuleRequest:
    """Return the request for a rule that a client sent.

    polkit shows its text to a person, so a text that says a thing twice, or escaped, is refused.

    Raises:
        UnsavableRuleError: it is too long, or not what `encoded` returns.
    """
    try:
        if len(untrusted.encode()) > MAX_REQUEST_BYTES:
            raise UnsavableRuleError(f"the rule is over {MAX_REQUEST_BYTES} bytes")
        request = msgspec.json.decode(untrusted, type=RuleRequest)
        is_canonical = encoded(request) == untrusted
    except ValueError as error:  # of Unicode and msgspec, too
        raise UnsavableRuleError(str(error)) from error
    if not is_canonical:
        raise UnsavableRuleError("the rule is not in canonical form, as mcpwrap's clients send it")
    return request


def check(request: RuleRequest, fixed: FixedArguments, approved: bytes) -> None:
    """Check that an approval can be saved as a rule.

    Raises:
        UnsavableRuleError: it has no bound, is wider than the policy permits, or is too long.
    """
    if not (request.for_s or request.times or request.in_session):
        raise UnsavableRuleError("an approval rule needs a bound: a time, a count, or the session")
    if not 0 <= request.for_s <= MAX_FOR_S or not 0 <= request.times <= MAX_TIMES:
        raise UnsavableRuleError(
            f"an approval rule is for at most {MAX_FOR_S // 86_400} days and {MAX_TIMES} calls"
        )
    if len(approved) > MAX_DOCUMENT_BYTES:
        raise UnsavableRuleError(f"the call is over {MAX_DOCUMENT_BYTES} bytes")
    _check_ticked(request.ticked, fixed)


def _check_ticked(ticked: Sequence[TickedArgument], fixed: FixedArguments) -> None:
    if len(ticked) > MAX_TICKED or len({one.name for one in ticked}) < len(ticked):
        raise UnsavableRuleError(f"over {MAX_TICKED} arguments are ticked, or one twice")
    for one in ticked:
        if not 0 < len(one.glob) <= MAX_GLOB_CHARS:
            raise UnsavableRuleError(f"a pattern has 1 to {MAX_GLOB_CHARS} characters")
        if why := why_fixed(one, fixed):
            raise UnsavableRuleError(why)


def why_fixed(one: TickedArgument, fixed: FixedArguments) -> str:
    """Return why an argument may not differ, or not freely; "" if it may."""
    if _is_among(one.name, fixed.exact) or ALL_EXACT in fixed.exact:
        return f"{one.name!a} decides what the call does: it must stay"
    if _is_among(one.name, fixed.deciding) and not one.glob.strip("*"):
        return f"a rule of the policy is about {one.name!a}: give a pattern for it"
    return ""


def _is_among(name: str, fixed: Collection[str]) -> bool:
    """Return whether some reader may take a name for one of these."""
    same = folded(name)
    return bool(fixed) if same == json_keys.ANY else same in map(folded, fixed)


def covers(
    rule: ApprovalRule, question: Question, asking: Collection[str], fixed: FixedArguments
) -> bool:
    """Return whether a rule answers a question that these policy rules ask.

    `fixed` is of this question: what could be ticked in the approved call may be SQL in this one.
    A tool whose definition has changed in the session is another tool.
    """
    try:
        approved = document.read(rule.approved.encode())
    except ValueError:  # of another version
        return False
    return (
        (rule.agent_uid, rule.server) == (question.agent_uid, question.server)
        and _call(approved) == _call(question)
        and not question.definition
        and not approved.definition
        and len(asking) > 0
        and set(asking) <= set(rule.answers)
        and _equal(without(approved.params, "arguments"), without(question.params, "arguments"))
        and not any(why_fixed(one, fixed) for one in rule.ticked)
        and _covers_arguments(rule, approved, question)
    )


def _call(question: Question) -> tuple[int, str, str, str]:
    return question.agent_uid, question.server, question.method, question.target


def _covers_arguments(rule: ApprovalRule, approved: Question, question: Question) -> bool:
    before, now = arguments_of(approved), arguments_of(question)
    if before is None or now is None:
        return _equal(approved.params.get("arguments"), question.params.get("arguments"))
    glob_by_name = {one.name: one.glob for one in rule.ticked}
    return all(
        name in before
        and (
            (name in now and _equal(before[name], now[name]))
            or (name in glob_by_name and may_be(glob_by_name[name], now.get(name)))
        )
        for name in before.keys() | now.keys()
    )


def passed_by(rule: ApprovalRule) -> str:
    """Return the approver of a call that a rule lets pass, for the agent and the audit."""
    return f"{BY_RULE}{rule.id} of {rule.by}"


def is_by_rule(by: str) -> bool:
    """Return whether a call passed by an approval rule, and no person was asked."""
    return by.startswith(BY_RULE)


def arguments_of(question: Question) -> Mapping[str, Json] | None:
    """Return the arguments of a call; None if there are none that can be ticked."""
    arguments = question.params.get("arguments")
    return arguments if isinstance(arguments, dict) else None


def may_be(glob: str, value: Json) -> bool:
    r"""Return whether a ticked argument may have this value.

    A pattern is for a text as a person foresees it: `/notes/*` is not for `/notes/../x`, in
    whatever form a server may read that.
    """
    if glob == ANY:
        return True
    if not isinstance(value, str) or not value.isprintable():
        return False
    return globs.matches(glob, value) and not _may_leave(value)


def _may_leave(value: str) -> bool:
    """Return whether some reader may take a part of a text for the folder above.

    Clients and servers undo percent-encoding, some of them twice. Bytes that are not UTF-8 can be
    dots to a lax decoder (`%c0%ae`), and spaces at the end of a URL are not read.
    """
    for _ in range(_MAX_DECODINGS):
        encoded, value = value, unquote(value)
        if value == encoded:
            break
    else:
        return True
    if not value.isprintable() or "\ufffd" in value:
        return True
    return any(part.strip() == ".." for part in _PART_END.split(value))


def _equal(one: Json, other: Json) -> bool:
    return encode_sorted(one) == encode_sorted(other)
