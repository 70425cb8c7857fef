"""Webhook body for a pending approval, and its HMAC signature."""

import hashlib
import hmac
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from mcpwrap.core.approval.document import Question
from mcpwrap.core.pins import pin_question
from mcpwrap.core.pins.pin_question import HeldChange, HeldChanges
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text import uris
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.approval_socket import Pending

HEADER = "Mcpwrap-Signature"
PAGE = "http://127.0.0.1:52080/approval/"  # on the machine itself: mcpwrap-web.service
MIN_KEY_CHARS = 32  # 128 bits, in hexadecimal digits
MAX_NAMES = 50
MAX_NAME_CHARS = 100


class AgentPayload(msgspec.Struct, frozen=True):
    """Account that runs the agent."""

    uid: int
    account: str


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Argument without its content: type, as in JSON Schema, and length."""

    type: str
    characters: int | None = None
    items: int | None = None
    keys: int | None = None


class ChangedDefinition(msgspec.Struct, frozen=True):
    """Definition that is held back, without its text."""

    kind: str
    name: str
    change: str  # added, changed
    findings: tuple[str, ...]  # by name


class WebhookPayload(msgspec.Struct, frozen=True, kw_only=True):
    """Body of a POST. Times are RFC 3339, UTC."""

    event: str = "approval.pending"
    machine: str
    id: str
    server: str
    method: str
    target: str  # the tool, or a URI without its query
    agent: AgentPayload
    rule: str
    message: str
    size: int  # in bytes, of the document that is approved
    sha256: str
    asked_at: str
    expires_at: str  # "" if it does not expire
    arguments: dict[str, Value]  # by name; at most `MAX_NAMES`
    arguments_left_out: int
    url: str
    # Of method `pins` alone; at most `MAX_NAMES`.
    definitions: tuple[ChangedDefinition, ...] | UnsetType = UNSET
    definitions_left_out: int | UnsetType = UNSET


def posted(pending: Pending, question: Question, *, account: str, machine: str) -> WebhookPayload:
    """Return the body for a request: agent, tool and arguments, without the arguments' values."""
    is_on_definitions = question.method == pin_question.METHOD
    given = {} if is_on_definitions else _arguments(question)
    shown = {visible(n)[:MAX_NAME_CHARS]: _described(given[n]) for n in sorted(given)[:MAX_NAMES]}
    body = WebhookPayload(
        machine=machine,
        id=pending.id,
        server=pending.server,
        method=pending.method,
        target=pending.target if is_on_definitions else uris.bare(pending.target),
        agent=AgentPayload(pending.agent_uid, account),
        rule=pending.rule,
        message=pending.message,
        size=pending.size,
        sha256=pending.digest,
        asked_at=_time(pending.asked_at),
        expires_at=_time(pending.expires_at) if pending.expires_at else "",
        arguments=shown,
        arguments_left_out=len(given) - len(shown),
        url=PAGE + pending.id,
    )
    return _with_definitions(body, pin_question.changes_in(question)) if is_on_definitions else body


def signature(key: bytes, at_s: int, body: bytes) -> str:
    """Return the value of `HEADER`. It signs the time too, so that an old POST is recognized."""
    mac = hmac.new(key, b"%d." % at_s + body, hashlib.sha256)
    return f"t={at_s},v1={mac.hexdigest()}"


def _arguments(question: Question) -> dict[str, Json]:
    """Return the arguments of a tool or prompt; for other methods all params."""
    given = question.params.get("arguments", {})
    if "arguments" not in question.params or not isinstance(given, dict):
        return dict(question.params)
    return given


def _with_definitions(body: WebhookPayload, changes: HeldChanges) -> WebhookPayload:
    return replace(
        body,
        definitions=tuple(map(_changed, changes.changes[:MAX_NAMES])),
        definitions_left_out=max(0, len(changes.changes) - MAX_NAMES) + changes.more,
    )


def _changed(one: HeldChange) -> ChangedDefinition:
    names = tuple(sorted({each.name for each in one.findings}))
    return ChangedDefinition(one.kind, visible(one.name)[:MAX_NAME_CHARS], one.what, names)


def _described(value: Json) -> Value:
    match value:
        case None:
            return Value("null")
        case bool():
            return Value("boolean")
        case int() | float():
            return Value("number")
        case str():
            return Value("string", characters=len(value))
        case list():
            return Value("array", items=len(value))
        case _:
            return Value("object", keys=len(value))


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
