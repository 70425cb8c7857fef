"""Approval decision as a packet: verdict, scope, and the proof (password, polkit) of a person."""

import msgspec

from mcpwrap.core.wire.approval_socket import (
    MAX_PASSWORD_BYTES,
    MAX_REASON_BYTES,
    Channel,
    DecideRequest,
    Pending,
    Proof,
    Scope,
    Verdict,
)
from mcpwrap.errors import UsageError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection
from mcpwrap.linux.process import start_time

TIMES = 10  # that "the same again" holds for, where nobody says how often


class OperatorDecision(msgspec.Struct, frozen=True):
    """Decision on a pending request."""

    verdict: Verdict
    scope: Scope = Scope.ONCE
    times: int | None = None
    reason: str = ""

    def decide(self, pending: Pending, digest: str, channel: Channel) -> DecideRequest:
        """Return the packet, for the document with this digest, which was shown."""
        return DecideRequest(
            id=pending.id,
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
        UsageError: this cannot be anybody's.
    """
    given = password.encode(errors="surrogateescape")
    if not given or b"\n" in given or len(given) > MAX_PASSWORD_BYTES:
        raise UsageError("that is no password", where="mcpwrap approvals", fix="give one line")
    return msgspec.structs.replace(decide, proof=Proof.PASSWORD, user=user, password=given)


def with_polkit(decide: DecideRequest) -> DecideRequest:
    """Return the packet by which polkit asks whoever sits at the desktop of this process."""
    start = start_time.start_ticks()
    return msgspec.structs.replace(decide, proof=Proof.POLKIT, process_start=start)


def send_decision(decide: DecideRequest) -> str:
    """Give the answer; return what the gate says to it."""
    with ApprovalConnection(approvals.PATH) as door:
        return door.decide(decide).text


def _reason(text: str) -> bytes:
    reason = text.encode(errors="surrogateescape")
    try:
        reason.decode()
    except UnicodeDecodeError:
        raise UsageError("it is not UTF-8", where="--reason", fix="use a UTF-8 locale") from None
    if len(reason) > MAX_REASON_BYTES:
        raise UsageError(f"over {MAX_REASON_BYTES} bytes", where="--reason", fix="shorten it")
    return reason
