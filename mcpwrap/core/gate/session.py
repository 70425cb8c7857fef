"""Session state between messages, and the outcome of one message."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from mcpwrap.core.approval.client_forms import NO_CLIENT, ClientIdentity
from mcpwrap.core.approval.views.open_previews import Previews
from mcpwrap.core.gate.executed_code import RunReport
from mcpwrap.core.gate.in_flight import InFlight
from mcpwrap.core.gate.pending_approvals import PendingApproval, PendingApprovals
from mcpwrap.core.gate.ports import Approvals, Audit, Collector, PinCheck, PolicyOwner
from mcpwrap.core.pins.definitions import Definition, listed_definitions
from mcpwrap.core.policy.arguments.kinds import KnownTools
from mcpwrap.core.policy.decision import CallLimiter, Decision, Judgement, ServerPolicy
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, Notification, as_id
from mcpwrap.core.protocol.methods import CANCELLED, PROGRESS, TOOLS_LIST, PolicyScope, is_known
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.text.uris import bare

MAX_TASKS = 16_384
MAX_TOOLS = 4096  # servers have tens
_OUTPUT_SCHEMA = b'"outputSchema"'  # in the canonical text of a definition
_MANY = ""  # key for all tools beyond these: if one changes, all count as changed


class NoteKind(StrEnum):
    """Category of a note in the journal."""

    BLOCKED = "blocked"  # by the policy
    LOGGED = "logged"  # a rule that only watches matched
    LIMITED = "limited"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"  # a method that is not MCP, and that no rule names
    DROPPED = "dropped"  # a response to no request, or a request where none is allowed
    UNRECORDED = "unrecorded"  # the audit could not be written, so nothing was done
    HELD = "held"  # until a person decides
    DENIED = "denied"  # by a person
    EXPIRED = "expired"  # no person answered in time
    UNASKED = "unasked"  # no person could be asked
    SUSPENDED = "suspended"  # the agent is told to retry
    WITHDRAWN = "withdrawn"  # cancelled by the agent
    UNANSWERED = "unanswered"  # the server ended first
    UNACCEPTED = "unaccepted"  # what the server says of its target was not accepted


class JournalNote(msgspec.Struct, frozen=True):
    """Line for the journal, escaped, without the values of arguments."""

    kind: NoteKind
    text: str
    rule: str = ""
    target: str = ""  # of what is refused: a tool, a URI or a prompt


class Approval(msgspec.Struct, frozen=True):
    """Approval question on a request, and the person who answered it."""

    id: str
    shown: str
    by: str = ""


class MessageOutcome(msgspec.Struct, frozen=True):
    """Outcome of a message: what to forward, reply and log. The JSON has no newlines."""

    forward: bytes | None = None
    answer: bytes | None = None
    notes: tuple[JournalNote, ...] = ()
    rule: str = ""  # that allowed it, if one did
    is_changed: bool = False  # what is forwarded is not what was received
    approval: Approval | None = None
    held: PendingApproval | None = None  # the request is held, and nothing is forwarded
    run: RunReport | None = None  # of code that the server has executed
    told: str = ""  # a line for the agent's user


@dataclass(slots=True)
class SessionState:
    """State of one session, kept between messages."""

    policy: ServerPolicy
    limits: CallLimiter
    audit: Audit
    approvals: Approvals
    executes: bool = False  # code: each call is audited with it, and each response with its run
    previews: Previews = field(default_factory=Previews)
    collector: Collector | None = None  # of the definitions of a member of hubs
    pins: PinCheck | None = None  # None for a server whose definitions are not pinned
    pending_approvals: PendingApprovals = field(init=False)
    now_s: float = 0.0  # of a monotonic clock
    can_elicit: bool = False  # the agent's handshake declares elicitation forms
    client: ClientIdentity = NO_CLIENT  # by its handshake
    owner: PolicyOwner | None = None  # whom refusals name
    advice: str = ""  # of mcpwrap to the agent, after the server's own instructions
    # Hashes of tools as the server listed them first, and last.
    tools: dict[str, tuple[str, str]] = field(default_factory=dict)
    known_tools: KnownTools = field(default_factory=KnownTools)
    tools_with_schema: set[str] = field(default_factory=set)  # of what they return
    size: int = 0  # of the line that is judged, in bytes
    requests_from_agent: InFlight = field(default_factory=InFlight)
    requests_from_server: InFlight = field(default_factory=InFlight)
    version: str = ""  # of the handshake, or of the first answered request that has its own
    has_handshake: bool = False  # the agent began one, so the server may send requests
    has_logging: bool = False  # the server's handshake declares log messages
    log_level: str = ""  # which the agent has set; "" if it has not
    tool_by_task: dict[str, str] = field(default_factory=dict)  # oldest first
    # Tasks whose end is not reported to the limits, each with the digest of its call.
    unreported_tasks: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pending_approvals = PendingApprovals(self.approvals.state_key)

    def remember_tools(self, listed: Json) -> None:
        """Store hashes of the tools as the server lists them."""
        entries = listed if isinstance(listed, list) else []
        self.remember_definitions(listed_definitions(TOOLS_LIST, entries))

    def remember_definitions(self, listed: Iterable[Definition]) -> None:
        """Store the digests of tools as the server lists them."""
        for tool in listed:
            name = tool.key.name
            key = name if name in self.tools or len(self.tools) < MAX_TOOLS else _MANY
            first, last = self.tools.get(key, (tool.digest, ""))
            self.tools[key] = first, tool.digest
            if last != tool.digest:
                self.known_tools.take(name, tool.text)
            if _OUTPUT_SCHEMA in tool.text:  # a mention elsewhere in the definition counts too
                self.tools_with_schema.add(key)
        self.policy.learn(self.known_tools)

    def has_no_output_schema(self, tool: str) -> bool:
        """Return whether the server has listed this tool, and never with an output schema."""
        return tool in self.tools and tool not in self.tools_with_schema

    def definition_of(self, tool: str) -> str:
        """Return the hash of a tool that has changed since the server first listed it.

        "" for an unchanged one: clients list tools before the first call of one, or after it.
        """
        first, now = self.tools.get(tool) or self.tools.get(_MANY, ("", ""))
        return now if now != first else ""

    def remember_task(self, task: str, tool: str) -> bool:
        """Remember the tool of a task, as first reported; return whether the task is new.

        Requests for the result of a forgotten task are refused.
        """
        if task in self.tool_by_task:
            return False
        self.tool_by_task[task] = tool
        if len(self.tool_by_task) > MAX_TASKS:
            oldest = next(iter(self.tool_by_task))
            del self.tool_by_task[oldest]
            self.unreported_tasks.pop(oldest, None)
        return True

    def names(self, method: str) -> bool:
        """Return whether a rule allows a method that is not in the table of MCP methods.

        Rules know no direction: one that allows `tools/call` does not mean that the server may
        send that to the agent.
        """
        return not is_known(method) and self.policy.names(method)

    def judge(self, way: PolicyScope, method: str, params: Mapping[str, Json]) -> Judgement:
        """Judge a request or a notification by the session's policy, within its scope."""
        return judged(self.policy, way, method, params)


