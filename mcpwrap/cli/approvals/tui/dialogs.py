"""Dialogs of the terminal view before it sends a decision: reason, and password."""

import os
from typing import ClassVar

import msgspec
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcpwrap.cli.approvals.answer import OperatorDecision, with_password, with_polkit
from mcpwrap.cli.approvals.text import agent, cell, tool_of
from mcpwrap.cli.approvals.tui.question_pane import DisplayedGroup, DisplayedQuestion
from mcpwrap.cli.approvals.tui.rule_screen import wanted_rule
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Scope, Verdict

_VERBS = {
    Verdict.APPROVE: "Approve",
    Verdict.DENY: "Deny",
    Verdict.DENY_AND_STOP: "Deny, and stop the server",
}
_REASON = "The reason, for the agent; it may be empty."
_REASON_FOR_AUDIT = "The reason, for the audit; it may be empty."


class PromptScreen(ModalScreen[str | None]):
    """Dialog for one line; Escape returns None."""

    CSS = """
    PromptScreen { align: center bottom; } /* the question stays in sight */
    PromptScreen > Vertical {
        width: 80%; max-width: 90; height: auto; border: round $accent; padding: 1 2;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, what: str, prompt: str, *, is_hidden: bool = False) -> None:
        super().__init__()
        self._what = what
        self._prompt = prompt
        self._is_hidden = is_hidden

    def compose(self) -> ComposeResult:
        """Return the widgets of the dialog."""
        with Vertical():
            yield Static(Text(self._what, style="bold"))
            yield Static(Text(f"{self._prompt}\nEnter sends, Escape goes back."))
            yield Input(password=self._is_hidden)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return the line."""
        self.dismiss(event.value)

    def action_give_up(self) -> None:
        """Return None."""
        self.dismiss(None)


async def decided(
    app: App[None], shown: DisplayedQuestion, verdict: Verdict, scope: Scope
) -> DecideRequest | None:
    """Ask for the reason or password that a decision needs; return None after Escape.

    Raises:
        UsageError: the reason or the password cannot be sent.
    """
    pending, question = shown.pending, shown.seen.question
    what = f"{cell(question.server)}: {cell(tool_of(question))} ({pending.id})"
    verb = _verb(verdict, is_on_definitions=shown.is_on_definitions)
    prompt = _REASON_FOR_AUDIT if shown.is_on_definitions else _REASON
    is_approval = verdict is Verdict.APPROVE
    reason = (
        "" if is_approval else await app.push_screen_wait(PromptScreen(f"{verb}  {what}", prompt))
    )
    if reason is None:
        return None
    answer = OperatorDecision(verdict, scope, reason=reason)
    decide = answer.decide(pending.id, shown.seen.digest, Channel.TERMINAL)
    if scope is Scope.RULE:
        rule = await wanted_rule(app, shown)
        if rule is None:
            return None
        decide = msgspec.structs.replace(decide, rule=rule)
    may = pending.may_save if decide.scope is Scope.RULE else pending.may
    return await _proven(app, decide, f"{verb}  {what}") if may == "proof" else decide


async def decided_all(
    app: App[None], shown: DisplayedGroup, verdict: Verdict
) -> list[DecideRequest] | None:
    """Ask for the reason, and one password for all, of shown calls; None after Escape.

    Raises:
        UsageError: the reason or the password cannot be sent.
    """
    first = shown.members[0]
    question = first.seen.question
    verb = f"{_VERBS[verdict]} all {len(shown.members)}"
    what = f"{verb}  {cell(question.server)}: {cell(tool_of(question))}"
    prompt = _REASON_FOR_AUDIT if verdict is Verdict.APPROVE else _REASON
    reason = await app.push_screen_wait(PromptScreen(what, prompt))
    if reason is None:
        return None
    answer = OperatorDecision(verdict, reason=reason)
    decides = [
        answer.decide(one.pending.id, one.seen.digest, Channel.TERMINAL) for one in shown.members
    ]
    if first.pending.may != "proof":
        return decides
    user = agent(os.getuid())
    prompt = f"Approval password of {one_line(user)}, once for all of them."
    password = await app.push_screen_wait(PromptScreen(what, prompt, is_hidden=True))
    if password is None:
        return None
    return [with_password(decide, user, password) for decide in decides]


def _verb(verdict: Verdict, *, is_on_definitions: bool) -> str:
    if is_on_definitions:
        return "Accept" if verdict is Verdict.APPROVE else "Reject"
    return _VERBS[verdict]


async def _proven(app: App[None], decide: DecideRequest, what: str) -> DecideRequest | None:
    user = agent(os.getuid())
    whose = one_line(user)
    prompt = f"Approval password of {whose}; leave it empty for polkit on your desktop."
    password = await app.push_screen_wait(PromptScreen(what, prompt, is_hidden=True))
    if password is None:
        return None
    return with_password(decide, user, password) if password else with_polkit(decide)
