"""Pending approvals of one session: requests held for a person, or suspended until a retry."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

from mcpwrap.core.approval.client_forms import NO_CLIENT, ClientIdentity
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.ports import ApprovalRequest, AwaitingApproval
from mcpwrap.core.policy.decision import Judgement
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, Request, without
from mcpwrap.core.protocol.methods import PolicyScope
from mcpwrap.core.protocol.strict_json import encode_sorted
from mcpwrap.core.secrets.aead import NONCE_BYTES, SealError, seal, unseal

MAX_HELD = 128  # in one session: packets about all of them fit into the buffer of a socket
MAX_SUSPENDED = 32
_BOUND = ("request state",)
ROUND_KEYS = ("requestState", "inputResponses")  # keys of one round of a multi-round request (MRTR)


class StateError(ValueError):
    """Invalid `requestState`: it looks like this session's, but matches no suspended request."""


@dataclass(slots=True)
class PendingApproval:
    """Held request, as it would be forwarded."""

    number: int
    request: Request
    json: bytes
    asked: RequestContext
    way: PolicyScope
    judgement: Judgement
    approval: AwaitingApproval
    wanted: ApprovalRequest
    since_s: float
    asked_at_s: float
    token: Id | None  # for progress notifications, if the agent requests them
    window: str = ""  # id of the open elicitation in the agent's own window
    asked_by_form_at_s: float = 0.0
    client: ClientIdentity = NO_CLIENT  # whose window it is
    progress_sent: int = 0  # number of progress notifications due so far

    def continue_from(self, before: Self) -> None:
        """Continue the wait of `before`: progress must only grow, and the agent's timeout runs."""
        self.since_s, self.progress_sent = before.since_s, before.progress_sent


class PendingApprovals:
    """Held requests by number, by request id, and by the id of the gate's elicitation."""

    def __init__(self, key: bytes) -> None:
        """`key` seals the `requestState` that agents send back: 32 bytes, of this session alone."""
        self._key = key
        # Through the session of a hub pass the states of the hub and of its members' gates.
        self._prefix = f"mcpwrap-{blake2b(key, digest_size=8, person=b'state').hexdigest()}-"
        self._number = 0
        self._hold_by_number: dict[int, PendingApproval] = {}
        self._suspended: dict[int, PendingApproval] = {}  # oldest first

    def __contains__(self, request_id: Id) -> bool:
        return any(hold.request.id == request_id for hold in self._hold_by_number.values())

    def __iter__(self) -> Iterator[PendingApproval]:
        return iter(list(self._hold_by_number.values()))

    def __len__(self) -> int:
        return len(self._hold_by_number)

    def is_full(self) -> bool:
        """Return whether no more requests may be held."""
        return len(self._hold_by_number) >= MAX_HELD

    def next_number(self) -> int:
        """Return a number that no other hold has had."""
        self._number += 1
        return self._number

    def add(self, pending: PendingApproval) -> None:
        """Add a held request."""
        self._hold_by_number[pending.number] = pending

    def take(self, number: int) -> PendingApproval | None:
        """Remove and return a held request."""
        return self._hold_by_number.pop(number, None)

    def by_request(self, request_id: Id) -> PendingApproval | None:
        """Return the held request with this id."""
        return next((hold for hold in self if hold.request.id == request_id), None)

    def by_window(self, question: Id) -> PendingApproval | None:
        """Return the held request whose elicitation has this id."""
        return next((hold for hold in self if hold.window and hold.window == question), None)

    def suspend(self, pending: PendingApproval) -> str:
        """Suspend a request until the agent retries; return the `requestState` for the retry."""
        self._hold_by_number.pop(pending.number, None)
        if len(self._suspended) >= MAX_SUSPENDED:
            del self._suspended[next(iter(self._suspended))]
        self._suspended[pending.number] = pending
        nonce = pending.number.to_bytes(NONCE_BYTES)  # no two are the same under this key
        sealed = seal(b"%d" % pending.number, self._key, nonce=nonce, bound=_BOUND)
        return self._prefix + sealed.hex()

    def resume(self, request: Request) -> PendingApproval | None:
        """Remove and return the suspended request of a retry; None without a state of this session.

        Raises:
            StateError: the state is forged, was used or dropped, or belongs to another request.
        """
        state = request.params.get("requestState")
        if not isinstance(state, str) or not state.startswith(self._prefix):
            return None
        try:
            sealed = bytes.fromhex(state.removeprefix(self._prefix))
            number = int(unseal(sealed, self._key, bound=_BOUND))
        except (SealError, ValueError) as error:
            raise StateError("requestState was altered") from error
        hold = self._suspended.get(number)
        if hold is None:
            raise StateError("requestState was already used, or dropped for newer ones")
        if _mark(request) != _mark(hold.request):
            raise StateError("requestState belongs to another request")
        return self._suspended.pop(number)


def _mark(request: Request) -> bytes:
    """Return a hash that all rounds of the same request have in common."""
    same: Json = [request.method, without(request.params, "_meta", *ROUND_KEYS)]
    return blake2b(encode_sorted(same), digest_size=32).digest()
