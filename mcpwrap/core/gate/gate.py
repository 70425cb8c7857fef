"""Gate of one session between an agent and a server: lines in, actions out."""

from collections.abc import Callable, Mapping
from typing import assert_never

import msgspec

from mcpwrap.core.gate import approval_decision, approval_wait, from_agent, from_server
from mcpwrap.core.gate.definitions import list_changes
from mcpwrap.core.gate.ports import (
    NO_APPROVALS,
    ApprovalOutcome,
    Approvals,
    Audit,
    Collector,
    PinCheck,
    PolicyOwner,
)
from mcpwrap.core.gate.session import JournalNote, MessageOutcome, SessionState
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.policy.decision import CallLimiter, ServerPolicy
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.jsonrpc import (
    INVALID_REQUEST,
    MAX_BATCH,
    Batch,
    Decoded,
    Id,
    InvalidBatch,
    Malformed,
    Request,
    Sender,
    decode,
)
from mcpwrap.core.protocol.strict_json import on_one_line
from mcpwrap.core.wire.server_files import PreviewRule


class ToServer(msgspec.Struct, frozen=True):
    """Action: write this line to the server, newline included."""

    line: bytes


class ToAgent(msgspec.Struct, frozen=True):
    """Action: write this line to the agent, newline included."""

    line: bytes


class ToUser(msgspec.Struct, frozen=True):
    """Action: write this line, in printable ASCII, to the agent's standard error."""

    line: str


Action = ToServer | ToAgent | ToUser | JournalNote


