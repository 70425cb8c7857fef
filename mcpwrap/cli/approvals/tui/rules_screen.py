"""List of the approvals that were saved as rules in the terminal view, each revoked by a key."""

import asyncio
import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Static

from mcpwrap.cli.approvals import rules
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.user_approvals import connect

_HINT = (
    "x revokes the rule that is shown below: such calls are asked about again. Escape goes back."
)


class RulesScreen(ModalScreen[None]):
    """Table of the rules, and below it in words the one at the cursor."""

    CSS = """
    RulesScreen { align: center middle; }
    RulesScreen > Vertical { width: 96%; height: 90%; border: round $accent; padding: 0 1; }
    RulesScreen #hint { height: auto; }
    RulesScreen DataTable { height: auto; max-height: 50%; }
    RulesScreen VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "revoke", "Revoke"),
        Binding("escape", "leave", "Back"),
    ]

    def __init__(self, listed: Sequence[ApprovalRule]) -> None:
        super().__init__()
        self._rule_by_id = {rule.id: rule for rule in listed}
        self._table = DataTable[Text](cursor_type="row")
        self._words = Static(Text(""))

    def compose(self) -> ComposeResult:
        """Return the widgets of the list."""
        with Vertical():
            yield Static(Text(_HINT), id="hint")
            yield self._table
            with VerticalScroll():
                yield self._words

    def on_mount(self) -> None:
        """Fill the table."""
        self._table.add_columns(*rules.COLUMNS)
        now = time.time()
        for id_, rule in self._rule_by_id.items():
            self._table.add_row(*map(Text, rules.cells(rule, now)), key=id_)
        self._look()

    def on_data_table_row_highlighted(self) -> None:
        """Show the rule at the cursor."""
        self._look()

    def action_leave(self) -> None:
        """Go back to what waits."""
        self.dismiss(None)

    @property
    def _shown_id(self) -> str:
        ids = [str(key.value) for key in self._table.rows]
        row = self._table.cursor_row
        return ids[row] if 0 <= row < len(ids) else ""

    def _look(self) -> None:
        rule = self._rule_by_id.get(self._shown_id)
        if rule is None:
            self._words.update(Text("No approval was saved as a rule."))
            return
        try:
            lines = rules.page(rule, time.time())
        except McpwrapError as error:  # another version has saved it; it is revoked all the same
            lines = [error.named_problem]
        self._words.update(Text("\n".join(map(one_line, lines))))

    @work(exclusive=True)
    async def action_revoke(self) -> None:
        """Revoke the rule that is shown."""
        if not (id_ := self._shown_id):
            return
        try:
            with await asyncio.to_thread(connect) as connection:
                reply = await asyncio.to_thread(connection.revoke, id_)
        except McpwrapError as error:
            said = f"{one_line(error.named_problem)}\n{one_line(error.fix)}"
            self.notify(said, severity="error", markup=False)
            return
        self.notify(one_line(reply.text), markup=False)
        self._table.remove_row(id_)
        self._look()
