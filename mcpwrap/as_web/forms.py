"""Form parser: fields to values. Input that the page's forms cannot send is rejected."""

import hmac
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from mcpwrap.core.approval import approval_rule
from mcpwrap.core.approval.approval_rule import (
    ANY,
    RuleRequest,
    TickedArgument,
    UnsavableRuleError,
)
from mcpwrap.core.approval.views.rule_offer import OfferedArgument
from mcpwrap.core.wire.approval_socket import (
    MAX_PASSWORD_BYTES,
    MAX_REASON_BYTES,
    MAX_TIMES,
    Channel,
    DecideRequest,
    Proof,
    Scope,
    Verdict,
)

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REPEATED = frozenset({Scope.MINUTES, Scope.SESSION})
_USER = re.compile(r"[!-~]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
RULE_SPANS_S = (0, 3600, 8 * 3600, 30 * 86_400)
PICK = "pick."  # before the id of a call, in the name of its field in a group
Form = Mapping[str, str]
_T = TypeVar("_T", Verdict, Scope)


class FormError(ValueError):
    """Error in a form, worded for the person who filled it in."""


class LoginForm(msgspec.Struct, frozen=True):
    """Credentials of a login, and the call to show next, or "" for the list."""

    user: str
    password: bytes
    call: str


def is_ours(form: Form, token: str) -> bool:
    """Return whether a form has the token of its page."""
    return hmac.compare_digest(form.get("token", "").encode(), token.encode())


def credentials(form: Form) -> LoginForm:
    """Return the credentials of a login form.

    Raises:
        FormError: a field is missing or invalid.
    """
    user, call = form.get("user", ""), form.get("call", "")
    if not _USER.fullmatch(user):
        raise FormError("enter the name of your account")
    return LoginForm(user, _password(form), call if ID.fullmatch(call) else "")


def decide(form: Form, id_: str, user: str) -> DecideRequest:
    """Return the approval decision of a form.

    Raises:
        FormError: a field is missing or invalid.
    """
    if not _DIGEST.fullmatch(form.get("digest", "")):
        raise FormError("the form has no valid digest of the call")
    verdict = _one_of(Verdict, form.get("verdict", ""), "choose a verdict")
    scope = _one_of(Scope, form.get("scope", Scope.ONCE), "choose how long it is valid")
    return DecideRequest(
        id=id_,
        digest=form["digest"],
        verdict=verdict,
        scope=scope,
        times=_times(form) if scope in _REPEATED and verdict is Verdict.APPROVE else 1,
        channel=Channel.WEB,
        proof=Proof.PASSWORD,
        user=user,
        password=_password(form),
        rule=_rule(form) if scope is Scope.RULE and verdict is Verdict.APPROVE else "",
        reason=_reason(form),
    )


def decide_group(form: Form, user: str) -> list[DecideRequest]:
    """Return the decisions of a form of a group: one for each call that is ticked, once.

    Raises:
        FormError: a field is missing or invalid.
    """
    digest_by_id = {
        name.removeprefix(PICK): value for name, value in form.items() if name.startswith(PICK)
    }
    if not digest_by_id:
        raise FormError("tick at least one call")
    if not all(map(ID.fullmatch, digest_by_id)):
        raise FormError("the form names a call that cannot be")
    return [
        decide({**form, "digest": digest, "scope": Scope.ONCE}, id_, user)
        for id_, digest in digest_by_id.items()
    ]


def rule_request(form: Form, offer: Sequence[OfferedArgument]) -> RuleRequest:
    """Return the rule that a form describes. Arguments are named by their places in the offer.

    Raises:
        FormError: a field is invalid.
    """
    ticked = [
        TickedArgument(one.name, form.get(f"glob.{place}", "").strip() or ANY)
        for place, one in enumerate(offer)
        if f"vary.{place}" in form
    ]
    span, times = form.get("for", "0"), form.get("calls", "").strip()
    if span not in map(str, RULE_SPANS_S):
        raise FormError("choose how long the rule is in force")
    if times and not re.fullmatch(r"[0-9]{1,5}", times):
        raise FormError("enter how many calls it is for, as a number, or leave it empty")
    return RuleRequest(
        ticked=tuple(ticked),
        for_s=int(span),
        times=int(times or 0),
        in_session="session" in form,
    )


def _rule(form: Form) -> str:
    """Return the rule that was shown in words, as it is sent to the gate."""
    text = form.get("rule", "")
    try:
        approval_rule.decoded(text)
    except UnsavableRuleError as error:
        raise FormError("the form has no valid rule") from error
    return text


def _one_of(kind: type[_T], text: str, problem: str) -> _T:
    try:
        return kind(text)
    except ValueError as error:
        raise FormError(problem) from error


def _times(form: Form) -> int:
    text = form.get("times", "")
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= MAX_TIMES:
        raise FormError(f"enter how often it may run, a number from 1 to {MAX_TIMES}")
    return int(text)


def _password(form: Form) -> bytes:
    password = form.get("password", "").encode()
    if not password:
        raise FormError("enter your password")
    if len(password) > MAX_PASSWORD_BYTES or b"\n" in password or b"\r" in password:
        raise FormError(f"a password is one line of at most {MAX_PASSWORD_BYTES} bytes")
    return password


def _reason(form: Form) -> bytes:
    reason = form.get("reason", "").strip().encode()
    if len(reason) > MAX_REASON_BYTES:
        raise FormError(f"the reason is over {MAX_REASON_BYTES} bytes")
    return reason
