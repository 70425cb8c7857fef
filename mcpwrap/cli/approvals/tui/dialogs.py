"""Dialogs of the terminal view before it sends a decision: reason, and password."""

import os
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcpwrap.cli.approvals.answer import OperatorDecision, with_password, with_polkit
from mcpwrap.cli.approvals.text import agent, cell, tool_of
from mcpwrap.cli.approvals.tui.question_pane import DisplayedQuestion
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Scope, Verdict


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
    reason = "" if verdict is Verdict.APPROVE else await _reason(app, verdict, what)
    if reason is None:
        return None
    answer = OperatorDecision(verdict, scope, reason=reason)
    decide = answer.decide(pending, shown.seen.digest, Channel.TERMINAL)
    return await _proven(app, decide, what) if pending.may == "proof" else decide


async def _reason(app: App[None], verdict: Verdict, what: str) -> str | None:
    title = "Deny" if verdict is Verdict.DENY else "Deny, and stop the server"
    prompt = "The reason, for the agent; it may be empty."
    return await app.push_screen_wait(PromptScreen(f"{title}  {what}", prompt))


async def _proven(app: App[None], decide: DecideRequest, what: str) -> DecideRequest | None:
    user = agent(os.getuid())
    whose = one_line(user)
    prompt = f"Approval password of {whose}; leave it empty for polkit on your desktop."
    ask = PromptScreen(f"{decide.verdict.capitalize()}  {what}", prompt, is_hidden=True)
    password = await app.push_screen_wait(ask)
    if password is None:
        return None
    return with_password(decide, user, password) if password else with_polkit(decide)
