"""Form parser: fields to values. Input that the page's forms cannot send is rejected."""

import hmac
import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec

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
_USER = re.compile(r"[!-~]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
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
        times=1 if scope == Scope.ONCE or verdict != Verdict.APPROVE else _times(form),
        channel=Channel.WEB,
        proof=Proof.PASSWORD,
        user=user,
        password=_password(form),
        reason=_reason(form),
    )


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
