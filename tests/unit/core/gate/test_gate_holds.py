"""Pending requests, random events: none runs unapproved, unrecorded or twice; all are answered."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpwrap.core.gate.gate import Action, Gate, ToAgent, ToServer
from mcpwrap.core.gate.ports import ApprovalOutcome, ApprovalUnavailable, Approved
from mcpwrap.core.policy.decision import Decision, Judgement
from tests.unit.core.scripted import (
    MODERN,
    ScriptedApprovals,
    ScriptedAudit,
    ScriptedLimits,
    ScriptedPolicy,
)

ASKS = Judgement(Decision.NEEDS_APPROVAL, "all", in_client=True)
JUDGEMENTS = [ASKS, Judgement(Decision.ALLOW), Judgement(Decision.BLOCK, "no")]
DROP = "tools/call drop"
NEWS: list[Literal["approved", "denied", "expired", "void", "unasked"]] = [
    "expired", "denied", "void", "unasked", "approved",
]  # fmt: skip
number = st.integers(0, 30)
first, hold = st.integers(0, 8), st.integers(1, 6)
# Each is a method of `Trial`, and its arguments.
events = st.one_of(
    st.tuples(st.just("calls"), st.sampled_from(["drop", "read"]), st.booleans()),
    st.tuples(st.just("calls"), st.just("drop"), st.booleans()),
    st.tuples(st.just("comes_again"), number, st.booleans()),
    st.tuples(st.just("told"), hold, st.sampled_from(NEWS)),
    st.tuples(st.just("told"), hold, st.just("approved")),
    st.tuples(st.just("cancels"), first),
    st.tuples(st.just("answers_the_window"), number),
    st.tuples(st.just("server_answers"), first),
    st.tuples(st.just("lists"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("after"), st.sampled_from([1.0, 6.0, 50.0])),
    st.tuples(st.just("judges"), st.sampled_from(JUDGEMENTS)),
    st.tuples(
        st.just("next_answer"),
        st.sampled_from(
            [
                Approved("a", "d", "x"),
                ApprovalUnavailable("no"),
                ApprovalUnavailable("denied by x", "denied"),
            ]
        ),
    ),
    st.tuples(st.just("audit_is_broken"), st.booleans()),
)


@dataclass
class Trial:
    """One session, in which the policy wants approval for `drop`."""

    policy: ScriptedPolicy = field(
        default_factory=lambda: ScriptedPolicy({"tools/call drop": ASKS})
    )
    audit: ScriptedAudit = field(default_factory=ScriptedAudit)
    approvals: ScriptedApprovals = field(default_factory=ScriptedApprovals)
    now_s: float = 0.0
    sent: list[dict[str, Any]] = field(default_factory=list)
    states: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    ran: Counter[int] = field(default_factory=Counter)
    answered: Counter[int] = field(default_factory=Counter)
    cancelled: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.gate = Gate(self.policy, ScriptedLimits(), self.audit, self.approvals)
        params: dict[str, Any] = {"capabilities": {"elicitation": {}}}
        hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}
        self.gate.from_agent(json.dumps(hello).encode())

    def take(self, event: tuple[Any, ...]) -> None:
        getattr(self, event[0])(*event[1:])

    def calls(self, tool: str, is_modern: bool) -> None:  # noqa: FBT001
        self.call({"name": tool, "_meta": meta(is_modern=is_modern)})

    def comes_again(self, which: int, changes: bool) -> None:  # noqa: FBT001
        if self.states:
            state, params = self.states[which % len(self.states)]
            more = {"arguments": {"x": 1}} if changes else {}
            self.call({**params, **more, "requestState": state})

    def told(self, hold: int, what: Literal["approved", "denied", "expired", "void"]) -> None:
        self.do(
            self.gate.handle_outcome(ApprovalOutcome(hold=hold, what=what, by="bob")), became=what
        )

    def cancels(self, id_: int) -> None:
        self.cancelled.add(id_)
        self.say("notifications/cancelled", {"requestId": id_})

    def answers_the_window(self, which: int) -> None:
        if self.windows:
            result = {"action": "accept", "content": {"approve": True}}
            answer = {"jsonrpc": "2.0", "id": self.windows[which % len(self.windows)]}
            self.do(self.gate.from_agent(json.dumps({**answer, "result": result}).encode()))

    def server_answers(self, id_: int) -> None:
        answer = {"jsonrpc": "2.0", "id": id_, "result": {"content": []}}
        self.do(self.gate.from_server(json.dumps(answer).encode()), from_server=True)

    def lists(self, text: str) -> None:
        self.gate.from_agent(b'{"jsonrpc":"2.0","id":"list","method":"tools/list"}')
        tools = {"tools": [{"name": "drop", "description": text}]}
        answer = {"jsonrpc": "2.0", "id": "list", "result": tools}
        self.gate.from_server(json.dumps(answer).encode())

    def after(self, seconds: float) -> None:
        self.now_s += seconds
        self.gate.at(self.now_s)
        self.do(self.gate.tick())
        due_in_s = self.gate.due_in_s()
        assert due_in_s is None or due_in_s > 0

    def judges(self, judgement: Judgement) -> None:
        self.policy.judgement_of[DROP] = judgement

    def next_answer(self, answer: Approved | ApprovalUnavailable) -> None:
        self.approvals.answers = [answer]

    def audit_is_broken(self, is_broken: bool) -> None:  # noqa: FBT001
        self.audit.is_broken = is_broken

    def call(self, params: dict[str, Any]) -> None:
        id_ = len(self.sent)
        self.sent.append(params)
        self.say("tools/call", params, id_)

    def say(self, method: str, params: dict[str, Any], id_: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        line = json.dumps(message if id_ is None else {**message, "id": id_}).encode()
        self.do(self.gate.from_agent(line))

    def do(self, actions: list[Action], *, became: str = "", from_server: bool = False) -> None:
        for action in actions:
            match action:
                case ToServer(line):
                    self.runs(json.JSONDecoder().decode(line.decode()), became)
                case ToAgent(line):
                    self.hears(json.JSONDecoder().decode(line.decode()), from_server=from_server)
                case _:
                    pass

    def runs(self, message: dict[str, Any], became: str) -> None:
        if message["method"] != "tools/call":
            return
        id_ = message["id"]
        self.ran[id_] += 1
        record = self.audit.written[-1]  # the last thing that was done
        assert record.id == id_
        assert record.decision in {"allowed", "approved"}
        assert (record.decision == "approved") == bool(record.by)
        assert "requestState" not in message["params"]
        sent = {key: self.sent[id_][key] for key in self.sent[id_] if key != "requestState"}
        assert message["params"] == sent
        if record.decision == "allowed" and message["params"]["name"] == "drop":
            now = self.policy.judgement_of[DROP].decision
            assert now is Decision.ALLOW
        assert became in {"", "approved", "void"}

    def hears(self, message: dict[str, Any], *, from_server: bool) -> None:
        if message.get("method") == "elicitation/create":
            self.windows.append(message["id"])
        if "method" in message:
            return
        id_ = message["id"]
        self.answered[id_] += 1
        assert from_server == bool(self.ran[id_])
        result = message.get("result", {})
        if result.get("resultType") == "input_required":
            params = {**self.sent[id_]}
            params.pop("requestState", None)
            self.states.append((result["requestState"], params))

    def check(self) -> None:
        assert max(self.ran.values(), default=0) <= 1
        assert max(self.answered.values(), default=0) <= 1
        waiting = {hold.request.id for hold in self.gate._session.pending_approvals}
        for id_ in range(len(self.sent)):
            is_heard = self.answered[id_] or self.ran[id_] or id_ in self.cancelled
            assert bool(is_heard) or id_ in waiting
            assert not (self.answered[id_] and id_ in waiting)


def meta(*, is_modern: bool) -> dict[str, Any]:
    revision = json.JSONDecoder().decode(f"{{{MODERN}}}") if is_modern else {}
    return {**revision, "progressToken": "p"}


@settings(max_examples=400)
@given(st.lists(events, max_size=30))
def test_a_request_runs_once_and_only_approved(sequence: list[tuple[Any, ...]]) -> None:
    trial = Trial()
    for event in sequence:
        trial.take(event)
        trial.check()


@settings(max_examples=200)
@given(st.lists(events, max_size=30))
def test_when_the_server_ends_each_request_has_had_one_answer(
    sequence: list[tuple[Any, ...]],
) -> None:
    trial = Trial()
    for event in sequence:
        trial.take(event)
    for action in trial.gate.server_ended("exited with status 1"):
        if isinstance(action, ToAgent):
            message = json.JSONDecoder().decode(action.line.decode())
            trial.answered[message.get("id")] += "method" not in message
    assert max(trial.answered.values(), default=0) <= 1
    for id_ in range(len(trial.sent)):
        assert trial.answered[id_] or id_ in trial.cancelled
    assert not trial.gate.is_waited_for()
    assert trial.gate.server_ended("exited with status 1") == []


def test_the_trials_are_of_something() -> None:
    """A property of sequences in which nothing runs proves nothing."""
    decisions: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True)
    @given(st.lists(events, min_size=20, max_size=30))
    def look(sequence: list[tuple[Any, ...]]) -> None:
        trial = Trial()
        for event in sequence:
            trial.take(event)
        decisions.update(record.decision for record in trial.audit.written)

    look()
    passed, asked = ("allowed", "approved"), ("held", "suspended", "withdrawn")
    for each in (*passed, *asked, "denied", "expired", "unasked"):
        assert decisions[each] > 2, decisions
