"""Messages of a hub, decoded no deeper than their keys: all else passes byte for byte.

The gates on both sides of a hub have judged each line, so it is one JSON object with the keys of a
message. Only a batch (2025-03-26) is an array of them.
"""

import msgspec

from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, as_id

Fields = dict[str, msgspec.Raw]  # members of an object, in their order


class RawMessage(msgspec.Struct, frozen=True, gc=False):
    """Message with its params, result or error as JSON text."""

    id: Id | None = None
    method: str = ""  # "" is a response
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class NotAMessageError(ValueError):
    """Line that is not a message."""


_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_DECODER = msgspec.json.Decoder(RawMessage)
_BATCH_DECODER = msgspec.json.Decoder(list[RawMessage])
_OBJECT_DECODER = msgspec.json.Decoder(Fields)
_ELEMENTS_DECODER = msgspec.json.Decoder(list[msgspec.Raw])
_VALUE_DECODER: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


def decode(line: bytes) -> list[RawMessage]:
    """Return the message of a line, or the messages of a batch.

    Raises:
        NotAMessageError: it is neither.
    """
    try:
        is_batch = line.lstrip().startswith(b"[")
        messages = _BATCH_DECODER.decode(line) if is_batch else [_DECODER.decode(line)]
    except _NOT_JSON as error:
        raise NotAMessageError from error
    if not all(message.method or _is_response(message) for message in messages):
        raise NotAMessageError
    return messages


def _is_response(message: RawMessage) -> bool:
    has_error = bool(bytes(message.error))
    return message.id is not None and has_error is not bool(bytes(message.result))


def fields_of(raw: msgspec.Raw | bytes) -> Fields:
    """Return the members of an object, each as JSON text; of another value, none."""
    try:
        return _OBJECT_DECODER.decode(raw)
    except _NOT_JSON:
        return {}


def elements_of(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    """Return the elements of an array, each as JSON text; of another value, none."""
    try:
        return [] if raw is None else _ELEMENTS_DECODER.decode(raw)
    except _NOT_JSON:
        return []


def value_of(raw: msgspec.Raw | bytes) -> Json:
    """Return a value; None for text that is not JSON."""
    try:
        return _VALUE_DECODER.decode(raw)
    except _NOT_JSON:
        return None


def fields_at(fields: Fields, key: str) -> Fields:
    """Return the members of the object at a key; none if it is another value."""
    raw = fields.get(key)
    return {} if raw is None else fields_of(raw)


def text_at(fields: Fields, key: str) -> str:
    """Return the string at a key; "" if it is another value."""
    raw = fields.get(key)
    found = None if raw is None else value_of(raw)
    return found if isinstance(found, str) else ""


def id_at(fields: Fields, key: str) -> Id | None:
    """Return the id or progress token at a key; None if it is another value."""
    raw = fields.get(key)
    return None if raw is None else as_id(value_of(raw))


def request(request_id: Id, method: str, params: object) -> bytes:
    """Return the line of a request."""
    return _line({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification(method: str, params: object) -> bytes:
    """Return the line of a notification."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def result(request_id: Id, content: object) -> bytes:
    """Return the line of a response."""
    return _line({"jsonrpc": "2.0", "id": request_id, "result": content})


def failure(request_id: Id, code: int, message: str, data: Json = None) -> bytes:
    """Return the line of an error."""
    error: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return _line({"jsonrpc": "2.0", "id": request_id, "error": error})


def failure_as_is(request_id: Id, error: msgspec.Raw) -> bytes:
    """Return the line of an error, as another server sent it."""
    return _line({"jsonrpc": "2.0", "id": request_id, "error": error})


def encoded(content: object) -> msgspec.Raw:
    """Return a value as JSON text; JSON text within it stays as it is."""
    return msgspec.Raw(_encode(content))


def _line(message: object) -> bytes:
    return _encode(message) + b"\n"
