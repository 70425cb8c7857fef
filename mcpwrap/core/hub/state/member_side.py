"""State of one member in a hub's session: its inner session, and the requests between both."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from mcpwrap.core.hub.lists.list_reader import ListReader
from mcpwrap.core.hub.state.bounded_names import BoundedNames
from mcpwrap.core.hub.state.flood_meter import FloodMeter
from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.raw_message import Fields, RawMessage, fields_of
from mcpwrap.core.wire.hub.hub_catalogue import Definitions

# A wrapper has 30 s to start a server (`session_socket.START_S`), and an npx that downloads longer.
OPEN_S = 120.0
HANDSHAKE_S = 60.0
PROBE_S = 5.0  # some older servers do not answer a method that they do not know
LIST_S = 30.0
REREAD_S = 2.0  # between two readings of lists that a member reports as changed
_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 60.0  # between two starts of a member that fails
_MAX_DOUBLINGS = 6


class Phase(Enum):
    """Phase of a member's inner session."""

    CLOSED = "not started"
    OPENING = "starting"
    HANDSHAKE = "handshake"
    READY = "ready"  # it can take requests; some wait until it has listed what they name


@dataclass(slots=True)
class Round:
    """Call that is repeated when the agent has answered all questions of its result."""

    params: Fields
    missing: set[str]
    responses: dict[str, msgspec.Raw]
    number: int


@dataclass(slots=True)
class OpenRequest:
    """Request of the agent that a member has not answered."""

    agent_id: Id
    request: RawMessage  # with names of the member
    is_modern: bool  # it came with the envelope of 2026-07-28
    has_log_level: bool = False  # in its envelope: the agent wants log messages
    token: Id | None = None  # for its progress, at the member
    questions: list[RawMessage] = field(default_factory=list)  # of the member, not answered yet
    is_cancelled: bool = False  # the agent waits for no response
    is_suspended: bool = False  # the agent was sent a question instead, and has to repeat it
    answer: RawMessage | None = None  # that came meanwhile
    round: Round | None = None

    def as_agent_sent(self) -> RawMessage:
        """Return the request under the id that the agent waits for."""
        return msgspec.structs.replace(self.request, id=self.agent_id)

    def is_awaited(self) -> bool:
        """Return whether the agent waits for a response under `agent_id`."""
        return not (self.is_cancelled or self.is_suspended)


@dataclass(slots=True)
class MemberSide:
    """Member of the hub."""

    name: str
    namespace: str
    refusal: str = ""  # why this agent may not use it
    definitions: Definitions | None = None
    phase: Phase = Phase.CLOSED
    era: ProtocolEra | None = None  # that its handshake has shown
    due_s: float = 0.0  # when the present phase has taken too long
    why: str = ""  # why it is not there: the reason of its last failure
    failures: int = 0  # in a row
    retry_at_s: float = 0.0
    waiting: list[RawMessage] = field(default_factory=list)  # for its start, or its first lists
    open_by_id: dict[Id, OpenRequest] = field(default_factory=dict)  # by the id that it got
    own_by_id: dict[Id, "OwnRequest"] = field(default_factory=dict)  # the hub's own
    token_by_own: dict[Id, Id] = field(default_factory=dict)  # of the agent, by the one that it got
    capabilities: frozenset[str] = frozenset()
    eras_tried: set[ProtocolEra] = field(default_factory=set)
    handshake_error: str = ""  # with which it has refused `initialize`
    session_definitions: Definitions = field(default_factory=Definitions)  # as far as read in it
    list_errors: dict[str, str] = field(default_factory=dict)  # reasons, by method
    to_read: list[str] = field(default_factory=list)  # methods of lists
    unread: set[str] = field(default_factory=set)  # methods of lists not answered in this session
    stale: set[str] = field(default_factory=set)  # methods of lists that it reports as changed
    reread_at_s: float = 0.0  # the earliest time for those; 0 before the first lists of a session
    unlisted: dict[str, BoundedNames] = field(  # by list: names that the agent may know
        default_factory=lambda: {"tools": BoundedNames(), "prompts": BoundedNames()}
    )
    uris: BoundedNames = field(default_factory=BoundedNames)  # named in results
    tasks: BoundedNames = field(default_factory=BoundedNames)  # ids
    agent_tasks: BoundedNames = field(default_factory=BoundedNames)  # of its requests to the agent
    log_level: str = ""  # that was set at it
    followed: set[str] = field(default_factory=set)  # URIs to which the agent has subscribed
    follows: dict[str, Id] = field(default_factory=dict)  # request for each, in this session
    meter: FloodMeter = field(default_factory=FloodMeter)

    def has(self, capability: str) -> bool:
        """Return whether the agent may use it, and it is known to have a capability."""
        known = self.definitions
        return (
            not self.refusal and known is not None and capability in fields_of(known.capabilities)
        )

    def note_unlisted(self, key: str, names: Iterable[str]) -> None:
        """Note names of a list that the agent may know, and that are not listed."""
        for name in names:
            self.unlisted[key].add(name)

    def has_failed(self, why: str, now_s: float) -> None:
        """Note that it could not be started, or ended.

        It may be started again at once, unless it fails again before it has answered anything.
        """
        doublings = min(self.failures - 1, _MAX_DOUBLINGS)
        pause_s = min(_LAST_PAUSE_S, _FIRST_PAUSE_S * 2**doublings) if self.failures else 0.0
        self.failures += 1
        self.why, self.retry_at_s = why, now_s + pause_s

    def mark_ready(self) -> None:
        """Note that it can take requests."""
        self.phase, self.why = Phase.READY, ""

    def is_starting(self) -> bool:
        """Return whether its start has a time limit now. It is asked for with each message."""
        is_open = self.phase is Phase.READY
        return bool(self.waiting) if is_open else self.phase is not Phase.CLOSED

    def is_first_start(self) -> bool:
        """Return whether it is on its way to the first lists that are known of it."""
        return self.definitions is None and not self.why and self.phase is not Phase.CLOSED

    def is_reading(self) -> bool:
        """Return whether it was asked for a list."""
        return any(own.kind is OwnKind.LIST for own in self.own_by_id.values())

    def reread_due_s(self) -> float | None:
        """Return when changed lists are to be read; None if there are none, or others are read."""
        is_due = self.stale and self.phase is Phase.READY and not self.is_reading()
        return self.reread_at_s if is_due else None

    def take(self, own_id: Id) -> OpenRequest:
        """Remove and return an open request, by the id that the member got."""
        opened = self.open_by_id.pop(own_id)
        if opened.token is not None:
            self.token_by_own.pop(opened.token, None)
        return opened

    def reset(self) -> None:
        """Forget the inner session, which has ended."""
        self.phase, self.era = Phase.CLOSED, None
        self.log_level, self.capabilities = "", frozenset()
        self.reread_at_s = 0.0
        for table in (self.open_by_id, self.own_by_id, self.follows, self.token_by_own):
            table.clear()
        self.list_errors.clear()
        self.handshake_error = ""
        for found in (self.eras_tried, self.stale, self.unread):
            found.clear()
        self.meter = FloodMeter()
        self.to_read.clear()


class OwnKind(Enum):
    """Kind of a request that the hub itself sends to a member."""

    PROBE = "server/discover"
    HANDSHAKE = "initialize"
    LIST = "list"
    LISTEN = "subscriptions/listen"
    SETTING = "setting"  # of a log level or a subscription


@dataclass(slots=True)
class OwnRequest:
    """Request that the hub itself has sent to a member."""

    kind: OwnKind
    due_s: float = float("inf")
    reader: ListReader | None = None
