"""Pane of the terminal view that shows one question."""

from typing import ClassVar

from msgspec import Struct
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer
from textual.widgets import RichLog

from mcpwrap.cli.approvals.group_text import group_page
from mcpwrap.cli.approvals.text import PageLine, folded, page_of_pane
from mcpwrap.core.pins import pin_question
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.gate_client.approvals import QuestionDetails
from mcpwrap.gate_client.group_answers import PendingCall


class DisplayedQuestion(Struct, frozen=True):
    """Question on the screen. An answer is to this one, whatever comes in the meantime."""

    pending: Pending
    seen: QuestionDetails

    @property
    def is_on_definitions(self) -> bool:
        """Return whether it is on definitions that are held back, and not on a request."""
        return self.seen.question.method == pin_question.METHOD


class DisplayedGroup(Struct, frozen=True):
    """Calls of one kind on the screen. One answer is to all of them, and to none that comes."""

    members: tuple[PendingCall, ...]


class QuestionPane(RichLog):
    """Pane for one question. It accepts an answer only after `pause_s` on the screen.

    A key that was meant for the previous question must not answer the one that replaced it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", show=True)]

    class Readied(Message):
        """Event: the question became answerable, or ceased to be."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(id="question", wrap=False, auto_scroll=False, min_width=1)
        self.shown: DisplayedQuestion | DisplayedGroup | None = None
        self._pause_s = pause_s
        self._lines: list[PageLine] = []
        self._timer: Timer | None = None
        self._is_ready = False

    @property
    def answerable(self) -> DisplayedQuestion | None:
        """Return the question that can be answered now, or None."""
        is_one = self._is_ready and isinstance(self.shown, DisplayedQuestion)
        return self.shown if is_one else None  # type: ignore[return-value]

    @property
    def answerable_group(self) -> DisplayedGroup | None:
        """Return the group that can be answered now, or None."""
        is_group = self._is_ready and self.is_group
        return self.shown if is_group else None  # type: ignore[return-value]

    @property
    def is_group(self) -> bool:
        """Return whether a group is shown."""
        return isinstance(self.shown, DisplayedGroup)

    @property
    def is_on_definitions(self) -> bool:
        """Return whether the question is on definitions that are held back."""
        return isinstance(self.shown, DisplayedQuestion) and self.shown.is_on_definitions

    def show_question(self, shown: DisplayedQuestion) -> None:
        """Show a question, which can be answered after the pause."""
        self._replace(page_of_pane(shown.pending, shown.seen))
        self._wait(shown)

    def show_group(self, shown: DisplayedGroup, left_out: int) -> None:
        """Show calls of one kind, which can be answered together after the pause.

        `left_out` is the number of those that are too long to be read together.
        """
        lines = group_page(shown.members)
        if left_out:
            what = f"{left_out} more are too long for this page: Enter lists each by itself."
            lines.append(PageLine(what, "yellow"))
        before = self.scroll_offset.y if self.is_group else 0
        self._replace(lines)
        if before:
            self.scroll_to(y=before, animate=False)
        self._wait(shown)

    def _wait(self, shown: DisplayedQuestion | DisplayedGroup) -> None:
        self.shown = shown
        self.border_subtitle = "new: keys answer in a moment"
        self._timer = self.set_timer(self._pause_s, self._get_ready)

    def say(self, text: str) -> None:
        """Show one line of text, and no question."""
        self._replace([PageLine(text, "dim")])
        self.border_subtitle = ""

    def _get_ready(self) -> None:
        self._is_ready = True
        self.border_subtitle = "keys answer this"
        self.post_message(self.Readied())

    def _replace(self, lines: list[PageLine]) -> None:
        if self._timer is not None:
            self._timer.stop()
        self.shown, self._is_ready = None, False
        self._lines = lines
        self._draw()
        self.scroll_home(animate=False)
        self.post_message(self.Readied())

    def _draw(self) -> None:
        self.clear()
        self.write(folded(self._lines, max(20, self.scrollable_content_region.width)))

    def on_resize(self, _: Resize) -> None:
        """Fold the lines for the new width."""
        self._draw()

    def action_leave(self) -> None:
        """Go back to the list."""
        self.screen.focus_previous()
