"""Protocol of the approval socket, `/run/mcpwrap/approve.sock`: lists, decisions and logins.

The socket is a SOCK_SEQPACKET (unix(7)): one packet is one message.

person → gate   lines of text: a verb, and its fields. Only the reason, the last field of
                `DecideRequest`, may have a newline. The gate splits them and decodes nothing.
gate → person   JSON. The reply to `list` is a `Pending` for each question, and then `EndOfList`;
                after `watch` these are sent again whenever something has changed. `DocumentReply`
                comes with the documents, `PinsReply` with the report on a server's pins, and
                `RulesReply` with the rules for a server.

    list | watch | show ID | pins SERVER | rules SERVER | reset-pins SERVER | saved-rules |
    revoke ID | login USER PASSWORD | decide …, with the fields of `DecideRequest`
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, assert_never

import msgspec

MAX_BYTES = 16 * 1024
MAX_REASON_BYTES = 1024
MAX_PASSWORD_BYTES = 1024
MAX_TIMES = 100  # requests that one approval is valid for
MINUTES = 10  # length of `Scope.MINUTES`
PAGE_SOCKET = "mcpwrap-web.socket"  # off by default, so no text names the page alone
PAGE_URL = "http://127.0.0.1:52080/approval/"  # of a question, by its id
_DECIDE_FIELDS = 14
May = Literal["yes", "proof", "no"]  # what an account may do: with a proof, or without one


class Verdict(StrEnum):
    """Decision of a person on a request."""

    APPROVE = "approve"
    DENY = "deny"
    DENY_AND_STOP = "deny-and-stop"  # also ends the requesting sessions, with their servers


class Scope(StrEnum):
    """Validity of an approval, which is for the same request only."""

    ONCE = "once"
    MINUTES = "minutes"
    SESSION = "session"
    RULE = "rule"  # this request, and those that the saved approval rule covers


class Channel(StrEnum):
    """Channel of an answer, as reported by the program that sends it; recorded in the audit."""

    COMMAND = "command"
    TERMINAL = "terminal"
    WEB = "web"
    CLIENT = "client"  # the agent's own window, by elicitation of the gate


# Of such an answer, in place of a channel, wherever an approver is named.
IN_OWN_WINDOW = "in the agent's own window"


class Proof(StrEnum):
    """Authentication of an answer, in addition to the account that connects."""

    NONE = "none"
    PASSWORD = "password"  # noqa: S105  # the name of a proof
    POLKIT = "polkit"


class ListRequest(msgspec.Struct, frozen=True):
    """Request for the list of pending questions."""


class WatchRequest(msgspec.Struct, frozen=True):
    """Request for the list of pending questions, now and after each change."""


class ShowRequest(msgspec.Struct, frozen=True):
    """Request for the document of one question."""

    id: str


class PinsRequest(msgspec.Struct, frozen=True):
    """Request for the report on the pins of one server (`core/pins/pins_report.py`)."""

    server: str


class RulesRequest(msgspec.Struct, frozen=True):
    """Request for the rules for one server, which its agents may send (`core/policy/rules.py`)."""

    server: str


class ResetPinsRequest(msgspec.Struct, frozen=True):
    """Request to begin the pins of one server anew, which only root may send."""

    server: str


class SavedRulesRequest(msgspec.Struct, frozen=True):
    """Request for the approval rules of the agents that the account may see."""


class RevokeRequest(msgspec.Struct, frozen=True):
    """Request to remove one approval rule, which only narrows what passes."""

    id: str


class LoginRequest(msgspec.Struct, frozen=True):
    """Check of an account's password. The reply is `DoneReply` or `RefusedReply`."""

    user: str
    password: bytes


class DecideRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to one question. The fields are sent in this order."""

    id: str
    digest: str  # of the document that was shown
    verdict: Verdict
    scope: Scope = Scope.ONCE
    times: int = 1  # how often it may run within the scope: 1 to `MAX_TIMES`
    channel: Channel = Channel.COMMAND
    proof: Proof = Proof.NONE
    user: str = ""  # whose password it is
    password: bytes = b""
    # Of a question on definitions: prefixes of their digests, joined by commas; "" is all of them.
    subset: str = ""
    with_findings: bool = False  # accept definitions in which something was found, where strict
    process_start: int = 0  # for polkit: field 22 of proc_pid_stat(5) of the approver's process
    rule: str = ""  # of `Scope.RULE`: as core/approval/approval_rule.py encodes a `RuleRequest`
    reason: bytes = b""  # for the agent, in UTF-8


FromApprover = (
    ListRequest
    | WatchRequest
    | ShowRequest
    | PinsRequest
    | RulesRequest
    | ResetPinsRequest
    | SavedRulesRequest
    | RevokeRequest
    | LoginRequest
    | DecideRequest
)


class _ToApprover(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what"):
    pass


class Pending(_ToApprover, frozen=True, tag="pending"):
    """One pending question. Texts are printable; times are in seconds since 1970."""

    id: str
    digest: str
    size: int  # of the document, in bytes
    agent_uid: int
    server: str
    session: str  # by its name in the audit
    method: str
    target: str
    rule: str
    message: str  # the rule's
    asked_at: float
    expires_at: float  # 0 is never
    times: int  # number of requests for it
    waiting: int  # requests that are held for it; the others are suspended and will retry
    may: May  # whether the account that lists it may answer it
    may_save: May = "no"  # whether it may save an approval as a rule
    asking: tuple[str, ...] = ()  # all policy rules that ask
    deciding: tuple[str, ...] = ()  # arguments that these rules are about, to be shown first
    exact: tuple[str, ...] = ()  # arguments that an approval rule must not let vary; "*": all
    has_preview: bool = False  # what the call would change was read, after it began to wait


class Paused(_ToApprover, frozen=True, tag="paused"):
    """Agent whose requests are refused for a while, without an approver being asked."""

    agent_uid: int
    server: str
    why: str
    until: float


class EndOfList(_ToApprover, frozen=True, tag="end"):
    """End of the list of pending questions."""


class DocumentReply(_ToApprover, frozen=True, tag="shown"):
    """Reply to `ShowRequest`, with descriptors: the document, preview and last approved document.

    The last two may be missing. The preview is of `core/approval/views/preview.py`.
    """

    id: str
    digest: str
    has_preview: bool = False


class PinsReply(_ToApprover, frozen=True, tag="pins"):
    """Reply to `PinsRequest`, with a descriptor: the report."""

    may: May  # whether the account may answer the question on it


class RulesReply(_ToApprover, frozen=True, tag="rules"):
    """Reply to `RulesRequest`, with a descriptor: the part of the policy for the server."""


class SavedRulesReply(_ToApprover, frozen=True, tag="saved"):
    """Reply to `SavedRulesRequest`, with a descriptor: a list of `ApprovalRule`, as JSON."""


class DoneReply(_ToApprover, frozen=True, tag="done"):
    """Success of a decision or a login."""

    text: str
    user: str = ""


class RefusedReply(_ToApprover, frozen=True, tag="refused"):
    """Refusal of a packet from a person; nothing was decided."""

    code: Literal["gone", "not-you", "proof", "changed", "late", "busy", "wrong"]
    why: str


ToApprover = (
    Pending
    | Paused
    | EndOfList
    | DocumentReply
    | PinsReply
    | RulesReply
    | SavedRulesReply
    | DoneReply
    | RefusedReply
)


_DECODER = msgspec.json.Decoder(ToApprover)


_Named = ShowRequest | PinsRequest | RulesRequest | ResetPinsRequest | RevokeRequest
_VERB_BY_KIND: Mapping[type[_Named], str] = {
    ShowRequest: "show",
    PinsRequest: "pins",
    RulesRequest: "rules",
    ResetPinsRequest: "reset-pins",
    RevokeRequest: "revoke",
}
_KIND_BY_VERB = {verb.encode(): kind for kind, verb in _VERB_BY_KIND.items()}


class ApprovalProtocolError(ValueError):
    """Malformed packet: not one of this protocol."""


def encode_question(packet: FromApprover) -> bytes:
    """Return the bytes of a person's packet.

    Raises:
        ApprovalProtocolError: a typed text has a newline, and would be read as two fields.
    """
    match packet:
        case ListRequest():
            return b"list"
        case WatchRequest():
            return b"watch"
        case SavedRulesRequest():
            return b"saved-rules"
        case (
            ShowRequest(name)
            | PinsRequest(name)
            | RulesRequest(name)
            | ResetPinsRequest(name)
            | RevokeRequest(name)
        ):
            return _lines(_VERB_BY_KIND[type(packet)], name)
        case LoginRequest(user, password):
            return _lines("login", user, password)
        case DecideRequest():
            *names, _ = packet.__struct_fields__
            fields = (getattr(packet, name) for name in names)
            return _lines("decide", *fields) + b"\n" + packet.reason
        case _:
            assert_never(packet)


def _lines(*fields: str | int | bytes) -> bytes:
    parts = [one if isinstance(one, bytes) else str(one).encode() for one in fields]
    if any(b"\n" in part for part in parts):
        raise ApprovalProtocolError("a field must not have a newline")
    return b"\n".join(parts)


def decode_question(untrusted: bytes) -> FromApprover:
    """Parse a person's packet.

    Raises:
        ApprovalProtocolError: it is malformed.
    """
    try:
        match untrusted.split(b"\n", _DECIDE_FIELDS):
            case [b"list"]:
                return ListRequest()
            case [b"watch"]:
                return WatchRequest()
            case [b"saved-rules"]:
                return SavedRulesRequest()
            case [verb, name] if verb in _KIND_BY_VERB:
                return _KIND_BY_VERB[verb](name.decode("ascii"))
            case [b"login", user, password]:
                return LoginRequest(user.decode("ascii"), password[:MAX_PASSWORD_BYTES])
            case [b"decide", *fields] if len(fields) == _DECIDE_FIELDS:
                return _decide(fields)
            case _:
                raise ApprovalProtocolError("a packet of an unknown kind")
    except ValueError as error:  # UnicodeDecodeError is one
        raise ApprovalProtocolError(f"malformed packet: {error}") from error


def _decide(fields: list[bytes]) -> DecideRequest:
    *texts, password, subset, with_findings, start, rule, reason = fields
    id_, digest, verdict, scope, times, channel, proof, user = (
        text.decode("ascii") for text in texts
    )
    if not 1 <= int(times) <= MAX_TIMES:
        raise ApprovalProtocolError(f"an approval is valid for 1 to {MAX_TIMES} requests")
    if with_findings not in {b"True", b"False"}:
        raise ApprovalProtocolError("a flag that is neither True nor False")
    return DecideRequest(
        id=id_,
        digest=digest,
        verdict=Verdict(verdict),
        scope=Scope(scope),
        times=int(times),
        channel=Channel(channel),
        proof=Proof(proof),
        user=user,
        password=password[:MAX_PASSWORD_BYTES],
        subset=subset.decode("ascii"),
        with_findings=with_findings == b"True",
        process_start=int(start),
        rule=rule.decode(),
        reason=reason[:MAX_REASON_BYTES],
    )


def encode(packet: ToApprover) -> bytes:
    """Return the bytes of the gate's packet."""
    return msgspec.json.encode(packet)


def decode(packet: bytes) -> ToApprover:
    """Parse a packet of the gate, which is trusted.

    Raises:
        msgspec.MsgspecError: it is of another version.
    """
    decoded: ToApprover = _DECODER.decode(packet)
    return decoded
