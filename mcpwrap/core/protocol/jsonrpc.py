"""JSON-RPC parser for one line of bytes (https://www.jsonrpc.org/specification).

The forwarded text is the decoded message, encoded again: never the bytes as they came, in which
another parser might find another message.
"""

from enum import Enum
from typing import assert_never

import msgspec

from mcpwrap.core.protocol import json_keys, strict_json
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import MAX_DEPTH, NotJsonError, TooDeepError, encode

Id = int | str

# Section 5.1.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MAX_ID_CHARS = 256
MAX_BATCH = 1024  # messages; the official SDKs write one to a line
MAX_ID = 2**53 - 1  # RFC 8259 section 6: past it, JavaScript takes two numbers for one


class Sender(Enum):
    """Sender of a line."""

    AGENT = "agent"
    SERVER = "server"


class Request(msgspec.Struct, frozen=True):
    """JSON-RPC request; its receiver must reply with the same id."""

    id: Id
    method: str
    params: dict[str, Json]  # empty if there were none


class Notification(msgspec.Struct, frozen=True):
    """JSON-RPC notification, which has no reply."""

    method: str
    params: dict[str, Json]


class Result(msgspec.Struct, frozen=True):
    """JSON-RPC response with a result."""

    id: Id
    result: Json


class Failure(msgspec.Struct, frozen=True):
    """JSON-RPC response with an error."""

    id: Id
    error: dict[str, Json]


Message = Request | Notification | Result | Failure


class Decoded(msgspec.Struct, frozen=True):
    """Message, and the JSON that is to be forwarded for it: one line, without its newline."""

    message: Message
    json: bytes


class Malformed(msgspec.Struct, frozen=True):
    """Line that is not a message, and the reason.

    `id` is that of an agent's request: the malformed line itself, or the one it was to answer. None
    if it cannot be read, and where it would be one of the server's.
    """

    code: int
    reason: str
    id: Id | None = None


class Batch(msgspec.Struct, frozen=True):
    """Batch of messages, which only the revision 2025-03-26 has."""

    items: tuple[Decoded | Malformed, ...]


class InvalidBatch(msgspec.Struct, frozen=True):
    """Refused array: empty, too long, or where there are no batches.

    Nothing in it is a message; `answers` are the ids of the requests that it would have answered.
    """

    answers: tuple[Id, ...]


def decode(
    line: bytes, sender: Sender, max_batch: int
) -> Decoded | Batch | InvalidBatch | Malformed:
    """Read one line, in which up to `max_batch` messages may be together; 0 where none may.

    Keys that come twice are refused: an agent's anywhere, a server's on top. Further down a
    server's collapse into the last, since some servers do write them. So are an agent's keys that
    are others to some servers (`json_keys.flaw`).
    """
    if not max_batch and sender is Sender.AGENT and line.lstrip().startswith(b"["):
        return InvalidBatch(())  # nobody waits for an answer in it, so it need not even be read
    try:
        value = strict_json.decode(line)
    except TooDeepError:
        found = _concerned(strict_json.salvage(line), sender)
        return Malformed(INVALID_REQUEST, f"nested deeper than {MAX_DEPTH}", found)
    except NotJsonError:
        found = _concerned(strict_json.salvage(line), sender)
        return Malformed(PARSE_ERROR, "not JSON in UTF-8 that all read alike", found)
    return _read_line(line, value, sender, max_batch)


def _read_line(
    line: bytes, value: Json, sender: Sender, max_batch: int
) -> Decoded | Batch | InvalidBatch | Malformed:
    if isinstance(value, list) and not 0 < len(value) <= max_batch:
        return InvalidBatch(_answers_in(value, sender))
    json = encode(value)
    if line != json and _REPEATS[sender](line, json):
        return Malformed(INVALID_REQUEST, "a key comes twice", _concerned(value, sender))
    if sender is Sender.AGENT and (flaw := json_keys.flaw(value, json)):
        return Malformed(INVALID_REQUEST, flaw, _concerned(value, sender))
    if isinstance(value, list):
        return Batch(tuple(_read(element, encode(element), sender) for element in value))
    return _read(value, json, sender)


