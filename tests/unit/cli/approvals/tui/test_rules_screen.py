"""Saved rules in the terminal view: listed, shown in words, and revoked by a key."""

from msgspec.structs import replace

from mcpwrap.cli.approvals.tui.rules_screen import RulesScreen
from mcpwrap.core.approval.approval_rule import ApprovalRule
from tests.unit.cli.approvals.tui.driver import Driver, drive
from tests.unit.cli.scripted_gate import ScriptedGate, question, saved_rule

CALL = replace(question(path="/notes/\x1b[31ma.md", n=1), definition="")


def rule(id_: str, **fields: object) -> ApprovalRule:
    return saved_rule(CALL, "n", id_, **fields)


async def opened(view: Driver) -> RulesScreen:
    await view.press("R")
    await view.until(lambda: isinstance(view.app.screen, RulesScreen))
    await view.until(lambda: str(view.app.screen._words.render()))  # type: ignore[attr-defined]
    assert isinstance(view.app.screen, RulesScreen)
    return view.app.screen


def words(screen: RulesScreen) -> str:
    return str(screen._words.render())


def test_a_rule_is_read_and_revoked_and_the_others_stay(gate: ScriptedGate) -> None:
    gate.rules = [rule("7f3a"), rule("81b0", ticked=()), rule("81c0", approved="{}")]

    async def story(view: Driver) -> None:
        await view.until(gate.watched.is_set)
        screen = await opened(view)
        assert screen._table.row_count == 3
        assert "7f3a" in words(screen)
        assert "\\u001b[31ma.md" in words(screen)
        assert "\x1b" not in words(screen)
        await view.press("down")
        await view.until(lambda: "81b0" in words(screen))
        await view.press("x")
        await view.until(lambda: view.said == ["rule 81b0 is revoked"])
        assert [one.id for one in gate.rules] == ["7f3a", "81c0"]
        await view.until(lambda: "another version" in words(screen))
        await view.press("x")
        await view.until(lambda: len(view.said) == 2)
        await view.press("escape")
        await view.until(lambda: len(view.app.screen_stack) == 1)

    drive(story)
    assert [one.id for one in gate.rules] == ["7f3a"]


def test_without_rules_it_says_so_and_a_refusal_is_told(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        await view.until(gate.watched.is_set)
        screen = await opened(view)
        assert "No approval was saved as a rule." in words(screen)
        await view.press("x", "escape")
        await view.until(lambda: len(view.app.screen_stack) == 1)
        gate.rules = [rule("7f3a")]
        screen = await opened(view)
        gate.rules = []  # another person has revoked it
        await view.press("x")
        await view.until(lambda: view.said)
        assert "7f3a" in words(screen)
        await view.press("escape")

    drive(story)
