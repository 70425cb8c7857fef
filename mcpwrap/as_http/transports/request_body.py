"""Parser of a request's body: JSON-RPC message or batch."""

from dataclasses import dataclass

from aiohttp import web

from mcpwrap.as_http.responses import refusal
from mcpwrap.as_http.state import ListenerState
from mcpwrap.core.http import in_band_tags
from mcpwrap.core.http.param_headers import from_head
from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.framing import MAX_LINE_BYTES
from mcpwrap.core.protocol.jsonrpc import (
    MAX_BATCH,
    Batch,
    Decoded,
    InvalidBatch,
    Malformed,
    Notification,
    Request,
    Sender,
    decode,
)
from mcpwrap.core.protocol.strict_json import on_one_line
from mcpwrap.http_server.body_reader import BodyError, read_body

MAX_BODY_BYTES = MAX_LINE_BYTES - 1


class RejectedRequestError(Exception):
    """Error for a request that the listener itself answers, with the response."""

    def __init__(self, response: web.Response) -> None:
        super().__init__()
        self.response = response


@dataclass(frozen=True, slots=True)
class RequestBody:
    """Posted message, or a batch."""

    messages: tuple[Decoded, ...]
    is_batch: bool

    @property
    def requests(self) -> list[Request]:
        """The requests among the messages."""
        found = (decoded.message for decoded in self.messages)
        return [message for message in found if isinstance(message, Request)]

    def line(self, state: ListenerState, head: RequestHead) -> bytes:
        """Return the line for the gate: the decoded value, encoded again."""
        parts = [_forwarded(decoded, state, head) for decoded in self.messages]
        joined = b"[" + b",".join(parts) + b"]" if self.is_batch else parts[0]
        return on_one_line(joined) + b"\n"


async def read(request: web.BaseRequest, body_s: float) -> RequestBody:
    """Read and parse a body.

    Raises:
        RejectedRequestError: the body is not a message, is too long, or takes too long.
    """
    try:
        body = await read_body(request, MAX_BODY_BYTES, body_s)
    except BodyError as error:
        raise RejectedRequestError(refusal(error.status, str(error))) from error
    match decode(body, Sender.AGENT, MAX_BATCH):
        case Decoded() as decoded:
            _expect_right_kind(decoded)
            return RequestBody((decoded,), is_batch=False)
        case Malformed(code, reason, request_id):
            raise RejectedRequestError(refusal(400, reason, code=code, request_id=request_id))
        case InvalidBatch():
            raise _rejected(f"a batch must have 1 to {MAX_BATCH} messages")
        case Batch(items):
            return RequestBody(tuple(_expect_message(item) for item in items), is_batch=True)


def _rejected(why: str) -> RejectedRequestError:
    return RejectedRequestError(refusal(400, why))


def _expect_message(item: Decoded | Malformed) -> Decoded:
    if isinstance(item, Malformed):
        raise RejectedRequestError(refusal(400, item.reason, code=item.code, request_id=item.id))
    _expect_right_kind(item)
    if isinstance(item.message, Request) and item.message.method == methods.INITIALIZE:
        raise _rejected("initialize must not be in a batch")
    return item


def _expect_right_kind(decoded: Decoded) -> None:
    """Reject a request without an id: the gate's error would have no id, so no HTTP response."""
    message = decoded.message
    if isinstance(message, Notification) and methods.is_request(message.method):
        raise _rejected("a request must have an id")


def _forwarded(decoded: Decoded, state: ListenerState, head: RequestHead) -> bytes:
    message = decoded.message
    if state.listener.is_remote and isinstance(message, (Request, Notification)):
        return in_band_tags.with_headers(message, from_head(head))
    return decoded.json