def _answers_in(elements: list[Json], sender: Sender) -> tuple[Id, ...]:
    if sender is Sender.AGENT:
        return ()
    found = (_concerned(element, sender) for element in elements if isinstance(element, dict))
    return tuple(answered for answered in found if answered is not None)


_REPEATS = {
    Sender.AGENT: strict_json.repeats_a_key,
    Sender.SERVER: strict_json.repeats_a_top_key,
}
_VERSION = "2.0"
# A key too many, too few or in other capitals makes a set that is none of these.
_NOTIFICATION = [frozenset({"jsonrpc", "method"}), frozenset({"jsonrpc", "method", "params"})]
_REQUEST = [keys | {"id"} for keys in _NOTIFICATION]
_RESULT = frozenset({"jsonrpc", "id", "result"})
_FAILURE = frozenset({"jsonrpc", "id", "error"})


class _NoMessageError(ValueError):
    def __init__(self, reason: str, code: int = INVALID_REQUEST) -> None:
        super().__init__(reason)
        self.code = code


def _read(value: Json, json: bytes, sender: Sender) -> Decoded | Malformed:
    try:
        return Decoded(_message(value), json)
    except _NoMessageError as error:
        return Malformed(error.code, str(error), _concerned(value, sender))


def _message(value: Json) -> Message:
    if not isinstance(value, dict):
        raise _NoMessageError("a message is an object")
    if value.get("jsonrpc") != _VERSION:
        raise _NoMessageError(f'"jsonrpc" is not "{_VERSION}"')
    keys = frozenset(value)
    if keys in _REQUEST:
        return Request(_id(value), _method(value), _params(value))
    if keys in _NOTIFICATION:
        return Notification(_method(value), _params(value))
    if keys == _RESULT:
        return Result(_id(value), value["result"])
    if keys == _FAILURE:
        return Failure(_id(value), _error(value))
    raise _NoMessageError("its keys are of no request, notification, result or error")


def as_id(value: Json) -> Id | None:
    """Return a value that is an id; True is an int to Python and 1.0 equals 1, but neither is.

    Nor is a text with a NUL, where some servers end it: they would answer another request.
    """
    if isinstance(value, str):
        return value if len(value) <= MAX_ID_CHARS and value.isprintable() else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -MAX_ID <= value <= MAX_ID else None
    return None


def _id(value: dict[str, Json]) -> Id:
    found = as_id(value.get("id"))
    if found is None:
        raise _NoMessageError(
            f"an id is an integer or a printable text of up to {MAX_ID_CHARS} characters"
        )
    return found


def _method(value: dict[str, Json]) -> str:
    method = value["method"]
    if not isinstance(method, str):
        raise _NoMessageError("a method is a text")
    if not method.isprintable() and json_keys.has_control_characters(method):
        raise _NoMessageError("a method has no control characters")
    return method


def _params(value: dict[str, Json]) -> dict[str, Json]:
    params = value.get("params", {})
    if not isinstance(params, dict):
        raise _NoMessageError("params are an object", INVALID_PARAMS)
    return params


def _error(value: dict[str, Json]) -> dict[str, Json]:
    error = value["error"]
    if not isinstance(error, dict):
        raise _NoMessageError("an error is an object")
    if type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        raise _NoMessageError("an error has a number as its code, and a message")
    return error


def _concerned(value: Json, sender: Sender) -> Id | None:
    """Return the request of the agent's that a malformed line is, or was to answer."""
    if not isinstance(value, dict):
        return None
    match sender:
        case Sender.AGENT:
            is_the_agents = "method" in value or not value.keys() & {"result", "error"}
        case Sender.SERVER:
            is_the_agents = "method" not in value
        case _:
            assert_never(sender)
    return as_id(value.get("id")) if is_the_agents else None


def without(params: dict[str, Json], *keys: str) -> dict[str, Json]:
    """Return params without some keys."""
    return {key: params[key] for key in params if key not in keys}


def error_response(request_id: Id | None, code: int, message: str, data: Json = None) -> bytes:
    """Return a JSON-RPC error; without an id it answers what could not be read."""
    told: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        told["data"] = data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": told})


def result_response(request_id: Id, value: Json) -> bytes:
    """Return a JSON-RPC result."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": value})
