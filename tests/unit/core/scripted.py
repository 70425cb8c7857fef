"""Scripted policy, limits, audit and approvals, which record the calls to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from mcpwrap.core.approval.client_forms import ClientIdentity, FormAnswer
from mcpwrap.core.approval.views.preview import Preview
from mcpwrap.core.gate.gate import Action, ToAgent, ToServer, ToUser
from mcpwrap.core.gate.ports import (
    ApprovalRequest,
    ApprovalUnavailable,
    Approved,
    AuditedDecision,
    AwaitingApproval,
)
from mcpwrap.core.gate.session import ALLOWED, JournalNote
from mcpwrap.core.policy.arguments.kinds import KnownTools
from mcpwrap.core.policy.decision import (
    ApprovalTimeouts,
    AskingRules,
    CallOutcome,
    Judgement,
    LimitExceeded,
    ResultJudgement,
)
from mcpwrap.core.protocol.json_value import Json

MODERN = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"'  # `MODERN` in dialogues/


@dataclass
class ScriptedPolicy:
    """Policy by method, or by method and name: `tools/call read_query`."""

    judgement_of: dict[str, Judgement] = field(default_factory=dict)
    default: Judgement = ALLOWED
    named: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    refused_results_of: dict[str, Judgement] = field(default_factory=dict)
    redacts: str = ""
    times: ApprovalTimeouts = field(default_factory=ApprovalTimeouts)
    judged: list[tuple[str, Mapping[str, Json]]] = field(default_factory=list)
    results: list[tuple[str, str, Json]] = field(default_factory=list)

    def judge(self, method: str, params: Mapping[str, Json]) -> Judgement:
        self.judged.append((method, params))
        target = params.get("name") or params.get("uri")
        by_method = self.judgement_of.get(method, self.default)
        return self.judgement_of.get(f"{method} {target}", by_method)

    def names(self, method: str) -> bool:
        return method in self.named

    def hides(self, tool: str) -> bool:
        return tool in self.hidden

    def asking(self, method: str, params: Mapping[str, Json]) -> AskingRules:
        judgement = self.judge(method, params)
        self.judged.pop()
        return AskingRules(rules=(judgement.rule,))

    def learn(self, tools: KnownTools) -> None:
        """Take nothing: rules on kinds of arguments are not scripted."""

    def judge_result(self, method: str, target: str, value: Json) -> ResultJudgement:
        self.results.append((method, target, value))
        refusal = self.refused_results_of.get(f"{method} {target}")
        if refusal is not None:
            return ResultJudgement(None, refusal)
        before = msgspec.json.encode(value)
        if not self.redacts or self.redacts.encode() not in before:
            return ResultJudgement(value)
        after = before.replace(self.redacts.encode(), b"[redacted]")
        return ResultJudgement(msgspec.json.decode(after), notes=("redact",))

    def judge_description(self, method: str, value: dict[str, Json]) -> ResultJudgement:
        return self.judge_result(method, "", value)


@dataclass
class ScriptedLimits:
    """Limits that refuse the tools of `held`, and do not count those of `uncounted`."""

    held: dict[str, LimitExceeded] = field(default_factory=dict)
    uncounted: set[str] = field(default_factory=set)
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    unanswered: set[str] = field(default_factory=set)  # tools whose answers are not compared
    told: list[tuple[str, CallOutcome]] = field(default_factory=list)

    def counts(self, tool: str) -> bool:
        return tool not in self.uncounted

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        self.asked.append((tool, call_digest))
        return self.held.get(tool)

    def needs_answer(self, tool: str, call_digest: bytes) -> bool:
        return bool(call_digest) and tool not in self.unanswered

    def report(self, tool: str, outcome: CallOutcome) -> None:
        self.told.append((tool, outcome))


@dataclass
class ScriptedAudit:
    """Audit that stores its records, unless it is broken."""

    is_broken: bool = False
    written: list[AuditedDecision] = field(default_factory=list)

    def write(self, decided: AuditedDecision) -> bool:
        if self.is_broken:
            return False
        self.written.append(decided)
        return True


@dataclass
class ScriptedApprovals:
    """Approvals that hold a request by the id `a` and its number, or take the next of `answers`."""

    state_key: bytes = bytes(range(32))
    has_window: bool = True  # False for a hub
    answers: list[Approved | ApprovalUnavailable] = field(default_factory=list)
    asking: list[AskingRules] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def ask(
        self, hold: int, wanted: ApprovalRequest
    ) -> Approved | AwaitingApproval | ApprovalUnavailable:
        definition = f" as {wanted.definition[:8]}" if wanted.definition else ""
        params = msgspec.json.encode(wanted.params).decode()
        about = f"{wanted.method} {wanted.target}{definition} {params}"
        self.asking.append(wanted.asking)
        self.asked.append(f"{hold} by {wanted.rule} for {wanted.expires_s:g} s: {about}")
        if self.answers:
            return self.answers.pop(0)
        return AwaitingApproval(f"a{hold}", f"digest{hold}", wanted.expires_s)

    def withdraw(self, hold: int, *, will_resume: bool) -> None:
        self.asked.append(f"{hold} {'comes again' if will_resume else 'is withdrawn'}")

    def show(self, hold: int, preview: Preview) -> None:
        said = preview.problem or f"{preview.text} {preview.compare}{preview.count}"
        self.asked.append(f"{hold} previewed by {preview.tool}: {said}".rstrip())

    def asks_by_form(self, client: ClientIdentity, *, in_client: bool) -> bool:
        return self.has_window and in_client

    def take_form_answer(self, hold: int, client: ClientIdentity, answer: FormAnswer) -> None:
        by = f" of {client.name} {client.version}" if client.name else ""
        self.asked.append(f"{hold} {answer} in the window{by}")


def recorded(decided: AuditedDecision) -> str:
    """Return a record as a line of a dialogue; its reason is the note's."""
    parts = [
        decided.sender,
        decided.decision,
        decided.method or "-",
        decided.target,
        "" if decided.id is None else f"id={decided.id}",
        decided.era,
        f"rule={decided.rule}" if decided.rule else "",
        f"watched={','.join(decided.watched)}" if decided.watched else "",
        f"approval={decided.approval},{decided.shown}" if decided.approval else "",
        f"by={decided.by}" if decided.by else "",
        _set_fields("code", decided.code),
        _set_fields("run", decided.run),
        "" if decided.params is None else msgspec.json.encode(decided.params).decode(),
    ]
    return " ".join(part for part in parts if part)


def _set_fields(name: str, value: msgspec.Struct | None) -> str:
    """Return an optional part of a record; a field with its default is left out."""
    return "" if value is None else f"{name}={msgspec.json.encode(value).decode()}"


def spoken(action: Action) -> str:
    """Return an action as a line of a dialogue."""
    match action:
        case ToServer(line):
            return f"to server> {_text(line)}"
        case ToAgent(line):
            return f"to agent> {_text(line)}"
        case ToUser(line):
            return f"to user> {line}"
        case JournalNote(kind, text):
            return f"note> {kind}: {text}"
        case _:
            assert_never(action)


def _text(line: bytes) -> str:
    assert line.index(b"\n") == len(line) - 1  # one line, and whole
    return line[:-1].decode()