ALLOWED = Judgement(Decision.ALLOW)


def judged(
    policy: ServerPolicy, way: PolicyScope, method: str, params: Mapping[str, Json]
) -> Judgement:
    """Judge a request or a notification by a policy, within its scope."""
    if way is PolicyScope.FORWARD:
        return ALLOWED
    judgement = policy.judge(method, params)
    if way is PolicyScope.BY_RULE and not judgement.rule and is_refused(judgement):
        return Judgement(Decision.ALLOW, notes=judgement.notes)
    return judgement


def is_refused(judgement: Judgement) -> bool:
    """Return whether a message must not pass. One that needs approval has none yet."""
    return judgement.decision is not Decision.ALLOW


def pass_notification(
    session: SessionState, notification: Notification, way: PolicyScope | None, json: bytes
) -> MessageOutcome:
    """Judge a notification. A refused one is dropped, since a notification has no response."""
    about = subject(notification.method)
    if way is None:
        if not session.names(notification.method):
            return MessageOutcome(notes=(JournalNote(NoteKind.UNKNOWN, f"{about}: dropped"),))
        way = PolicyScope.JUDGE
    if notification.method == PROGRESS and as_id(notification.params.get("progressToken")) is None:
        return MessageOutcome(
            notes=(JournalNote(NoteKind.MALFORMED, f"{about}: no progressToken"),)
        )
    judgement = session.judge(way, notification.method, notification.params)
    if is_refused(judgement):
        return MessageOutcome(notes=blocked(about, judgement))
    return MessageOutcome(forward=json, notes=logged(about, judgement.notes), rule=judgement.rule)


def cancel(in_flight: InFlight, request_id: Id, json: bytes) -> MessageOutcome:
    """Handle `notifications/cancelled`: forward it, or drop it if too many requests are cancelled.

    No receiver has to obey it, so it can be dropped while too many responses are to come.
    """
    if in_flight.cancel(request_id):
        return MessageOutcome(forward=json)
    about = subject(CANCELLED, request_id=request_id)
    reason = "too many cancelled requests have no response yet"
    return MessageOutcome(notes=(JournalNote(NoteKind.LIMITED, f"{about}: {reason}"),))


def logged(about: str, rules: Iterable[str]) -> tuple[JournalNote, ...]:
    """Return a note for each rule that matched a message and only watches."""
    return tuple(
        JournalNote(NoteKind.LOGGED, f"{about}: rule {shown(rule)}", rule) for rule in rules
    )


def blocked(about: str, judgement: Judgement, target: str = "") -> tuple[JournalNote, ...]:
    """Return the notes on a message that the policy refuses."""
    by = f"rule {shown(judgement.rule)}" if judgement.rule else "no rule allows it"
    asks = "needs approval, " if judgement.decision is Decision.NEEDS_APPROVAL else ""
    note = JournalNote(NoteKind.BLOCKED, f"{about}: {asks}{by}", judgement.rule, target)
    return (*logged(about, judgement.notes), note)


def subject(method: str, target: str = "", request_id: Id | None = None) -> str:
    """Return a message's name in the journal: parts without spaces, so that none fakes another."""
    parts = [method, bare(target), "" if request_id is None else f"id={request_id}"]
    return " ".join(shown(part).replace(" ", "\\x20") for part in parts if part)
