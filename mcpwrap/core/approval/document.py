"""Approval document of a request: the text that approvers see is the text that is approved."""

import hashlib

import msgspec

from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode_sorted

MAX_DOCUMENT_BYTES = 1024 * 1024  # no person reads more than that, so none can approve it


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request, with all fields that identify it, but not `_meta`, which differs each time."""

    agent_uid: int
    server: str
    method: str
    target: str  # a tool, a URI or a prompt
    definition: str  # hash of a tool whose definition has changed since the server first listed it
    params: dict[str, Json]
    policy: str  # its digest


def document(question: Question) -> bytes:
    """Return the text that is shown and approved: equal questions have equal texts."""
    return encode_sorted(msgspec.to_builtins(question))


def digest(shown: bytes) -> str:
    """Return the digest that binds an approval to a document: SHA-256, in hexadecimal digits."""
    return hashlib.sha256(shown).hexdigest()


def read(shown: bytes) -> Question:
    """Return the question in a document.

    Raises:
        msgspec.MsgspecError: it is not a document, or is of another version.
    """
    written = msgspec.json.decode(shown, type=_Written)
    params: dict[str, Json] = msgspec.json.decode(written.params, type=dict)
    return Question(
        agent_uid=written.agent_uid,
        server=written.server,
        method=written.method,
        target=written.target,
        definition=written.definition,
        params=params,
        policy=written.policy,
    )


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Question with its params as raw JSON: msgspec cannot decode `Json`, a recursive type."""

    agent_uid: int
    server: str
    method: str
    target: str
    definition: str
    params: msgspec.Raw
    policy: str
