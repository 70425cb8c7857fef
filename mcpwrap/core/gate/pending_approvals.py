"""Pending approvals of one session: requests held for a person, or suspended until a retry."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.ports import AwaitingApproval
from mcpwrap.core.policy.decision import Judgement
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, Request, without
from mcpwrap.core.protocol.methods import PolicyScope
from mcpwrap.core.protocol.strict_json import encode_sorted
from mcpwrap.core.secrets.aead import NONCE_BYTES, SealError, seal, unseal

MAX_HELD = 128  # in one session: word of all of them fits into the buffer of a socket
MAX_SUSPENDED = 32
_BOUND = ("request state",)
_PREFIX = "mcpwrap-"
ROUND_KEYS = ("requestState", "inputResponses")  # of one round of a request in several (MRTR)


class StateError(ValueError):
    """Invalid `requestState`: it looks like ours, but does not match a suspended request."""


@dataclass(slots=True)
class PendingApproval:
    """One held request, as it would be forwarded."""

    number: int
    request: Request
    json: bytes
    asked: RequestContext
    way: PolicyScope
    judgement: Judgement
    approval: AwaitingApproval
    definition: str  # of its tool, as it was asked with
    since_s: float
    token: Id | None  # for progress, if the agent wants any
    window: str = ""  # the id of our question in the agent's own window
    progress_sent: int = 0  # of progress that were due so far
    is_resumed: bool = False  # with our state: its window was asked, if it has one

    def continue_from(self, before: Self) -> None:
        """Wait in its place: progress only ever grows, and an agent gives up when it will."""
        self.since_s, self.progress_sent = before.since_s, before.progress_sent
        self.is_resumed = before.is_resumed


class PendingApprovals:
    """Held requests by number, by request id, and by the id of our elicitation."""

    def __init__(self, key: bytes) -> None:
        """`key` seals what agents are given to bring back: 32 bytes, of this session alone."""
        self._key = key
        self._number = 0
        self._hold_by_number: dict[int, PendingApproval] = {}
        self._aside: dict[int, PendingApproval] = {}  # the oldest first

    def __contains__(self, request_id: Id) -> bool:
        return any(hold.request.id == request_id for hold in self._hold_by_number.values())

    def __iter__(self) -> Iterator[PendingApproval]:
        return iter(list(self._hold_by_number.values()))

    def __len__(self) -> int:
        return len(self._hold_by_number)

    def is_full(self) -> bool:
        """Say whether so many wait that no more may."""
        return len(self._hold_by_number) >= MAX_HELD

    def next_number(self) -> int:
        """Return a number that no other hold has had."""
        self._number += 1
        return self._number

    def add(self, pending: PendingApproval) -> None:
        """Keep one that waits."""
        self._hold_by_number[pending.number] = pending

    def take(self, number: int) -> PendingApproval | None:
        """Return and forget one that waits."""
        return self._hold_by_number.pop(number, None)

    def by_request(self, request_id: Id) -> PendingApproval | None:
        """Return the one that holds this request."""
        return next((hold for hold in self if hold.request.id == request_id), None)

    def by_window(self, question: Id) -> PendingApproval | None:
        """Return the one that this answer of the agent's is about."""
        return next((hold for hold in self if hold.window and hold.window == question), None)

    def suspend(self, pending: PendingApproval) -> str:
        """Keep one until the agent comes again; return the `requestState` it is to bring."""
        self._hold_by_number.pop(pending.number, None)
        if len(self._aside) >= MAX_SUSPENDED:
            del self._aside[next(iter(self._aside))]
        self._aside[pending.number] = pending
        nonce = pending.number.to_bytes(NONCE_BYTES)  # no two have the same under this key
        sealed = seal(b"%d" % pending.number, self._key, nonce=nonce, bound=_BOUND)
        return _PREFIX + sealed.hex()

    def resume(self, request: Request) -> PendingApproval | None:
        """Return and forget the one that a request brings the state of; None if it brings none.

        Raises:
            StateError: the state is made up, was used, or belongs to another request.
        """
        state = request.params.get("requestState")
        if not isinstance(state, str) or not state.startswith(_PREFIX):
            return None
        try:
            number = int(unseal(bytes.fromhex(state[len(_PREFIX) :]), self._key, bound=_BOUND))
        except (SealError, ValueError) as error:
            raise StateError("requestState was changed on its way") from error
        hold = self._aside.get(number)
        if hold is None:
            raise StateError("requestState was used already")
        if _mark(request) != _mark(hold.request):
            raise StateError("requestState is that of another request")
        return self._aside.pop(number)


def _mark(request: Request) -> bytes:
    """Return what two rounds of the same request have in common."""
    same: Json = [request.method, without(request.params, "_meta", *ROUND_KEYS)]
    return blake2b(encode_sorted(same), digest_size=32).digest()
