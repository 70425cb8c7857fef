"""Driver of the terminal view for tests: sends keys, and reads the screen."""

import asyncio
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from mcpwrap.cli.approvals.tui.app import ApprovalsView
from mcpwrap.cli.approvals.tui.question_pane import QuestionPane
from tests.shared import pace


class Driver:
    """Driver of the view: sends keys, and reads the screen."""

    def __init__(self, app: ApprovalsView, pilot: Pilot[None]) -> None:
        self.app = app
        self.press = pilot.press
        self._pilot = pilot

    @property
    def pane(self) -> QuestionPane:
        return self.app.screen_stack[0].query_one(QuestionPane)

    @property
    def page(self) -> str:
        return "\n".join(strip.text.rstrip() for strip in self.pane.lines)

    @property
    def rows(self) -> list[str]:
        table: DataTable[object] = self.app.screen_stack[0].query_one("#list", DataTable)
        return [str(table.get_row_at(n)[0]) for n in range(table.row_count)]

    @property
    def state(self) -> str:
        return str(self.app.screen_stack[0].query_one("#state", Static).render())

    @property
    def dialog(self) -> str:
        return "\n".join(str(one.render()) for one in self.app.screen.query(Static))

    @property
    def said(self) -> list[str]:
        return [one.message for one in self.app._notifications]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until the view has processed the gate's packets."""
        async with asyncio.timeout(pace.WAIT_S):
            while not holds():
                await self._pilot.pause(0.01)

    async def answerable(self, text: str) -> None:
        await self.until(lambda: text in self.page and self.pane.answerable)


def drive(
    story: Callable[[Driver], Awaitable[None]],
    pause_s: float = 0.01,
    size: tuple[int, int] = (100, 40),
) -> None:
    async def play() -> None:
        app = ApprovalsView(pause_s)
        async with app.run_test(size=size, notifications=True) as pilot:
            driver = Driver(app, pilot)
            await driver.until(lambda: app.query("#list") and app.query(QuestionPane))
            await story(driver)

    asyncio.run(play())
