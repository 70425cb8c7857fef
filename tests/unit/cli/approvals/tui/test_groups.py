"""Groups of calls of one kind in the terminal view: one row, one answer for each or for all."""

from textual.widgets import Input

from mcpwrap.cli.approvals.tui.rule_screen import WordsScreen
from mcpwrap.core.wire.approval_socket import Channel, DoneReply, Proof, RefusedReply, Verdict
from tests.unit.cli.approvals.tui.driver import Driver, drive
from tests.unit.cli.scripted_gate import ScriptedGate, question

COUNT = 25


def put_all(gate: ScriptedGate, may: str = "yes") -> None:
    for number in range(COUNT):
        gate.put(f"a{number:02}", question(path=f"/notes/{number}.md"), may=may)  # type: ignore[arg-type]


async def group_is_ready(view: Driver) -> None:
    await view.until(lambda: view.pane.answerable_group)


def test_many_of_one_kind_are_one_row_and_one_answer_to_those_on_the_screen(
    gate: ScriptedGate,
) -> None:
    put_all(gate)

    async def story(view: Driver) -> None:
        await group_is_ready(view)
        assert view.rows == ["25 calls"]
        for number in (0, 24):
            assert f"{number + 1} of 25: a{number:02}" in view.page
            assert f'path: "/notes/{number}.md"' in view.page
        await view.press("a")  # the key of one call
        for leave in ("escape", "enter"):
            assert gate.decided == []
            await view.until(lambda: len(view.app.screen_stack) == 1)
            await view.press("A")
            await view.until(lambda: isinstance(view.app.screen, WordsScreen))
            await view.until(lambda: "Approve all 25" in view.dialog)
            if leave == "escape":
                await view.press(leave)
        gate.put("late", question(path="/notes/late.md"))
        await view.press("enter")
        await view.until(lambda: view.said == ["25 approved"])

    drive(story)
    assert [one.id for one in gate.decided] == [f"a{number:02}" for number in range(COUNT)]
    assert {(one.verdict, one.channel) for one in gate.decided} == {
        (Verdict.APPROVE, Channel.TERMINAL)
    }
    assert len({one.digest for one in gate.decided}) == COUNT


def test_one_of_them_is_answered_by_itself(gate: ScriptedGate) -> None:
    put_all(gate)

    async def story(view: Driver) -> None:
        await group_is_ready(view)
        await view.press("enter")
        await view.until(lambda: len(view.rows) == 1 + COUNT)
        await view.press("down", "down")
        await view.answerable("/notes/1.md")
        await view.press("A")  # the key of a group
        await view.press("a")
        await view.until(lambda: gate.decided)
        await view.press("up", "up")
        await group_is_ready(view)
        await view.press("enter")
        await view.until(lambda: len(view.rows) == 1)

    drive(story)
    assert [one.id for one in gate.decided] == ["a01"]


def test_an_approval_of_all_asks_for_the_password_alone(gate: ScriptedGate) -> None:
    put_all(gate, "proof")
    gate.answer = RefusedReply(code="proof", why="wrong password")

    async def story(view: Driver) -> None:
        await group_is_ready(view)
        await view.press("A")
        await view.until(lambda: view.app.screen.query(Input))
        assert view.app.screen.query_one(Input).password
        await view.press("enter")
        await view.until(lambda: "the password is empty" in view.dialog)
        await view.press(*"mule", "enter")
        await view.until(lambda: "wrong password" in view.dialog)
        gate.answer = DoneReply(text="approved")
        await view.press(*"horse", "enter")
        await view.until(lambda: view.said == ["25 approved"])

    drive(story)
    assert [one.password for one in gate.decided] == [b"mule", *[b"horse"] * COUNT]
    assert {one.reason for one in gate.decided} == {b""}


def test_one_password_is_for_all(gate: ScriptedGate) -> None:
    put_all(gate, "proof")

    async def story(view: Driver) -> None:
        await group_is_ready(view)
        for typed in (["escape"], ["enter", "escape"], ["n", "o", "enter", "p", "w", "enter"]):
            await view.press("D")
            for key in typed:
                await view.until(lambda: view.app.screen.query(Input))
                await view.press(key)
        await view.until(lambda: len(gate.decided) == COUNT)

    drive(story)
    proofs = {(one.verdict, one.proof, one.password, one.reason) for one in gate.decided}
    assert proofs == {(Verdict.DENY, Proof.PASSWORD, b"pw", b"no")}


def test_a_refusal_of_all_is_told(gate: ScriptedGate) -> None:
    put_all(gate)
    gate.answer = RefusedReply(code="busy", why="too many attempts")

    async def story(view: Driver) -> None:
        await group_is_ready(view)
        await view.press("A")
        await view.until(lambda: isinstance(view.app.screen, WordsScreen))
        await view.press("enter")
        await view.until(lambda: view.said)
        assert "too many attempts" in view.said[0]
        gate.answer = DoneReply(text="approved")

    drive(story)
    assert len(gate.decided) == 1


def test_what_is_read_stays_when_others_of_its_kind_come(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", question(path="/a"))
        await view.answerable("/a")
        gate.put("81b0", question(path="/b"))
        await view.until(lambda: view.rows == ["2 calls", "7f3a", "81b0"])
        assert view.pane.answerable
        assert view.pane.answerable.pending.id == "7f3a"

    drive(story)
