"""JSON-RPC parser for one line of bytes (https://www.jsonrpc.org/specification).

The forwarded text is the decoded message, encoded again: never the received bytes, in which another
parser might find another message.
"""

from enum import Enum
from typing import assert_never

import msgspec

from mcpwrap.core.protocol import json_keys, strict_json
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.strict_json import MAX_DEPTH, NotJsonError, TooDeepError, encode

Id = int | str

# Section 5.1.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MAX_ID_CHARS = 256
MAX_BATCH = 1024  # messages; the official SDKs write one on each line
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

    `id` is the id of an agent's request: of the malformed line itself, or of the one that it was to
    answer. None if it cannot be read, or if the request would be the server's.
    """

    code: int
    reason: str
    id: Id | None = None


class Batch(msgspec.Struct, frozen=True):
    """Batch of messages, which only the revision 2025-03-26 has."""

    items: tuple[Decoded | Malformed, ...]


class InvalidBatch(msgspec.Struct, frozen=True):
    """Refused array: empty, too long, or in a revision without batches.

    Its elements are not judged; `answers` are the ids of the requests that it would have answered.
    """

    answers: tuple[Id, ...]


def decode(
    line: bytes, sender: Sender, max_batch: int
) -> Decoded | Batch | InvalidBatch | Malformed:
    """Parse one line, which may be a batch of up to `max_batch` messages; with 0 it may not.

    Repeated keys are refused: at any depth in an agent's line, at the top in a server's. Further
    down in a server's line the last one counts, since some servers do repeat keys. An agent's keys
    that are others to some servers (`json_keys.flaw`) are refused too.
    """
    if not max_batch and sender is Sender.AGENT and line.lstrip().startswith(b"["):
        return InvalidBatch(())  # no agent waits for a response in it, so it is not even parsed
    try:
        value = strict_json.decode(line)
    except TooDeepError:
        found = _concerned(strict_json.salvage(line), sender)
        return Malformed(INVALID_REQUEST, f"nested deeper than {MAX_DEPTH}", found)
    except NotJsonError:
        found = _concerned(strict_json.salvage(line), sender)
        return Malformed(PARSE_ERROR, "not JSON in UTF-8 that all parsers read alike", found)
    return _read_line(line, value, sender, max_batch)


def _read_line(
    line: bytes, value: Json, sender: Sender, max_batch: int
) -> Decoded | Batch | InvalidBatch | Malformed:
    if isinstance(value, list) and not 0 < len(value) <= max_batch:
        return InvalidBatch(_answers_in(value, sender))
    json = encode(value)
    if line != json and _REPEATS[sender](line, json):
        return Malformed(INVALID_REQUEST, "a key is repeated", _concerned(value, sender))
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
# With a key too many, too few or in other capitals a set is not one of these.
_NOTIFICATION = [frozenset({"jsonrpc", "method"}), frozenset({"jsonrpc", "method", "params"})]
_REQUEST = [keys | {"id"} for keys in _NOTIFICATION]
_RESULT = frozenset({"jsonrpc", "id", "result"})
_FAILURE = frozenset({"jsonrpc", "id", "error"})


class _MalformedError(ValueError):
    def __init__(self, reason: str, code: int = INVALID_REQUEST) -> None:
        super().__init__(reason)
        self.code = code


def _read(value: Json, json: bytes, sender: Sender) -> Decoded | Malformed:
    try:
        return Decoded(_message(value), json)
    except _MalformedError as error:
        return Malformed(error.code, str(error), _concerned(value, sender))


def _message(value: Json) -> Message:
    if not isinstance(value, dict):
        raise _MalformedError("a message must be an object")
    if value.get("jsonrpc") != _VERSION:
        raise _MalformedError(f'"jsonrpc" is not "{_VERSION}"')
    keys = frozenset(value)
    if keys in _REQUEST:
        return Request(_id(value), _method(value), _params(value))
    if keys in _NOTIFICATION:
        return Notification(_method(value), _params(value))
    if keys == _RESULT:
        return Result(_id(value), value["result"])
    if keys == _FAILURE:
        return Failure(_id(value), _error(value))
    raise _MalformedError("its keys are not those of a request, notification, result or error")


def as_id(value: Json) -> Id | None:
    """Return the value if it is a valid id, else None.

    True is an int to Python and 1.0 equals 1, but neither is an id. Nor is a text with a NUL, at
    which some servers end it: they would answer another request.
    """
    if isinstance(value, str):
        return value if len(value) <= MAX_ID_CHARS and value.isprintable() else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -MAX_ID <= value <= MAX_ID else None
    return None


def _id(value: dict[str, Json]) -> Id:
    found = as_id(value.get("id"))
    if found is None:
        raise _MalformedError(
            f"an id must be an integer or a printable string of at most {MAX_ID_CHARS} characters"
        )
    return found


def _method(value: dict[str, Json]) -> str:
    method = value["method"]
    if not isinstance(method, str):
        raise _MalformedError("a method must be a string")
    if not method.isprintable() and json_keys.has_control_characters(method):
        raise _MalformedError("a method must not have control characters")
    return method


def _params(value: dict[str, Json]) -> dict[str, Json]:
    params = value.get("params", {})
    if not isinstance(params, dict):
        raise _MalformedError("params must be an object", INVALID_PARAMS)
    return params


def _error(value: dict[str, Json]) -> dict[str, Json]:
    error = value["error"]
    if not isinstance(error, dict):
        raise _MalformedError("an error must be an object")
    if type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        raise _MalformedError("an error must have an integer as its code, and a message")
    return error


def _concerned(value: Json, sender: Sender) -> Id | None:
    """Return the id of the agent's request that a malformed line is, or was to answer."""
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
    """Return a JSON-RPC error; its id is null if that of the request could not be read."""
    error: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def result_response(request_id: Id, value: Json) -> bytes:
    """Return a JSON-RPC result."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": value})


def failed_call(text: str, era: ProtocolEra) -> dict[str, Json]:
    """Return a refusal as a tool's result: models read it, while an error ends at the client."""
    refusal: dict[str, Json] = {"content": [{"type": "text", "text": text}], "isError": True}
    if era is ProtocolEra.MODERN:
        refusal["resultType"] = "complete"
    return refusal
