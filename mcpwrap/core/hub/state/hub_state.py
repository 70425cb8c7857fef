"""State of a hub's session: the agent, the members, the lists, and actions that are to be done."""

import math
from dataclasses import dataclass, field

import msgspec

from mcpwrap.core.hub.agent_profiles import AgentProfile
from mcpwrap.core.hub.lists.exposed_lists import ExposedLists, expose
from mcpwrap.core.hub.state.actions import Action, LineToAgent, LineToMember, LogLine
from mcpwrap.core.hub.state.agent_side import AgentSide
from mcpwrap.core.hub.state.member_side import MemberSide, OwnRequest
from mcpwrap.core.protocol import raw_message
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.protocol.raw_message import Fields, RawMessage
from mcpwrap.core.wire.hub.hub_catalogue import LISTS

OWN_IDS = "mcpwrap-hub/"  # ids of the hub's own requests to members begin so
# The kind of `list_changed` that each list belongs to.
_KIND_BY_LIST = {kind.field: kind.of for kind in LISTS.values()}


class MemberQuestion(msgspec.Struct, frozen=True):
    """Request of a member that the agent has not answered."""

    member: str
    id: Id  # the member's own
    token: Id | None  # the member's own, for progress


class RoundQuestion(msgspec.Struct, frozen=True):
    """Input request of a member's result, which the agent was sent as a request of its own."""

    member: str
    request_id: Id  # of the agent's request that the result was for
    key: str  # of the input request


Question = MemberQuestion | RoundQuestion


@dataclass(slots=True)
class Listen:
    """Subscription of an agent of 2026-07-28."""

    kinds: frozenset[str]  # tools, prompts, resources
    uris: frozenset[str]


@dataclass(slots=True)
class HubState:
    """State of one session of a hub."""

    hub: str
    version: str  # of mcpwrap
    members: dict[str, MemberSide]  # by name, sorted
    instructions: dict[str, str]  # of the configuration, by member
    agent: AgentSide = field(default_factory=AgentSide)
    lists: ExposedLists = field(default_factory=ExposedLists)
    now_s: float = 0.0
    actions: list[Action] = field(default_factory=list)
    waiting_lists: list[RawMessage] = field(default_factory=list)  # for the first definitions
    lists_due_s: float | None = None  # they wait no longer; None before the first start
    question_by_id: dict[Id, Question] = field(default_factory=dict)  # by the id at the agent
    call_by_state: dict[str, tuple[str, Id]] = field(default_factory=dict)  # by `requestState`
    listens: dict[Id, Listen] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)  # lists that the agent has read
    changed: set[str] = field(default_factory=set)  # lists that differ from what it has read
    exposed_for: AgentProfile | None = None
    change_due_s: float = 0.0
    notified_s: float = -math.inf
    last_id: int = 0

    def new_id(self) -> int:
        """Return an id for a request of the hub's own to the agent."""
        self.last_id += 1
        return self.last_id

    def own_id(self) -> str:
        """Return an id for a request of the hub's own to a member, which no agent's request has."""
        self.last_id += 1
        return f"{OWN_IDS}{self.last_id}"

    def to_agent(self, line: bytes) -> None:
        """Send a line to the agent."""
        self.actions.append(LineToAgent(line))

    def to_member(self, member: MemberSide, line: bytes) -> None:
        """Send a line to a member."""
        self.actions.append(LineToMember(member.name, line))

    def send_own(self, member: MemberSide, own: OwnRequest, method: str, params: Fields) -> Id:
        """Send a request of the hub's own to a member; return its id."""
        own_id = self.own_id()
        member.own_by_id[own_id] = own
        self.to_member(member, raw_message.request(own_id, method, params))
        return own_id

    def log(self, text: str) -> None:
        """Write a line to the journal."""
        self.actions.append(LogLine(text))

    def fail(self, request_id: Id | None, code: int, message: str, data: Json = None) -> None:
        """Answer a request of the agent with an error; a notification gets none."""
        if request_id is not None:
            self.to_agent(raw_message.failure(request_id, code, message, data))

    def loaded(self) -> str:
        """Return how much of the hub is there, and why the rest is not."""
        members = [member for member in self.members.values() if not member.refusal]
        there = sum(member.definitions is not None for member in members)
        text = f"Loaded {len(self.lists.tools)} tools from {there}/{len(self.members)} servers"
        return "; ".join([text, *self.missing()])

    def missing(self) -> list[str]:
        """Return the members that are not there, each with the reason."""
        members = self.members.values()
        return [
            f"{one.name}: {one.refusal or one.why}" for one in members if one.refusal or one.why
        ]

    def expose_again(self) -> None:
        """Compute the lists anew, and note the kinds of those that differ from what was read."""
        before = self.lists
        known = {
            name: member.definitions
            for name, member in self.members.items()
            if member.definitions is not None and not member.refusal
        }
        namespaces = {name: member.namespace for name, member in self.members.items()}
        unlisted = {name: self.members[name].unlisted for name in known}
        self.exposed_for = self.agent.profile
        self.lists = now = expose(self.hub, namespaces, known, self.exposed_for, unlisted)
        changed = {name for name in _KIND_BY_LIST if getattr(before, name) != getattr(now, name)}
        self.changed |= changed & self.listed

    def changed_kinds(self) -> list[str]:
        """Return the kinds of `list_changed` that the agent has to be sent."""
        return sorted({_KIND_BY_LIST[name] for name in self.changed})
