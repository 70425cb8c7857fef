"""`mcpwrap approvals` on a terminal: live view of pending approvals, answered by keys."""

import asyncio
import time
from collections.abc import Collection, Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from mcpwrap.cli.approvals import list_pending, rules
from mcpwrap.cli.approvals.text import pause
from mcpwrap.cli.approvals.tui import dialogs
from mcpwrap.cli.approvals.tui.question_pane import (
    DisplayedGroup,
    DisplayedQuestion,
    QuestionPane,
)
from mcpwrap.cli.approvals.tui.rules_screen import RulesScreen
from mcpwrap.cli.approvals.user_option import fix_of
from mcpwrap.core.approval.views.question_groups import (
    QuestionGroup,
    grouped,
    shown_together,
    summary,
)
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import DecideRequest, Pending, Scope, Verdict
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import group_answers
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing
from mcpwrap.gate_client.user_approvals import AnyApprovals, connect

_PAUSE_S = 0.7  # shorter than reading a question takes, longer than a second keystroke
_AGAIN_S = 1.0
# What a person needs to answer comes first: 80 characters do not hold all of it.
_COLUMNS = ["ID", "EXPIRES", "YOU", "AGENT", "SERVER", "TOOL", "RULE", "AGE", "ASKED"]
Row = Pending | QuestionGroup


