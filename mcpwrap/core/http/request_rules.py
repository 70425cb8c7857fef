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
    """Method, target and header fields of a request. A header that came twice is there twice."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...] = ()
    _values: dict[str, list[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once: a request is asked for a dozen of them.
        values: dict[str, list[str]] = {}
        for name, value in self.fields:
            values.setdefault(name.lower(), []).append(value)
        object.__setattr__(self, "_values", values)

    def every(self, name: str) -> list[str]:
        """Return the values of a header; `name` is in small letters."""
        return [*self._values.get(name, ())]


@dataclass(frozen=True, slots=True)
class HttpRejection:
    """Rejection of a request, with its HTTP status."""

    status: int
    why: str
    allow: tuple[str, ...] = ()  # the methods that there are


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """Accepted request: its endpoint. `session` is from the URL, in the old transport."""

    endpoint: HttpEndpoint
    session: str = ""


def judge(head: RequestHead, host: str) -> AcceptedRequest | HttpRejection:
    """Return what a request is to, or why it is not heard. `host` is our one name."""
    if head.every("host") != [host]:
        return HttpRejection(421, f"this is http://{host}/, and was asked for by another name")
    if not _is_from_here(head, host):
        return HttpRejection(403, "a page has sent this request")
    path, question, query = head.target.partition("?")
    place = ENDPOINT_BY_PATH.get(path)
    if place is None or bool(question) != (place is HttpEndpoint.OLD_MESSAGES):
        return HttpRejection(404, f"MCP is at http://{host}/mcp")
    if head.method not in METHODS_BY_ENDPOINT[place]:
        known = METHODS_BY_ENDPOINT[place]
        return HttpRejection(405, f"only {', '.join(known)}", known)
    unheard = _judge_own(head) or _judge_body(head) or _judge_accept(head, place)
    return unheard or AcceptedRequest(place, dict(parse_qsl(query)).get("session", ""))


def _is_from_here(head: RequestHead, host: str) -> bool:
    """Say whether no other page has a browser send this, where it says which page that is."""
    is_same = head.every("sec-fetch-site") in ([], ["same-origin"], ["none"])
    return is_same and head.every("origin") in ([], [f"http://{host}"])


def _judge_own(head: RequestHead) -> HttpRejection | None:
    """Refuse what MCP has no place for in its headers: all else is wrapped as base64."""
    for name, value in head.fields:
        is_plain = value.isascii() and value.isprintable()
        if name.lower().startswith(_OWN) and not is_plain:
            return HttpRejection(400, f"{name.lower()} is not of printable ASCII")
    return None


def _judge_body(head: RequestHead) -> HttpRejection | None:
    if head.every("upgrade"):
        return HttpRejection(400, "there is no other protocol here")
    if [value.lower() for value in head.every("transfer-encoding")] not in ([], ["chunked"]):
        return HttpRejection(400, "a body comes in chunks, or whole")
    if head.every("expect") not in ([], ["100-continue"]):
        return HttpRejection(417, "what is expected is not known here")
    if head.method != "POST":
        return None
    kinds = [value.partition(";")[0].strip().lower() for value in head.every("content-type")]
    if kinds != [JSON] or head.every("content-encoding"):
        return HttpRejection(415, f"a message is sent as {JSON}")
    return None


def _judge_accept(head: RequestHead, place: HttpEndpoint) -> HttpRejection | None:
    """Ask for what the official SDKs ask for: both forms of an answer to a POST."""
    if head.method == "DELETE" or place is HttpEndpoint.OLD_MESSAGES:
        return None
    needed = [JSON, EVENTS] if head.method == "POST" else [EVENTS]
    if all(accepts(head, kind) for kind in needed):
        return None
    return HttpRejection(406, f"Accept has to name {' and '.join(needed)}")


def accepts(head: RequestHead, kind: str) -> bool:
    """Say whether a media type is named in Accept, by itself or by a range."""
    named = {
        part.partition(";")[0].strip().lower()
        for value in head.every("accept")
        for part in value.split(",")
    }
    return bool(named & {kind, f"{kind.partition('/')[0]}/*", "*/*"})
