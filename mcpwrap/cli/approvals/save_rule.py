"""Options of `mcpwrap approvals approve --always`: an approval that is saved as a rule."""

import difflib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mcpwrap.cli.approvals.text import agent, tool_of
from mcpwrap.core.approval import approval_rule
from mcpwrap.core.approval.approval_rule import (
    ANY,
    MAX_TIMES,
    FixedArguments,
    RuleRequest,
    TickedArgument,
    UnsavableRuleError,
    arguments_of,
    may_be,
)
from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.rule_text import BLOCKS_STAY, argument_texts, bounds_text
from mcpwrap.core.audit.text_format import span_s
from mcpwrap.core.pins import pin_question
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import UsageError
from mcpwrap.gate_client.approvals import QuestionDetails

WHERE = "mcpwrap approvals approve"
_TEN_MINUTES = "10m"
_IN_THE_POLICY = (
    "repeat the command without that, or have root write a rule of the policy: `man mcpwrap-policy`"
)


class ApproveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an approval: of which requests, and for how long."""

    always: bool = False
    vary: tuple[str, ...] = ()
    span: str | None = None
    session: bool = False
    times: int | None = None

    def check(self) -> None:
        """Check that the options go together.

        Raises:
            UsageError: they do not.
        """
        if self.always:
            self._check_bound()
            return
        if self.vary:
            raise UsageError(
                "--vary is for an approval that is saved as a rule",
                where=WHERE,
                fix="add `--always` and a bound: `--for 8h`, `--times 20` or `--session`",
                code="E-APPROVAL-VARY",
            )
        if self.span not in {None, _TEN_MINUTES}:
            raise UsageError(
                f"equal requests are approved for {_TEN_MINUTES}, not {self.span!r}",
                where=WHERE,
                fix="add `--always` to save a rule for that time, or give `--for 10m`",
                code="E-APPROVAL-BOUND",
            )
        if self.times and self.times > approval_socket.MAX_TIMES:
            raise UsageError(
                f"an approval is for at most {approval_socket.MAX_TIMES} equal requests",
                where=WHERE,
                fix="add `--always` to save a rule for more, or give a smaller number",
                code="E-APPROVAL-TIMES",
            )

    def request(self, ticked: Iterable[TickedArgument]) -> RuleRequest:
        """Return the request for a rule in which these arguments may differ."""
        return RuleRequest(
            ticked=tuple(ticked),
            for_s=_seconds(self.span) if self.span else 0,
            times=self.times or 0,
            in_session=self.session,
        )

    def _check_bound(self) -> None:
        if not (self.span or self.times or self.session):
            raise UsageError(
                "a rule needs a bound",
                where=WHERE,
                fix="add `--for 8h`, `--times 20` or `--session`",
                code="E-APPROVAL-BOUND",
            )
        if self.span:
            _seconds(self.span)


def varied(text: str, question: Question) -> TickedArgument:
    """Return the argument that a text of `--vary` names.

    The name of an argument may have a `=`, so the longest one that fits is meant.
    """
    names = sorted(arguments_of(question) or {}, key=len, reverse=True)
    fitting = (name for name in names if f"{text}=".startswith(f"{name}="))
    name = next(fitting, text.partition("=")[0])
    return TickedArgument(name, text[len(name) + 1 :] or ANY)


def check(wanted: RuleRequest, pending: Pending, seen: QuestionDetails) -> None:
    """Check that the approval can be saved as this rule.

    Raises:
        UsageError: it cannot.
    """
    if pending.method == pin_question.METHOD:
        why = "a question on definitions is answered for good, without a rule"
        raise _unsavable(why, "repeat the command without `--always`")
    if seen.question.definition:
        why = "the server has changed the tool since it first listed it, so no rule covers it"
        raise _unsavable(why, "approve this request alone: `mcpwrap tools diff` shows the change")
    arguments = arguments_of(seen.question) or {}
    for one in wanted.ticked:
        _check_ticked(one, arguments)
    try:
        fixed = FixedArguments(pending.deciding, pending.exact)
        approval_rule.check(wanted, fixed, bytes(seen.size))
    except UnsavableRuleError as error:
        raise _unsavable(str(error), _IN_THE_POLICY) from error


def words(wanted: RuleRequest, pending: Pending, seen: QuestionDetails) -> list[str]:
    """Return the lines that describe the rule before it is saved."""
    question = seen.question
    session = f"session {pending.session}" if wanted.in_session else ""
    about = [
        ("agent", agent(question.agent_uid)),
        ("server", question.server),
        ("tool", tool_of(question)),
        ("answers", ", ".join(pending.asking)),
        ("bound", bounds_text(wanted.for_s, wanted.times, session)),
    ]
    return [
        "The rule lets these calls pass without a question:",
        *aligned(about, argument_texts(question, wanted.ticked)),
        BLOCKS_STAY,
    ]


def aligned(about: Sequence[tuple[str, str]], arguments: Sequence[tuple[str, str]]) -> list[str]:
    """Return what is known of a rule, and below a heading its arguments, in two columns."""
    width = max(len(name) for name, _ in (*about, *arguments))
    lines = [f"  {name:{width}}  {one_line(text)}" for name, text in (*about, *arguments)]
    return [*lines[: len(about)], "arguments", *lines[len(about) :]]


def _check_ticked(one: TickedArgument, arguments: Mapping[str, Json]) -> None:
    if one.name not in arguments:
        near = difflib.get_close_matches(one.name, arguments, n=1)
        names = ", ".join(f"`{name}`" for name in arguments) or "none"
        raise UsageError(
            f"the call has no argument {one.name!r}",
            where="--vary",
            fix=f"did you mean `{near[0]}`?" if near else f"it has: {names}",
            code="E-APPROVAL-VARY",
        )
    if not may_be(one.glob, arguments[one.name]):
        raise UsageError(
            f"{one.name!r} of this call is not like {one.glob!r}",
            where="--vary",
            fix="give a pattern for the value that is shown, in which `*` is any text and `?` any "
            "character",
            code="E-APPROVAL-VARY",
        )


def _seconds(span: str) -> int:
    try:
        return span_s(span)
    except ValueError:
        raise UsageError(
            f"{span!r} is not a time",
            where="--for",
            fix=f"write a number and s, m, h, d or w, such as `30m`, `8h` or `30d`; at most "
            f"365d, and --times at most {MAX_TIMES}",
            code="E-APPROVAL-BOUND",
        ) from None


def _unsavable(why: str, fix: str) -> UsageError:
    return UsageError(why, where="--always", fix=fix, code="E-APPROVAL-RULE")
