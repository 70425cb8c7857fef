"""Table of in-flight requests, which one side has sent and the other has not answered."""

import msgspec

from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.protocol.methods import ProtocolEra

MAX_OPEN = 16_384  # agents have tens; each costs us some hundred bytes
MAX_TARGET_CHARS = 8192  # a tool has 128, and longer URIs no browser takes
MAX_CANCELLED = 1024  # answers to these may still be under way


class RequestContext(msgspec.Struct, frozen=True):
    """Request data that a response is judged by. `target` is a tool, a URI, a prompt, or "".

    If a task is requested, `target` is its tool.
    """

    method: str
    target: str
    era: ProtocolEra
    task: str = ""
    revision: str | None = None  # in its envelope


class InFlight:
    """Requests by id, which is in use until it is answered: 1 and "1" are two."""

    def __init__(self, max_open: int = MAX_OPEN, max_cancelled: int = MAX_CANCELLED) -> None:
        self._open: dict[Id, RequestContext] = {}
        self._cancelled: dict[Id, RequestContext] = {}
        self._max_open = max_open
        self._max_cancelled = max_cancelled

    def __contains__(self, request_id: Id) -> bool:
        return request_id in self._open or request_id in self._cancelled

    def is_full(self) -> bool:
        """Say whether there are so many that no more is taken."""
        return len(self._open) >= self._max_open

    def find(self, request_id: Id) -> RequestContext | None:
        """Return a request that is open, and not cancelled."""
        return self._open.get(request_id)

    def add(self, request_id: Id, context: RequestContext) -> None:
        """Keep a request that is forwarded."""
        self._open[request_id] = context

    def take(self, request_id: Id) -> RequestContext | None:
        """Return and forget the request that is answered; None if there is no such."""
        return self._open.pop(request_id, None) or self._cancelled.pop(request_id, None)

    def has_open(self) -> bool:
        """Say whether an answer is waited for."""
        return bool(self._open)

    def take_open(self) -> list[tuple[Id, RequestContext]]:
        """Return and forget all that are open; who cancelled a request waits for no answer."""
        taken = list(self._open.items())
        self._open.clear()
        return taken

    def cancel(self, request_id: Id) -> bool:
        """Keep an open request apart; say whether it could be, or is open still.

        None is forgotten for another: its id would be free, and its answer judged as that of
        whatever is asked by the same id next.
        """
        if len(self._cancelled) >= self._max_cancelled:
            return False
        self._cancelled[request_id] = self._open.pop(request_id)
        return True
