"""HTTP POST of one line to a remote server: its body, and the values that its headers repeat."""

from collections.abc import Iterator, Mapping
from enum import Enum

import msgspec

from mcpwrap.core.http import in_band_tags, param_headers
from mcpwrap.core.protocol import strict_json
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, as_id
from mcpwrap.core.protocol.methods import CANCELLED, INITIALIZE, PROTOCOL_VERSION, TARGET_KEY
from mcpwrap.core.protocol.strict_json import NotJsonError

INITIALIZED = "notifications/initialized"
# The tasks extension, beside the targets that the policy knows.
_NAME_KEY: Mapping[str, str] = {"tasks/update": "taskId", "tasks/cancel": "taskId"}
# The specification defines a name for no other method.
_NAMED = frozenset({"tools/call", "prompts/get", "resources/read", "tasks/get", *_NAME_KEY})


class HandshakeStep(Enum):
    """Role of a line in the handshake."""

    INITIALIZE = "initialize"
    INITIALIZED = "initialized"
    OTHER = "other"


class UpstreamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or a batch of 2025-03-26, as it is sent to the server."""

    body: bytes
    method_by_id: dict[Id, str]  # of the requests, each of which needs a response
    step: HandshakeStep = HandshakeStep.OTHER
    tagged: tuple[Id, ...] = ()  # the requests whose sender understands the in-band tags
    method: str = ""  # "" for a response, or a batch
    version: str = ""  # of the envelope; "" in the handshake era
    name: str | None = None
    params: dict[str, Json] = {}
    param_headers: dict[str, str] | None = None  # None: the agent's headers are not known
    cancels: Id | None = None

    def is_answer(self) -> bool:
        """Return whether this is a response, or a batch without requests."""
        return not self.method and not self.method_by_id


def read(line: bytes) -> UpstreamRequest:
    """Parse a line from the gate.

    Raises:
        ValueError: it is not a message; the gate does not send such a line.
    """
    value = strict_json.decode(line)
    if isinstance(value, list):
        return _batch(value)
    if not isinstance(value, dict):
        raise NotJsonError("a message is an object")
    bare, tag = in_band_tags.take_headers(value)
    method, params = bare.get("method"), bare.get("params")
    if not isinstance(method, str):
        return UpstreamRequest(body=strict_json.encode(bare), method_by_id={})
    params = params if isinstance(params, dict) else {}
    method_by_id, version = dict(_requests([bare])), _version(params)
    return UpstreamRequest(
        body=strict_json.encode(bare),
        method_by_id=method_by_id,
        step=HandshakeStep.OTHER if version else _STEPS.get(method, HandshakeStep.OTHER),
        tagged=() if tag is None else tuple(method_by_id),
        method=method,
        version=version,
        name=_name(method, params),
        params=params,
        param_headers=None
        if tag is None
        else param_headers.forwardable(tag, params.get("arguments")),
        cancels=as_id(params.get("requestId")) if method == CANCELLED else None,
    )


_STEPS = {INITIALIZE: HandshakeStep.INITIALIZE, INITIALIZED: HandshakeStep.INITIALIZED}


def _batch(elements: list[Json]) -> UpstreamRequest:
    taken = [in_band_tags.take_headers(one) for one in elements if isinstance(one, dict)]
    bare = [message for message, _ in taken]
    return UpstreamRequest(
        body=strict_json.encode(list[Json](bare)),
        method_by_id=dict(_requests(bare)),
        tagged=tuple(dict(_requests([message for message, tag in taken if tag is not None]))),
    )


def _requests(messages: list[dict[str, Json]]) -> Iterator[tuple[Id, str]]:
    for message in messages:
        request_id, method = as_id(message.get("id")), message.get("method")
        if request_id is not None and isinstance(method, str):
            yield request_id, method


def _version(params: Mapping[str, Json]) -> str:
    meta = params.get("_meta")
    version = meta.get(PROTOCOL_VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else ""


def _name(method: str, params: Mapping[str, Json]) -> str | None:
    key = _NAME_KEY.get(method) or TARGET_KEY.get(method, "")
    name = params.get(key) if method in _NAMED else None
    return name if isinstance(name, str) else None