class ApprovalsView(App[None]):
    """Terminal view. An answer is always to the question in its lower part."""

    CSS = """
    #state { height: auto; padding: 0 1; }
    #list { height: auto; max-height: 40%; }
    #question { height: 1fr; border: round $primary; scrollbar-gutter: stable; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [  # their labels fit 80 characters
        Binding("a", "answer('approve', 'once')", "Approve"),
        Binding("d", "answer('deny', 'once')", "Deny"),
        Binding("r", "answer('approve', 'rule')", "Always"),
        Binding("m", "answer('approve', 'minutes')", "10 min"),
        Binding("s", "answer('approve', 'session')", "Session"),
        Binding("x", "answer('deny-and-stop', 'once')", "Deny+stop"),
        Binding("A", "answer_all('approve')", "Approve all", key_display="A"),
        Binding("D", "answer_all('deny')", "Deny all", key_display="D"),
        Binding("a", "decide('approve')", "Accept"),
        Binding("d", "decide('deny')", "Reject"),
        Binding("p", "read", "Read"),
        Binding("R", "list_rules", "Rules", key_display="R"),
        Binding("q,ctrl+c", "quit", "Quit"),
    ]

    def __init__(self, pause_s: float = _PAUSE_S) -> None:
        super().__init__()
        self._pane = QuestionPane(pause_s)
        self._pending: tuple[Pending, ...] = ()
        self._rows: dict[str, Row] = {}
        self._opened: set[str] = set()  # groups whose calls are rows of their own
        self._looked_at = ""  # row of the question that is shown below, or will be
        self._members: tuple[str, ...] = ()  # of that group
        self._is_answering = False
        self._is_sending = False  # the list shrinks with each answer to a group

    def run_until_quit(self) -> int:
        """Run the view; return the exit status."""
        self.run()
        return self.return_code or 0

    def compose(self) -> ComposeResult:
        """Return the widgets of the view."""
        yield Static(id="state")
        yield DataTable[Text](id="list", cursor_type="row")
        yield self._pane
        yield Footer(compact=True)

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
                with await asyncio.to_thread(connect) as connection:
                    self._take(await asyncio.to_thread(connection.watch))
                    while True:
                        self._take(await _next_listing(connection))
            except McpwrapError as error:
                self._take(Listing((), ()))  # a gate that has ended has lost its queue
                problem = f"{error.where}: {error.named_problem}; trying again"
                self._state(Text(one_line(problem), "bold red"))
            await asyncio.sleep(_AGAIN_S)

    def _take(self, listing: Listing) -> None:
        if not self._is_shown:
            return
        self._pending = listing.pending
        self._arrange()
        self._let_time_pass()
        waiting = f"{len(self._pending)} wait for approval" if self._pending else "nothing waits"
        self._state(Text("\n".join([waiting, *map(pause, listing.paused)]), "bold"))

    def _state(self, text: Text) -> None:
        if self._is_shown:
            self.query_one("#state", Static).update(text)

    def _arrange(self) -> None:
        """Update the rows; the list is built again only if they are others."""
        before = list(self._rows)
        # A call that is being read stays on the screen when others of its kind come.
        self._opened |= {
            group.key
            for group in grouped(self._pending)
            if group.is_several and self._looked_at in {one.id for one in group.pending}
        }
        self._rows = rows_of(self._pending, self._opened)
        if list(self._rows) != before:
            self._rebuild()
        else:
            self._look()

    def _rebuild(self) -> None:
        table, now, ids = self._table, time.time(), list(self._rows)
        row = ids.index(self._looked_at) if self._looked_at in ids else table.cursor_row
        table.clear()
        for key, one in self._rows.items():
            table.add_row(*_texts(one, now), key=key)
        table.move_cursor(row=max(0, min(row, len(ids) - 1)))
        self._look()

    def _let_time_pass(self) -> None:
        if not self._is_shown:
            return
        now = time.time()
        for key, one in self._rows.items():
            for name, text in zip(_COLUMNS, _texts(one, now), strict=True):
                self._table.update_cell(key, name, text)

    def on_data_table_row_highlighted(self) -> None:
        """Show the question at the cursor. The event may be from a list that was replaced since."""
        self._look()

    def _look(self) -> None:
        if not self._is_shown:
            return
        row, ids = self._table.cursor_row, list(self._rows)
        id_ = ids[row] if 0 <= row < len(ids) else ""
        one = self._rows.get(id_)
        shown = one.pending if isinstance(one, QuestionGroup) else (one,) if one else ()
        members = tuple(f"{each.id} {each.has_preview}" for each in shown)
        if (id_, members) == (self._looked_at, self._members) or self._is_sending:
            return
        if id_ != self._looked_at:
            self._pane.say("…" if id_ else "Nothing waits for approval.")
        self._looked_at, self._members = id_, members
        if isinstance(one, QuestionGroup):
            self._fetch_group(one)
        elif one is not None:
            self._fetch(one)

    @work(exclusive=True, group="fetch")
    async def _fetch(self, pending: Pending) -> None:
        try:
            with await asyncio.to_thread(connect) as connection:
                seen = await asyncio.to_thread(connection.show, pending.id)
        except McpwrapError as error:
            if pending.id == self._looked_at:
                self._pane.say(one_line(error.named_problem))
            return
        if pending.id == self._looked_at:
            self._pane.show_question(DisplayedQuestion(pending, seen))

    @work(exclusive=True, group="fetch")
    async def _fetch_group(self, group: QuestionGroup) -> None:
        together = shown_together(group.pending)
        try:
            with await asyncio.to_thread(connect) as connection:
                members = await asyncio.to_thread(group_answers.members_of, connection, together)
        except McpwrapError as error:
            if group.key == self._looked_at:
                self._pane.say(one_line(error.named_problem))
            return
        if group.key == self._looked_at and members:
            left_out = len(group.pending) - len(together)
            self._pane.show_group(DisplayedGroup(tuple(members)), left_out)

    def _complain(self, error: McpwrapError) -> None:
        said = f"{one_line(error.named_problem)}\n{one_line(fix_of(error))}"
        self.notify(said, severity="error", markup=False)

    # ------------------------------------------------------------------ answers
    def check_action(self, action: str, _: tuple[object, ...]) -> bool | None:
        """Grey out the keys that answer while no question can be answered.

        A request is answered by other keys than a question on definitions.
        """
        if action == "read":
            return not self._pane.has_focus  # there Escape has its place in the footer
        if action == "answer_all":
            return self._pane.is_group and (self._pane.answerable_group is not None or None)
        if action not in {"answer", "decide"}:
            return True
        if self._pane.is_group:
            return False
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

    @work(exclusive=True, group="rules")
    async def action_list_rules(self) -> None:
        """List the approvals that were saved as rules, of which each can be revoked."""
        try:
            listed = await asyncio.to_thread(rules.saved)
        except McpwrapError as error:
            self._complain(error)
            return
        await self.push_screen_wait(RulesScreen(listed))

    def on_data_table_row_selected(self) -> None:
        """Move the focus to the question; of a group, list its calls, or list them no more."""
        if isinstance(self._rows.get(self._looked_at), QuestionGroup):
            self._opened ^= {self._looked_at}
            self._arrange()
        else:
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

    def action_answer_all(self, verdict: str) -> None:
        """Answer all calls of the group that is shown, as many as are on the screen now."""
        shown = self._pane.answerable_group
        if shown is not None and not self._is_answering:
            self._is_answering = True
            self._answer_all(shown, Verdict(verdict))

    @work
    async def _answer_all(self, shown: DisplayedGroup, verdict: Verdict) -> None:
        try:
            said = await dialogs.answered_all(self, shown, verdict, self._send_all)
            if said is not None:
                self.notify(one_line(said), markup=False)
        except McpwrapError as error:
            self._complain(error)
        finally:
            self._is_answering = self._is_sending = False
            self._look()

    def _send_all(self, decides: list[DecideRequest]) -> str:
        self._is_sending = True
        total, outcomes = len(decides), list[str]()

        def tell(_: DecideRequest, outcome: str) -> None:
            outcomes.append(outcome)
            progress = Text(f"answering: {len(outcomes)} of {total}", "bold")
            self.call_from_thread(self._state, progress)

        with connect() as connection:
            group_answers.send(connection, decides, tell)
        return summary(outcomes, total)

    @work
    async def _answer(self, shown: DisplayedQuestion, verdict: Verdict, scope: Scope) -> None:
        try:
            said = await dialogs.answered(self, shown, verdict, scope)
            if said is not None:
                self.notify(one_line(said), markup=False)
        except McpwrapError as error:
            self._complain(error)
        finally:
            self._is_answering = False


def rows_of(pending: Sequence[Pending], opened: Collection[str]) -> dict[str, Row]:
    """Return the rows of the list by their keys: a group is one, and if it is open, its calls."""
    rows: dict[str, Row] = {}
    for group in grouped(pending):
        if group.is_several:
            rows[group.key] = group
        if not group.is_several or group.key in opened:
            rows |= {one.id: one for one in group.pending}
    return rows


def _texts(one: Row, now: float) -> list[Text]:
    first, style = (one.first, "bold") if isinstance(one, QuestionGroup) else (one, "")
    cell_by_name = dict(zip(list_pending.COLUMNS, list_pending.cells(first, now), strict=True))
    if isinstance(one, QuestionGroup):
        cell_by_name["ID"] = f"{len(one.pending)} calls"
    return [Text(cell_by_name[name], style) for name in _COLUMNS]


async def _next_listing(connection: AnyApprovals) -> Listing:
    if isinstance(connection, ApprovalConnection):
        await _readable(connection.fileno())
        return connection.next_listing()
    return await asyncio.to_thread(connection.next_listing)  # for a moment


async def _readable(fd: int) -> None:
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(fd)
