"""Approval saved as a rule in the terminal view: ticked, read in words, saved by Enter."""

import msgspec
from msgspec.structs import replace
from textual.widgets import Button, Checkbox, Input, Static

from mcpwrap.cli.approvals.tui.dialogs import PasswordScreen
from mcpwrap.cli.approvals.tui.rule_screen import RuleScreen, WordsScreen
from mcpwrap.core.approval.approval_rule import RuleRequest, TickedArgument, decoded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import DoneReply, RefusedReply, Scope, Verdict
from tests.unit.cli.approvals.tui.driver import Driver, drive
from tests.unit.cli.scripted_gate import ScriptedGate, question

CALL = replace(question(path="/notes/a.md", n=1), definition="")


async def opened(view: Driver) -> RuleScreen:
    await view.answerable("/notes/a.md")
    await view.press("r")
    await view.until(lambda: isinstance(view.app.screen, RuleScreen))
    await view.until(lambda: view.app.screen.query(Button))
    assert isinstance(view.app.screen, RuleScreen)
    return view.app.screen


def test_a_rule_is_ticked_read_and_saved(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", CALL)
        screen = await opened(view)
        shown = "".join(str(one.render()) for one in screen.query(Static))
        assert "`*` is any text and `?` any character" in shown
        boxes, inputs = list(screen.query(Checkbox)), list(screen.query(Input))
        assert [one.value for one in inputs] == ["*", "/notes/*", "8h", ""]
        boxes[1].value = True
        inputs[3].value = "20"
        inputs[3].focus()
        await view.press("enter")
        await view.until(lambda: isinstance(view.app.screen, WordsScreen))
        assert gate.decided == []
        await view.press("enter")
        await view.until(lambda: gate.decided)

    drive(story)
    (one,) = gate.decided
    assert (one.verdict, one.scope) == (Verdict.APPROVE, Scope.RULE)
    assert msgspec.json.decode(one.rule, type=RuleRequest) == RuleRequest(
        ticked=(TickedArgument("path", "/notes/*"),), for_s=8 * 3600, times=20
    )


def test_the_box_of_an_argument_ticks_it_whatever_its_name(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        named: dict[str, Json] = {"path": "/notes/a.md", "path=*": 1}
        gate.put("7f3a", replace(question(**named), definition=""))
        screen = await opened(view)
        list(screen.query(Checkbox))[1].value = True
        screen.query_one(Button).press()
        await view.until(lambda: isinstance(view.app.screen, WordsScreen))
        await view.press("enter")
        await view.until(lambda: gate.decided)

    drive(story)
    assert decoded(gate.decided[0].rule).ticked == (TickedArgument("path=*"),)


def test_ticked_and_unticked_boxes_differ_without_colour(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", CALL)
        screen = await opened(view)
        ticked, other = list(screen.query(Checkbox))[:2]
        ticked.focus()
        await view.press("space")
        assert ["X" in str(one.render()) for one in (ticked, other)] == [True, False]
        await view.press("space")
        assert "X" not in str(ticked.render())
        for told in ("such as 30m, 8h or 30d", "Further calls, a number"):
            assert told in view.dialog

    drive(story)


def test_a_wrong_password_keeps_the_rule(gate: ScriptedGate) -> None:
    gate.answer = RefusedReply(code="proof", why="wrong password")

    async def story(view: Driver) -> None:
        gate.put("7f3a", CALL, may_save="proof")
        screen = await opened(view)
        screen.query_one(Button).press()
        await view.until(lambda: isinstance(view.app.screen, WordsScreen))
        await view.press("enter")
        await view.until(lambda: isinstance(view.app.screen, PasswordScreen))
        await view.press(*"mule", "enter")
        await view.until(lambda: "wrong password" in view.dialog)
        gate.answer = DoneReply(text="approved")
        await view.press(*"horse", "enter")
        await view.until(lambda: view.said == ["approved"])

    drive(story)
    assert [one.password for one in gate.decided] == [b"mule", b"horse"]
    assert len({one.rule for one in gate.decided}) == 1


def test_what_cannot_be_saved_says_why_and_escape_decides_nothing(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", CALL)
        screen = await opened(view)
        inputs = list(screen.query(Input))
        for field, wrong in ((2, "soon"), (3, "0"), (3, "x")):
            before = inputs[field].value
            inputs[field].value = wrong
            inputs[field].focus()
            await view.press("enter")
            await view.until(lambda: "E-APPROVAL-BOUND" in str(screen._problem.render()))
            assert view.app.screen is screen
            inputs[field].value = before
        inputs[3].value = "20"
        await view.press("enter")
        await view.until(lambda: isinstance(view.app.screen, WordsScreen))
        await view.press("escape")
        await view.until(lambda: view.app.screen is screen)
        assert [one.value for one in screen.query(Input)] == ["*", "/notes/*", "8h", "20"]
        assert str(screen._problem.render()) == ""
        await view.press("escape")
        await view.until(lambda: len(view.app.screen_stack) == 1)

    drive(story)
    assert gate.decided == []
