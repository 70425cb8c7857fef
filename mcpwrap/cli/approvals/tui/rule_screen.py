"""Dialogue of the terminal view for an approval that is saved as a rule, shown in words first."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Checkbox, Input, Static

from mcpwrap.cli.approvals import save_rule
from mcpwrap.cli.approvals.save_rule import ApproveOptions
from mcpwrap.cli.approvals.text import cell
from mcpwrap.cli.approvals.tui.question_pane import DisplayedQuestion
from mcpwrap.core.approval.approval_rule import (
    ANY,
    MAX_TIMES,
    FixedArguments,
    RuleRequest,
    TickedArgument,
)
from mcpwrap.core.approval.views import rule_offer
from mcpwrap.core.approval.views.rule_offer import OfferedArgument
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.errors import UsageError

_HINT = (
    "Ticked arguments may differ. In a pattern `*` is any text and `?` any character; `*` alone is"
    " any value, or none. Tab moves, Space ticks, Enter shows the rule, Escape goes back."
)


class TickBox(Checkbox):
    """Checkbox that shows without colour whether it is ticked."""

    BUTTON_INNER = " "

    def watch_value(self) -> None:
        """Write the tick, or delete it."""
        self.BUTTON_INNER = "X" if self.value else " "
        super().watch_value()


class RuleScreen(ModalScreen[RuleRequest | None]):
    """Dialogue in which arguments are ticked and bounds are given; Escape returns None."""

    CSS = """
    RuleScreen { align: center middle; }
    RuleScreen > VerticalScroll {
        width: 90%; max-width: 100; height: 90%; border: round $accent; padding: 0 1;
    }
    RuleScreen Static { height: auto; }
    RuleScreen Checkbox, RuleScreen Input { height: auto; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, shown: DisplayedQuestion) -> None:
        super().__init__()
        self._shown = shown
        pending = shown.pending
        fixed = FixedArguments(pending.deciding, pending.exact)
        self._offer = rule_offer.offered(shown.seen.question, fixed)
        self._boxes = [
            TickBox(Text(cell(one.name)), disabled=bool(one.why_fixed)) for one in self._offer
        ]
        self._globs = [Input(one.glob, disabled=bool(one.why_fixed)) for one in self._offer]
        self._span = Input("8h")
        self._times = Input("")
        self._session = TickBox("in this session only")
        self._problem = Static(Text(""))

    def compose(self) -> ComposeResult:
        """Return the widgets of the dialogue."""
        with VerticalScroll():
            yield Static(Text("Always allow calls like this", style="bold"))
            yield Static(Text(_HINT))
            yield self._problem
            for one, box, glob in zip(self._offer, self._boxes, self._globs, strict=True):
                yield from _argument(one, box, glob)
            yield Static(
                Text("In force for, such as 30m, 8h or 30d; empty: as long as the other bounds")
            )
            yield self._span
            yield Static(Text("Further calls, a number; empty: any number"))
            yield self._times
            yield self._session
            yield Button("Show the rule")

    def on_input_submitted(self) -> None:
        """Return the rule, if it can be saved."""
        self._finish()

    def on_button_pressed(self) -> None:
        """Return the rule, if it can be saved."""
        self._finish()

    def action_give_up(self) -> None:
        """Return None."""
        self.dismiss(None)

    def _finish(self) -> None:
        try:
            wanted = self._request()
            save_rule.check(wanted, self._shown.pending, self._shown.seen)
        except UsageError as error:
            self._problem.update(Text(one_line(error.named_problem), "bold red"))
            return
        self._problem.update(Text(""))
        self._show_words(wanted)

    @work(exclusive=True)
    async def _show_words(self, wanted: RuleRequest) -> None:
        """Return the rule after Enter; Escape goes back to what was set here."""
        words = save_rule.words(wanted, self._shown.pending, self._shown.seen)
        hint = "Enter approves this call and saves the rule, Escape goes back."
        if await self.app.push_screen_wait(WordsScreen(words, hint)):
            self.dismiss(wanted)

    def _request(self) -> RuleRequest:
        ticked = [
            TickedArgument(one.name, glob.value.strip() or ANY)
            for one, box, glob in zip(self._offer, self._boxes, self._globs, strict=True)
            if box.value
        ]
        times = self._times.value.strip()
        if times and not (times.isascii() and times.isdigit() and 0 < int(times) <= MAX_TIMES):
            raise UsageError(
                f"the calls are a number from 1 to {MAX_TIMES}",
                where=save_rule.WHERE,
                fix="write a number, or nothing",
                code="E-APPROVAL-BOUND",
            )
        options = ApproveOptions(
            always=True,
            span=self._span.value.strip() or None,
            session=self._session.value,
            times=int(times) if times else None,
        )
        options.check()
        return options.request(ticked)


def _argument(
    one: OfferedArgument, box: Checkbox, glob: Input
) -> Iterator[Static | Checkbox | Input]:
    yield box
    yield Static(Text(f"    {one.value}"))
    if one.why_fixed:
        yield Static(Text(f"    {one.why_fixed}", "yellow"))
        return
    what = " (a pattern that is not `*`)" if one.needs_pattern else ""
    yield Static(Text(f"    may be a text like{what}:"))
    yield glob


class WordsScreen(ModalScreen[bool]):
    """Words that Enter confirms; Escape returns False."""

    CSS = """
    WordsScreen { align: center middle; }
    WordsScreen > VerticalScroll {
        width: 90%; max-width: 100; height: auto; max-height: 80%;
        border: round $accent; padding: 1 2;
    }
    WordsScreen Vertical, WordsScreen Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "confirm", "Confirm"),
        Binding("escape", "give_up", "Cancel"),
    ]

    def __init__(self, lines: Sequence[str], hint: str) -> None:
        super().__init__()
        self._lines = lines
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Return the widgets of the dialogue."""
        with VerticalScroll(can_focus=True), Vertical():
            yield Static(Text("\n".join(self._lines)))
            yield Static(Text(f"\n{self._hint}"))

    def action_confirm(self) -> None:
        """Return True."""
        self.dismiss(True)  # noqa: FBT003

    def action_give_up(self) -> None:
        """Return False."""
        self.dismiss(False)  # noqa: FBT003
