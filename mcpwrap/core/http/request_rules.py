"""Checks of an agent's HTTP request head: Host, Origin, path, method, body type and Accept."""

from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qsl

JSON = "application/json"
EVENTS = "text/event-stream"
_OWN = "mcp-"


class HttpEndpoint(Enum):
    """Endpoint at a path."""

    ENDPOINT = "endpoint"  # of 2025-03-26 and later
    OLD_STREAM = "old stream"  # of 2024-11-05
    OLD_MESSAGES = "old messages"


ENDPOINT_BY_PATH = {
    "/": HttpEndpoint.ENDPOINT,
    "/mcp": HttpEndpoint.ENDPOINT,
    "/sse": HttpEndpoint.OLD_STREAM,
    "/messages": HttpEndpoint.OLD_MESSAGES,
}
METHODS_BY_ENDPOINT = {
    HttpEndpoint.ENDPOINT: ("POST", "GET", "DELETE"),
    HttpEndpoint.OLD_STREAM: ("GET",),
    HttpEndpoint.OLD_MESSAGES: ("POST",),
}


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Method, target and header fields of a request. A repeated header is there twice."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...] = ()
    _values: dict[str, list[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once: a dozen headers of each request are looked up.
        values: dict[str, list[str]] = {}
        for name, value in self.fields:
            values.setdefault(name.lower(), []).append(value)
        object.__setattr__(self, "_values", values)

    def every(self, name: str) -> list[str]:
        """Return the values of a header; `name` is in lower case."""
        return [*self._values.get(name, ())]


@dataclass(frozen=True, slots=True)
class HttpRejection:
    """Rejection of a request, with its HTTP status."""

    status: int
    why: str
    allow: tuple[str, ...] = ()  # the methods of the endpoint, for `Allow`


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """Accepted request: its endpoint. `session` is from the URL, in the old transport."""

    endpoint: HttpEndpoint
    session: str = ""


def judge(head: RequestHead, host: str) -> AcceptedRequest | HttpRejection:
    """Return the endpoint of a request, or why it is rejected. `host` is the listener's name."""
    if head.every("host") != [host]:
        return HttpRejection(421, f"this is http://{host}/, and was requested by another name")
    if not _is_from_here(head, host):
        return HttpRejection(403, "a web page has sent this request")
    path, question, query = head.target.partition("?")
    endpoint = ENDPOINT_BY_PATH.get(path)
    if endpoint is None or bool(question) != (endpoint is HttpEndpoint.OLD_MESSAGES):
        return HttpRejection(404, f"this URL does not exist: MCP is at http://{host}/mcp")
    if head.method not in METHODS_BY_ENDPOINT[endpoint]:
        known = METHODS_BY_ENDPOINT[endpoint]
        return HttpRejection(405, f"this URL accepts only {', '.join(known)}", known)
    rejection = _judge_own(head) or _judge_body(head) or _judge_accept(head, endpoint)
    return rejection or AcceptedRequest(endpoint, dict(parse_qsl(query)).get("session", ""))


def _is_from_here(head: RequestHead, host: str) -> bool:
    """Return whether no other page made a browser send this, as far as the browser reports it."""
    is_same = head.every("sec-fetch-site") in ([], ["same-origin"], ["none"])
    return is_same and head.every("origin") in ([], [f"http://{host}"])


def _judge_own(head: RequestHead) -> HttpRejection | None:
    """Reject MCP headers that are not printable ASCII: other values are wrapped as base64."""
    for name, value in head.fields:
        is_plain = value.isascii() and value.isprintable()
        if name.lower().startswith(_OWN) and not is_plain:
            return HttpRejection(400, f"{name.lower()} is not printable ASCII")
    return None


def _judge_body(head: RequestHead) -> HttpRejection | None:
    if head.every("upgrade"):
        return HttpRejection(400, "Upgrade is not supported")
    if [value.lower() for value in head.every("transfer-encoding")] not in ([], ["chunked"]):
        return HttpRejection(400, "the only supported Transfer-Encoding is chunked")
    if head.every("expect") not in ([], ["100-continue"]):
        return HttpRejection(417, "the only supported value of Expect is 100-continue")
    if head.method != "POST":
        return None
    kinds = [value.partition(";")[0].strip().lower() for value in head.every("content-type")]
    if kinds != [JSON] or head.every("content-encoding"):
        return HttpRejection(415, f"a message must be sent as {JSON}, without Content-Encoding")
    return None


def _judge_accept(head: RequestHead, endpoint: HttpEndpoint) -> HttpRejection | None:
    """Require what the official SDKs require: both forms of a response to a POST."""
    if head.method == "DELETE" or endpoint is HttpEndpoint.OLD_MESSAGES:
        return None
    needed = [JSON, EVENTS] if head.method == "POST" else [EVENTS]
    if all(accepts(head, kind) for kind in needed):
        return None
    return HttpRejection(406, f"Accept must name {' and '.join(needed)}")


def accepts(head: RequestHead, kind: str) -> bool:
    """Return whether Accept names a media type, by itself or by a range."""
    named = {
        part.partition(";")[0].strip().lower()
        for value in head.every("accept")
        for part in value.split(",")
    }
    return bool(named & {kind, f"{kind.partition('/')[0]}/*", "*/*"})
