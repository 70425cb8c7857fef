"""In-band tags in messages between an agent's HTTP listener and the program for remote servers.

    params._meta["mcpwrap/headers"]  to the server: the agent's `Mcp-Param-*` headers; it also means
                                     that the sender understands the other tags
    params._meta["mcpwrap/for"]      from the server: sent on the response to this request
    params._meta["mcpwrap/closed"]   with it: the remote server has closed that response, and is to
                                     be polled; the message has no other meaning
    error.data["mcpwrap/http"]       from the server: the HTTP status, and its challenge

Neither the agent nor a remote server receives any of them. The gate between them forwards `_meta`
and the data of errors unchanged, except for rules on results.
"""

from dataclasses import dataclass

import msgspec

from mcpwrap.core.http.www_authenticate import without_addresses
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import (
    Decoded,
    Failure,
    Id,
    Message,
    Notification,
    Request,
    as_id,
)
from mcpwrap.core.protocol.strict_json import encode, on_one_line

HEADERS = "mcpwrap/headers"
FOR = "mcpwrap/for"
CLOSED = "mcpwrap/closed"
HTTP = "mcpwrap/http"
_ANY = b'"mcpwrap/'
MAX_CHALLENGE_CHARS = 2048


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """HTTP response of a remote server that did not answer as MCP specifies."""

    status: int
    challenge: str = ""  # WWW-Authenticate, without addresses


@dataclass(frozen=True, slots=True)
class UntaggedMessage:
    """Message of the server without its tags, and the values of the tags."""

    message: Message
    json: bytes
    about: Id | None = None
    is_closed: bool = False
    http: HttpAnswer | None = None


def with_headers(message: Request | Notification, headers: dict[str, str]) -> bytes:
    """Return the agent's message with the tag of its headers, in place of any tag it had."""
    meta = message.params.get("_meta", {})
    if not isinstance(meta, dict):
        meta = {}  # no server takes another type; the official ones refuse it
    tagged: dict[str, Json] = {**meta, HEADERS: dict(headers)}
    parts: dict[str, Json] = {"jsonrpc": "2.0"}
    if isinstance(message, Request):
        parts["id"] = message.id
    parts |= {"method": message.method, "params": {**message.params, "_meta": tagged}}
    return encode(parts)


def remove_tags(decoded: Decoded) -> UntaggedMessage:
    """Return the server's message without tags, and the values of the tags."""
    message, json = decoded.message, on_one_line(decoded.json)
    if _ANY not in json:  # the usual case
        return UntaggedMessage(message, json)
    match message:
        case Request() | Notification():
            return _untagged_params(message, json)
        case Failure():
            return _untagged_error(message, json)
        case _:
            return UntaggedMessage(message, json)


def _untagged_params(message: Request | Notification, json: bytes) -> UntaggedMessage:
    meta = message.params.get("_meta")
    if not isinstance(meta, dict) or not meta.keys() & {FOR, CLOSED, HEADERS}:
        return UntaggedMessage(message, json)
    about, is_closed = as_id(meta.get(FOR)), meta.get(CLOSED) is True
    kept = {key: value for key, value in meta.items() if key not in {FOR, CLOSED, HEADERS}}
    params = {key: value for key, value in message.params.items() if key != "_meta"}
    if kept:
        params["_meta"] = kept
    parts: dict[str, Json] = {"jsonrpc": "2.0"}
    if isinstance(message, Request):
        parts["id"] = message.id
    parts["method"] = message.method
    if params:
        parts["params"] = params
    plain = msgspec.structs.replace(message, params=params)
    return UntaggedMessage(plain, on_one_line(encode(parts)), about, is_closed)


def _untagged_error(message: Failure, json: bytes) -> UntaggedMessage:
    data = message.error.get("data")
    if not isinstance(data, dict) or HTTP not in data:
        return UntaggedMessage(message, json)
    error = {key: value for key, value in message.error.items() if key != "data"}
    if kept := {key: value for key, value in data.items() if key != HTTP}:
        error["data"] = kept
    parts: dict[str, Json] = {"jsonrpc": "2.0", "id": message.id, "error": error}
    return UntaggedMessage(
        Failure(message.id, error), on_one_line(encode(parts)), http=_http_answer(data[HTTP])
    )


def _http_answer(tag: Json) -> HttpAnswer | None:
    status = tag.get("status") if isinstance(tag, dict) else None
    if type(status) is not int or not 400 <= status <= 599 or not isinstance(tag, dict):
        return None
    challenge = tag.get("www_authenticate")
    return HttpAnswer(status, without_addresses(challenge if isinstance(challenge, str) else ""))


def take_headers(message: dict[str, Json]) -> tuple[dict[str, Json], Json]:
    """Return a message without the tag of its headers, and that tag, None if it is absent."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(meta, dict) or HEADERS not in meta:
        return message, None
    headers = meta[HEADERS]
    rest = {key: value for key, value in meta.items() if key != HEADERS}
    bare: dict[str, Json] = {key: value for key, value in params.items() if key != "_meta"}
    if rest:
        bare["_meta"] = rest
    without = {key: value for key, value in message.items() if key != "params"}
    return ({**without, "params": bare} if bare else without), headers


def with_stream(message: dict[str, Json], request_id: Id) -> dict[str, Json]:
    """Return the server's request or notification, tagged with the request whose stream it is on.

    A message whose `params` is not an object is returned as it is.
    """
    params = message.get("params", {})
    if not isinstance(params, dict):
        return message  # not a valid message either; the gate reports it
    meta = params.get("_meta")
    tagged: dict[str, Json] = {**(meta if isinstance(meta, dict) else {}), FOR: request_id}
    return {**message, "params": {**params, "_meta": tagged}}


def stream_closed(request_id: Id) -> dict[str, Json]:
    """Return the notice that a stream has ended. Only the tags of this message have a meaning."""
    params: Json = {"level": "debug", "data": "", "_meta": {FOR: request_id, CLOSED: True}}
    return {"jsonrpc": "2.0", "method": methods.LOG, "params": params}


def http_refusal(status: int, challenge: str) -> dict[str, Json]:
    """Return `error.data` for an HTTP error without JSON-RPC; `challenge` is WWW-Authenticate."""
    tag: dict[str, Json] = {"status": status}
    if challenge.isprintable() and 0 < len(challenge) <= MAX_CHALLENGE_CHARS:
        tag["www_authenticate"] = challenge
    return {HTTP: tag}
