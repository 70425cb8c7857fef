"""`mcpwrap approvals` on a terminal: live view of pending approvals, answered by keys."""

import asyncio
import time
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from mcpwrap.cli.approvals import answer, list_pending
from mcpwrap.cli.approvals.text import pause
from mcpwrap.cli.approvals.tui import dialogs
from mcpwrap.cli.approvals.tui.question_pane import DisplayedQuestion, QuestionPane
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Pending, Scope, Verdict
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing

_PAUSE_S = 0.7  # shorter than reading a question takes, longer than a second keystroke
_AGAIN_S = 1.0
_COLUMNS = list_pending.COLUMNS


class ApprovalsView(App[None]):
    """Terminal view. An answer is always to the question in its lower part."""

    CSS = """
    #state { height: auto; padding: 0 1; }
    #list { height: auto; max-height: 40%; }
    #question { height: 1fr; border: round $primary; scrollbar-gutter: stable; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('approve', 'once')", "Approve once"),
        Binding("m", "answer('approve', 'minutes')", "Same for 10 min"),
        Binding("s", "answer('approve', 'session')", "Same this session"),
        Binding("d", "answer('deny', 'once')", "Deny"),
        Binding("x", "answer('deny-and-stop', 'once')", "Deny, stop server"),
        Binding("a", "decide('approve')", "Accept"),
        Binding("d", "decide('deny')", "Reject"),
        Binding("p", "read", "Read"),
        Binding("q,ctrl+c", "quit", "Quit"),
    ]

    def __init__(self, pause_s: float = _PAUSE_S) -> None:
        super().__init__()
        self._pane = QuestionPane(pause_s)
        self._pending: dict[str, Pending] = {}
        self._looked_at = ""  # ID of the question that is shown below, or will be
        self._is_answering = False

    def run_until_quit(self) -> int:
        """Run the view; return the exit status."""
        self.run()
        return self.return_code or 0

    def compose(self) -> ComposeResult:
        """Return the widgets of the view."""
        yield Static(id="state")
        yield DataTable[Text](id="list", cursor_type="row")
        yield self._pane
        yield Footer()

    def on_mount(self) -> None:
        """Fill the columns, and start to follow the gate."""
        for name in _COLUMNS:
            self._table.add_column(name, key=name)
        self._pane.say("Nothing waits for approval.")
        self.set_interval(1.0, self._let_time_pass)
        self._follow()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#list", DataTable)

    @property
    def _is_shown(self) -> bool:
        """Return whether the list exists: it does not while the view closes."""
        return bool(self.screen_stack) and bool(self.query("#list"))

    # ------------------------------------------------------------------ pending requests
    @work
    async def _follow(self) -> None:
        while True:
            try:
                with await asyncio.to_thread(ApprovalConnection, approvals.PATH) as connection:
                    self._take(await asyncio.to_thread(connection.watch))
                    while True:
                        await _readable(connection.fileno())
                        self._take(connection.next_listing())
            except McpwrapError as error:
                self._take(Listing((), ()))  # a gate that has ended has lost its queue
                problem = f"{error.where}: {error.named_problem}; trying again"
                self._state(Text(one_line(problem), "bold red"))
            await asyncio.sleep(_AGAIN_S)

    def _take(self, listing: Listing) -> None:
        if not self._is_shown:
            return
        before = list(self._pending)
        self._pending = {one.id: one for one in listing.pending}
        if list(self._pending) != before:
            self._rebuild()
        self._let_time_pass()
        waiting = f"{len(self._pending)} wait for approval" if self._pending else "nothing waits"
        self._state(Text("\n".join([waiting, *map(pause, listing.paused)]), "bold"))

    def _state(self, text: Text) -> None:
        if self._is_shown:
            self.query_one("#state", Static).update(text)

    def _rebuild(self) -> None:
        table, now, ids = self._table, time.time(), list(self._pending)
        row = ids.index(self._looked_at) if self._looked_at in ids else table.cursor_row
        table.clear()
        for one in self._pending.values():
            table.add_row(*_texts(one, now), key=one.id)
        table.move_cursor(row=max(0, min(row, len(ids) - 1)))
        self._look()

    def _let_time_pass(self) -> None:
        if not self._is_shown:
            return
        now = time.time()
        for one in self._pending.values():
            for name, text in zip(_COLUMNS, _texts(one, now), strict=True):
                self._table.update_cell(one.id, name, text)

    def on_data_table_row_highlighted(self) -> None:
        """Show the question at the cursor. The event may be from a list that was replaced since."""
        self._look()

    def _look(self) -> None:
        if not self._is_shown:
            return
        row, ids = self._table.cursor_row, list(self._pending)
        id_ = ids[row] if 0 <= row < len(ids) else ""
        if id_ == self._looked_at:
            return
        self._looked_at = id_
        self._pane.say("…" if id_ else "Nothing waits for approval.")
        if id_:
            self._fetch(self._pending[id_])

    @work(exclusive=True, group="fetch")
    async def _fetch(self, pending: Pending) -> None:
        try:
            with await asyncio.to_thread(ApprovalConnection, approvals.PATH) as connection:
                seen = await asyncio.to_thread(connection.show, pending.id)
        except McpwrapError as error:
            if pending.id == self._looked_at:
                self._pane.say(one_line(error.named_problem))
            return
        if pending.id == self._looked_at:
            self._pane.show_question(DisplayedQuestion(pending, seen))

    # ------------------------------------------------------------------ answers
    def check_action(self, action: str, _: tuple[object, ...]) -> bool | None:
        """Grey out the keys that answer while no question can be answered.

        A request is answered by other keys than a question on definitions.
        """
        if action not in {"answer", "decide"}:
            return True
        if (action == "decide") != self._pane.is_on_definitions:
            return False
        return None if self._pane.answerable is None else True

    def on_question_pane_readied(self) -> None:
        """Update the keys in the footer."""
        if self._is_shown:
            self.refresh_bindings()

    def action_read(self) -> None:
        """Move the focus to the question, for scrolling."""
        self._pane.focus()

    def on_data_table_row_selected(self) -> None:
        """Move the focus to the question."""
        self.action_read()

    def action_answer(self, verdict: str, scope: str) -> None:
        """Answer the question that is shown."""
        shown = self._pane.answerable
        if shown is not None and not self._is_answering:
            self._is_answering = True
            self._answer(shown, Verdict(verdict), Scope(scope))

    def action_decide(self, verdict: str) -> None:
        """Accept or reject the definitions that are shown."""
        self.action_answer(verdict, Scope.ONCE)

    @work
    async def _answer(self, shown: DisplayedQuestion, verdict: Verdict, scope: Scope) -> None:
        try:
            decide = await dialogs.decided(self, shown, verdict, scope)
            if decide is not None:
                said = await asyncio.to_thread(answer.send_decision, decide)
                self.notify(one_line(said), markup=False)
        except McpwrapError as error:
            said = f"{one_line(error.named_problem)}\n{one_line(error.fix)}"
            self.notify(said, severity="error", markup=False)
        finally:
            self._is_answering = False


def _texts(one: Pending, now: float) -> list[Text]:
    return [Text(text) for text in list_pending.cells(one, now)]


async def _readable(fd: int) -> None:
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(fd)
