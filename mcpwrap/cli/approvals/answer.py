"""Approval decision as a packet: verdict, scope, and a person's proof (password, polkit)."""

import msgspec

from mcpwrap.core.wire.approval_socket import (
    MAX_PASSWORD_BYTES,
    MAX_REASON_BYTES,
    Channel,
    DecideRequest,
    Proof,
    Scope,
    Verdict,
)
from mcpwrap.errors import UsageError
from mcpwrap.gate_client.user_approvals import connect
from mcpwrap.linux.process import start_time

TIMES = 10  # default number of equal requests that a standing approval covers


class OperatorDecision(msgspec.Struct, frozen=True):
    """Decision on a pending request."""

    verdict: Verdict
    scope: Scope = Scope.ONCE
    times: int | None = None
    reason: str = ""

    def decide(self, id_: str, digest: str, channel: Channel) -> DecideRequest:
        """Return the packet for the document with this digest, which the person has seen."""
        return DecideRequest(
            id=id_,
            digest=digest,
            verdict=self.verdict,
            scope=self.scope,
            times=self.times or (1 if self.scope is Scope.ONCE else TIMES),
            channel=channel,
            reason=_reason(self.reason),
        )


def with_password(decide: DecideRequest, user: str, password: str) -> DecideRequest:
    """Return the packet with the password of an account.

    Raises:
        UsageError: the password is empty, too long, or has a newline.
    """
    given = password.encode(errors="surrogateescape")
    if not given or b"\n" in given or len(given) > MAX_PASSWORD_BYTES:
        raise UsageError(
            f"the password is empty, over {MAX_PASSWORD_BYTES} bytes, or has a newline",
            where="mcpwrap approvals",
            fix=f"give one line of at most {MAX_PASSWORD_BYTES} bytes",
            code="E-APPROVAL-PASSWORD",
        )
    return msgspec.structs.replace(decide, proof=Proof.PASSWORD, user=user, password=given)


def with_polkit(decide: DecideRequest) -> DecideRequest:
    """Return the packet with which polkit asks the person at the desktop of this process."""
    start = start_time.start_ticks()
    return msgspec.structs.replace(decide, proof=Proof.POLKIT, process_start=start)


def send_decision(decide: DecideRequest) -> str:
    """Send the decision, and return the reply text of the gate."""
    with connect() as connection:
        return connection.decide(decide).text


def _reason(text: str) -> bytes:
    reason = text.encode(errors="surrogateescape")
    try:
        reason.decode()
    except UnicodeDecodeError:
        raise UsageError(
            "the text is not UTF-8",
            where="--reason",
            fix="use a UTF-8 locale",
            code="E-APPROVAL-REASON",
        ) from None
    if len(reason) > MAX_REASON_BYTES:
        raise UsageError(
            f"the text is over {MAX_REASON_BYTES} bytes",
            where="--reason",
            fix="shorten it",
            code="E-APPROVAL-REASON",
        )
    return reason