class Gate:
    """Judge of every message between agent and server. Its actions are carried out in order.

    It never sends the first message: servers take the era of a connection from the first message.
    """

    def __init__(
        self,
        policy: ServerPolicy,
        limits: CallLimiter,
        audit: Audit,
        approvals: Approvals = NO_APPROVALS,
        *,
        executes: bool = False,
    ) -> None:
        """`executes`: the server executes code (`AccessRule.executes`)."""
        self._session = SessionState(policy, limits, audit, approvals, executes)

    @property
    def policy(self) -> ServerPolicy:
        """Policy for the next message."""
        return self._session.policy

    @policy.setter
    def policy(self, policy: ServerPolicy) -> None:
        self._session.policy = policy
        policy.learn(self._session.known_tools)

    def collect(self, collector: Collector) -> None:
        """Have the server's definitions collected. To be called before the first message."""
        self._session.collector = collector

    def name_owner(self, owner: PolicyOwner) -> None:
        """Have refusals name the policy's owner. To be called like `collect`."""
        self._session.owner = owner

    def advise(self, text: str) -> None:
        """Append a text to the server's instructions. To be called like `collect`."""
        self._session.advice = text

    def preview(self, rules: Mapping[str, PreviewRule]) -> None:
        """Have calls that wait shown with what these tools return. To be called like `collect`."""
        self._session.previews.rule_by_tool = rules

    def pin(self, pins: PinCheck) -> None:
        """Have the server's definitions compared with its pins. To be called like `collect`."""
        self._session.pins = pins

    def take_pins(self, view: PinsView) -> list[Action]:
        """Take changed pins; return the notifications of lists that have more entries now."""
        if self._session.pins is None:
            return []
        kinds = self._session.pins.take_view(view)
        return [ToAgent(line + b"\n") for line in list_changes.notifications(self._session, kinds)]

    def at(self, now_s: float) -> None:
        """Set the time, in seconds of a monotonic clock, before any other call."""
        self._session.now_s = now_s

    def handle_outcome(self, outcome: ApprovalOutcome) -> list[Action]:
        """Return the actions for the approval outcome of a held request."""
        self._session.size = 0
        return _of_agent(approval_decision.handle_outcome(self._session, outcome))

    def tick(self) -> list[Action]:
        """Return the actions that are due because time has passed."""
        self._session.size = 0
        return _of_agent(approval_wait.tick(self._session))

    def due_in_s(self) -> float | None:
        """Return the seconds until `tick` has something to do; None if no request is held."""
        return approval_wait.due_in_s(self._session)

    def is_waited_for(self) -> bool:
        """Return whether the agent waits for a response."""
        return bool(self._session.pending_approvals) or self._session.requests_from_agent.has_open()

    def server_ended(self, why: str) -> list[Action]:
        """Return the responses to all open requests of the agent: the server sends no more."""
        self._session.size = 0
        actions = _of_agent(approval_wait.server_ended(self._session, why))
        for outcome in from_server.server_ended(self._session, why):
            actions += _from_server(outcome)
        return actions

    def from_agent(self, line: bytes) -> list[Action]:
        """Return the actions for a line from the agent."""
        if not line or line.isspace():
            return []
        self._session.size = len(line)
        match decode(line, Sender.AGENT, self._max_batch()):
            case Decoded() as decoded:
                outcome = from_agent.judge(self._session, decoded)
                return self._with_holds(_from_agent(outcome), outcome)
            case Malformed() as malformed:
                return _from_agent(from_agent.refuse(self._session, malformed))
            case InvalidBatch():
                return _from_agent(from_agent.refuse(self._session, self._refused_batch()))
            case Batch(items):
                outcomes = [self._batched_by_agent(item) for item in items]
                return self._with_holds(_from_agent(_combined(outcomes)), *outcomes)
            case other:
                assert_never(other)

    def from_server(self, line: bytes) -> list[Action]:
        """Return the actions for a line from the server."""
        if not line or line.isspace():
            return []
        self._session.size = len(line)
        match decode(line, Sender.SERVER, self._max_batch()):
            case Decoded() as decoded:
                return _from_server(from_server.judge(self._session, decoded))
            case Malformed() as malformed:
                return _from_server(from_server.refuse(self._session, malformed))
            case InvalidBatch(answers):
                return self._refuse_batch_of_server(answers)
            case Batch(items):
                return _from_server(_combined([self._batched_by_server(item) for item in items]))
            case other:
                assert_never(other)

    def _with_holds(self, actions: list[Action], *outcomes: MessageOutcome) -> list[Action]:
        """Return the actions for a line, and for each request in it that is held."""
        for outcome in outcomes:
            if outcome.held is not None:
                actions += _of_agent(approval_wait.begin(self._session, outcome.held))
        return actions

    def _max_batch(self) -> int:
        return MAX_BATCH if self._session.version == methods.BATCHES_IN else 0

    def _refused_batch(self) -> Malformed:
        if self._max_batch():
            return Malformed(INVALID_REQUEST, f"a batch must have 1 to {MAX_BATCH} messages")
        return Malformed(INVALID_REQUEST, f"only MCP {methods.BATCHES_IN} has batches")

    def _batched_by_agent(self, item: Decoded | Malformed) -> MessageOutcome:
        match item:
            case Malformed():
                return from_agent.refuse(self._session, item)
            case Decoded(message=Request(method=methods.INITIALIZE) as request):
                reason = "initialize may not be in a batch"
                malformed = Malformed(INVALID_REQUEST, reason, request.id)
                return from_agent.refuse(self._session, malformed)
            case Decoded():
                return from_agent.judge(self._session, item)
            case _:
                assert_never(item)

    def _batched_by_server(self, item: Decoded | Malformed) -> MessageOutcome:
        match item:
            case Malformed():
                return from_server.refuse(self._session, item)
            case Decoded():
                return from_server.judge(self._session, item)
            case _:
                assert_never(item)

    def _refuse_batch_of_server(self, answers: tuple[Id, ...]) -> list[Action]:
        """Drop a batch, and send an error for each response in it, on a line of its own.

        The agent does not read arrays.
        """
        actions = _from_server(from_server.refuse(self._session, self._refused_batch()))
        for answered in answers:
            given_up = MessageOutcome(
                forward=from_server.fail_unreadable_response(self._session, answered)
            )
            actions += _from_server(given_up)
        return actions


def _from_agent(outcome: MessageOutcome) -> list[Action]:
    return _actions(outcome, onward=ToServer, back=ToAgent)


def _of_agent(outcomes: list[MessageOutcome]) -> list[Action]:
    return [action for outcome in outcomes for action in _from_agent(outcome)]


def _from_server(outcome: MessageOutcome) -> list[Action]:
    return _actions(outcome, onward=ToAgent, back=ToServer)


def _actions(
    outcome: MessageOutcome, *, onward: Callable[[bytes], Action], back: Callable[[bytes], Action]
) -> list[Action]:
    actions: list[Action] = list(outcome.notes)
    if outcome.told:
        actions.append(ToUser(outcome.told))
    if outcome.answer is not None:
        actions.append(back(on_one_line(outcome.answer) + b"\n"))
    if outcome.forward is not None:
        actions.append(onward(on_one_line(outcome.forward) + b"\n"))
    return actions


def _combined(outcomes: list[MessageOutcome]) -> MessageOutcome:
    """Combine the outcomes of a batch's elements into one: arrays of the messages to send."""
    forwards = [outcome.forward for outcome in outcomes if outcome.forward is not None]
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    return MessageOutcome(
        _array(forwards), _array(answers), tuple(n for outcome in outcomes for n in outcome.notes)
    )


def _array(elements: list[bytes]) -> bytes | None:
    return b"[" + b",".join(elements) + b"]" if elements else None
