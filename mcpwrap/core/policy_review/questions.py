"""Approval questions in the audit, with their answers, and the calls that were refused unasked."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from mcpwrap.core.approval.approval_rule import is_by_rule
from mcpwrap.core.audit.params import Box, Params, UnreadableParams, has_secret, params_of
from mcpwrap.core.audit.records import Record
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import TOOLS_CALL
from mcpwrap.core.protocol.strict_json import encode_sorted
from mcpwrap.core.wire.approval_socket import IN_OWN_WINDOW

# Decisions of the gate that neither refuse a call by the policy, nor ask for approval of it.
_PASSED = frozenset({"allowed", "approved", "changed", "limited"})
_OTHERS = frozenset({"unaccepted", "unrecorded", "malformed", "unknown", "dropped", "logged"})
_DENIED = "denied"


class Answer(StrEnum):
    """Answer to an approval question."""

    APPROVED = "approved"
    DENIED = "denied"
    NONE = "none"  # expired, withdrawn, pending, or approved in the agent's own window


@dataclass(frozen=True, slots=True)
class CallKey:
    """Tool of one server."""

    server: str
    tool: str


@dataclass(slots=True)
class AskedQuestion:
    """Approval question about a call. One answer can be for several equal calls."""

    arguments: dict[str, Json] | None = None
    answer: Answer = Answer.NONE
    unread: UnreadableParams | None = None


@dataclass(slots=True)
class CallHistory:
    """Questions about the calls of one tool, and the calls of it that were refused unasked."""

    questions: dict[str, AskedQuestion] = field(default_factory=dict)  # by id
    refused: list[dict[str, Json]] = field(default_factory=list)

    def with_answer(self, answer: Answer) -> list[dict[str, Json]]:
        """Return the arguments of the calls with this answer, one each question."""
        found = self.questions.values()
        return [q.arguments for q in found if q.answer is answer and q.arguments is not None]

    def must_not_pass(self) -> list[dict[str, Json]]:
        """Return the arguments of calls that a rule must not allow.

        These are all that a person denied; and those that were refused, or not answered, unless a
        person has approved an equal call.
        """
        approved = {encode_sorted(one) for one in self.with_answer(Answer.APPROVED)}
        others = [*self.refused, *self.with_answer(Answer.NONE)]
        left = [one for one in others if encode_sorted(one) not in approved]
        return [*self.with_answer(Answer.DENIED), *left]


class QuestionReader:
    """Reader of audit records, in the order of each session."""

    def __init__(self, opens: Box | None) -> None:
        self.by_key: dict[CallKey, CallHistory] = {}
        self.secret = 0  # calls that are left out: an argument looks like a secret
        self._opens = opens

    def take(self, record: Record) -> None:
        """Take a record, if it is of a call that was refused, or asked about."""
        is_call = record.sender == "agent" and record.method == TOOLS_CALL and record.id is not None
        if not is_call or record.decision in _OTHERS or is_by_rule(record.by):
            return
        if record.approval:
            self._take_question(record)
        elif record.decision not in _PASSED:
            arguments, _ = self._arguments(record)
            if arguments is not None:
                self._history(record).refused.append(arguments)

    def unread(self) -> Counter[UnreadableParams]:
        """Return how many questions have params that cannot be read, by reason."""
        return Counter(
            question.unread
            for history in self.by_key.values()
            for question in history.questions.values()
            if question.arguments is None and question.unread is not None
        )

    def _take_question(self, record: Record) -> None:
        questions = self._history(record).questions
        question = questions.setdefault(record.approval, AskedQuestion())
        if record.decision == _DENIED:
            question.answer = Answer.DENIED
        elif record.decision == "approved" and question.answer is Answer.NONE:
            # A rule is for all agents of the server, and such an answer passed through one of them.
            is_agents = record.by.endswith(IN_OWN_WINDOW)
            question.answer = Answer.NONE if is_agents else Answer.APPROVED
        if question.arguments is None:
            # The record of the answer has no params: they are in that of the call's arrival.
            question.arguments, why = self._arguments(record)
            question.unread = why if question.unread is None else question.unread

    def _history(self, record: Record) -> CallHistory:
        return self.by_key.setdefault(CallKey(record.server, record.target), CallHistory())

    def _arguments(self, record: Record) -> tuple[dict[str, Json] | None, UnreadableParams | None]:
        params = params_of(record, self._opens)
        if isinstance(params, UnreadableParams):
            return None, params
        arguments = _arguments_of(params, record.target)
        if arguments is not None and has_secret(arguments):
            self.secret += 1
            return None, None
        return arguments, None


def _arguments_of(params: Params, tool: str) -> dict[str, Json] | None:
    """Return the arguments; None if the record's name of the tool was cut, or it has no table."""
    arguments = params.get("arguments", {})
    is_whole = params.get("name") == tool
    return arguments if is_whole and isinstance(arguments, dict) else None
