"""Table of in-flight requests, which one side has sent and the other has not answered."""

import msgspec

from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.protocol.methods import ProtocolEra

MAX_OPEN = 16_384  # agents have tens; each takes some hundred bytes
MAX_TARGET_CHARS = 8192  # a tool's name has 128; no browser accepts a longer URI
MAX_CURSOR_CHARS = 4096  # longer ones are cut, and then no page is known by them
MAX_CANCELLED = 1024  # responses to these may still arrive


class RequestContext(msgspec.Struct, frozen=True):
    """Request data that a response is judged by. `target` is a tool, a URI, a prompt, or "".

    If a task is requested, `target` is its tool.
    """

    method: str
    target: str
    era: ProtocolEra
    task: str = ""
    revision: str | None = None  # in its envelope
    cursor: str = ""  # of a page after a list's first
    call_digest: bytes = b""  # of a tool and arguments whose repeats are counted
    listens: frozenset[str] = frozenset()  # lists of whose changes it is to be notified
    is_resumed: bool = False  # sent again with the `requestState` that mcpwrap gave the agent


class InFlight:
    """In-flight requests by id. An id is in use until its response comes; 1 and "1" are two ids."""

    def __init__(self, max_open: int = MAX_OPEN, max_cancelled: int = MAX_CANCELLED) -> None:
        self._open: dict[Id, RequestContext] = {}
        self._cancelled: dict[Id, RequestContext] = {}
        self._max_open = max_open
        self._max_cancelled = max_cancelled

    def __contains__(self, request_id: Id) -> bool:
        return request_id in self._open or request_id in self._cancelled

    def is_full(self) -> bool:
        """Return whether there are so many that no more is accepted."""
        return len(self._open) >= self._max_open

    def find(self, request_id: Id) -> RequestContext | None:
        """Return the request, if it is open and not cancelled."""
        return self._open.get(request_id)

    def add(self, request_id: Id, context: RequestContext) -> None:
        """Add a forwarded request."""
        self._open[request_id] = context

    def take(self, request_id: Id) -> RequestContext | None:
        """Remove and return the request that is answered; None if no request has this id."""
        return self._open.pop(request_id, None) or self._cancelled.pop(request_id, None)

    def open_by(self, method: str) -> list[tuple[Id, RequestContext]]:
        """Return the open requests of a method; cancelled ones are not open."""
        return [(key, one) for key, one in self._open.items() if one.method == method]

    def has_open(self) -> bool:
        """Return whether a response is awaited."""
        return bool(self._open)

    def take_open(self) -> list[tuple[Id, RequestContext]]:
        """Remove and return all open requests; for a cancelled one no response is awaited."""
        taken = list(self._open.items())
        self._open.clear()
        return taken

    def cancel(self, request_id: Id) -> bool:
        """Mark an open request as cancelled; return False if there are too many, and it stays open.

        No cancelled request is dropped for another: its id would be free, and its response would
        be judged as that to the next request with the same id.
        """
        if len(self._cancelled) >= self._max_cancelled:
            return False
        self._cancelled[request_id] = self._open.pop(request_id)
        return True
