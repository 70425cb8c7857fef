"""Dialogs of the terminal view that send a decision: reason, confirmation and password."""

import asyncio
import os
from collections.abc import Callable
from typing import ClassVar

import msgspec
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcpwrap.cli.approvals.answer import (
    OperatorDecision,
    send_decision,
    with_password,
    with_polkit,
)
from mcpwrap.cli.approvals.text import agent, cell, tool_of
from mcpwrap.cli.approvals.tui.question_pane import DisplayedGroup, DisplayedQuestion
from mcpwrap.cli.approvals.tui.rule_screen import RuleScreen, WordsScreen
from mcpwrap.core.approval.approval_rule import encoded
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Scope, Verdict
from mcpwrap.errors import McpwrapError

_VERBS = {
    Verdict.APPROVE: "Approve",
    Verdict.DENY: "Deny",
    Verdict.DENY_AND_STOP: "Deny, and stop the server",
}


class PromptScreen(ModalScreen[str | None]):
    """Dialog for one line; Escape returns None."""

    # Not `CSS`, which the dialog of a password would not inherit.
    DEFAULT_CSS = """
    PromptScreen { align: center bottom; } /* the question stays in sight */
    PromptScreen > Vertical {
        width: 80%; max-width: 90; height: auto; border: round $accent; padding: 1 2;
    }
    PromptScreen > .hidden { border: heavy $warning; }
    PromptScreen Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, title: str, what: str, prompt: str, *, is_hidden: bool = False) -> None:
        super().__init__()
        self._what = what
        self._prompt = prompt
        self._box = Vertical(classes="hidden" if is_hidden else "")
        self._box.border_title = Text(title)
        self._line = Input(password=is_hidden)
        self._problem = Static(Text(""))

    def compose(self) -> ComposeResult:
        """Return the widgets of the dialog."""
        with self._box:
            yield Static(Text(self._what, style="bold"))
            yield Static(Text(self._prompt))
            yield self._problem
            yield self._line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line."""
        self.take(event.value)

    def take(self, line: str) -> None:
        """Return the line."""
        self.dismiss(line)

    def action_give_up(self) -> None:
        """Return None."""
        self.dismiss(None)


class PasswordScreen(PromptScreen):
    """Dialog that sends a decision with a password, and stays until the gate takes it.

    It returns the reply. What is typed while the gate checks a password, or after a wrong one, is
    the next password and not a key of the view.
    """

    def __init__(self, what: str, prompt: str, send: Callable[[str], str]) -> None:
        title = f"Password of {_user()} for approvals"
        super().__init__(title, what, f"{prompt}\nEnter sends, Escape goes back.", is_hidden=True)
        self._send = send
        self._is_sending = False

    def take(self, line: str) -> None:
        """Send the password, unless another is on its way."""
        if not self._is_sending:
            self._is_sending = True
            self._line.clear()
            self._problem.update(Text("The gate checks it."))
            self._submit(line)

    @work
    async def _submit(self, password: str) -> None:
        try:
            self.dismiss(await asyncio.to_thread(self._send, password))
        except McpwrapError as error:
            said = f"{one_line(error.named_problem)}\n{one_line(error.fix)}"
            self._problem.update(Text(said, "bold red"))
            self._is_sending = False

    def action_give_up(self) -> None:
        """Return None, unless a password is on its way."""
        if not self._is_sending:
            super().action_give_up()


async def answered(
    app: App[None], shown: DisplayedQuestion, verdict: Verdict, scope: Scope
) -> str | None:
    """Ask for the reason, rule or password that a decision needs, and send it.

    Return the gate's reply, or None after Escape.

    Raises:
        McpwrapError: the reason cannot be sent, or the gate refused a decision without a password.
    """
    pending, question = shown.pending, shown.seen.question
    verb = _verb(verdict, is_on_definitions=shown.is_on_definitions)
    what = f"{verb}  {cell(question.server)}: {cell(tool_of(question))} ({pending.id})"
    reason = await _reason(app, verdict, what, "audit" if shown.is_on_definitions else "agent")
    if reason is None:
        return None
    decide = OperatorDecision(verdict, scope, reason=reason).decide(
        pending.id, shown.seen.digest, Channel.TERMINAL
    )
    if scope is Scope.RULE:
        wanted = await app.push_screen_wait(RuleScreen(shown))
        if wanted is None:
            return None
        decide = msgspec.structs.replace(decide, rule=encoded(wanted))
    if (pending.may_save if scope is Scope.RULE else pending.may) == "proof":
        prompt = "Hidden as you type it; leave it empty for polkit on your desktop."
        return await app.push_screen_wait(
            PasswordScreen(what, prompt, lambda password: send_decision(_proven(decide, password)))
        )
    return await asyncio.to_thread(send_decision, decide)


async def answered_all(
    app: App[None],
    shown: DisplayedGroup,
    verdict: Verdict,
    send: Callable[[list[DecideRequest]], str],
) -> str | None:
    """Ask for the reason of a denial, and one password for all, of shown calls, and send them.

    Return the reply of `send`, or None after Escape.

    Raises:
        McpwrapError: the reason cannot be sent, or the gate refused decisions without a password.
    """
    first = shown.members[0]
    question = first.seen.question
    verb = f"{_VERBS[verdict]} all {len(shown.members)}"
    what = f"{verb}  {cell(question.server)}: {cell(tool_of(question))}"
    reason = await _reason(app, verdict, what, "agent")
    if reason is None:
        return None
    answer = OperatorDecision(verdict, reason=reason)
    decides = [
        answer.decide(one.pending.id, one.seen.digest, Channel.TERMINAL) for one in shown.members
    ]
    if first.pending.may == "proof":
        prompt = "Hidden as you type it, and given once for all of them."
        user = agent(os.getuid())
        return await app.push_screen_wait(
            PasswordScreen(
                what,
                prompt,
                lambda password: send([with_password(one, user, password) for one in decides]),
            )
        )
    if verdict is Verdict.APPROVE:
        words = WordsScreen([what], "Enter approves them, Escape goes back.")
        if not await app.push_screen_wait(words):
            return None
    return await asyncio.to_thread(send, decides)


async def _reason(app: App[None], verdict: Verdict, what: str, reader: str) -> str | None:
    """Return the reason of a denial, or "" of an approval, which has none; None after Escape."""
    if verdict is Verdict.APPROVE:
        return ""
    prompt = (
        f"The {reader} gets this text, which is not hidden: it is not the place of a password.\n"
        "It may be empty. Enter goes on, Escape goes back."
    )
    return await app.push_screen_wait(PromptScreen(f"Reason for the {reader}", what, prompt))


def _verb(verdict: Verdict, *, is_on_definitions: bool) -> str:
    if is_on_definitions:
        return "Accept" if verdict is Verdict.APPROVE else "Reject"
    return _VERBS[verdict]


def _user() -> str:
    return one_line(agent(os.getuid()))


def _proven(decide: DecideRequest, password: str) -> DecideRequest:
    """Return the decision with the password, or without one by polkit."""
    if not password:
        return with_polkit(decide)
    return with_password(decide, agent(os.getuid()), password)
