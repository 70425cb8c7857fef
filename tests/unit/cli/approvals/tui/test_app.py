"""Terminal view of approvals, driven by keys, with a scripted gate."""

import os

import pytest
from textual.containers import Vertical
from textual.widgets import DataTable, Input
from textual.widgets._footer import FooterKey

from mcpwrap.cli.approvals.text import ON, agent
from mcpwrap.core.approval.document import digest, document
from mcpwrap.core.pins.pin_question import held_changes
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.wire.approval_socket import (
    Channel,
    DecideRequest,
    DoneReply,
    Paused,
    Proof,
    RefusedReply,
    Scope,
    Verdict,
)
from tests.unit.cli.approvals.tui.driver import Driver, drive
from tests.unit.cli.scripted_gate import ScriptedGate, question
from tests.unit.core.pins.pin_book import PinBook, tool_definition

DELETE = question(query="DELETE FROM t")
DROP = question(query="DROP TABLE t")
ME = agent(os.getuid())


def test_a_question_appears_without_a_key_and_is_approved_by_one(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        await view.until(gate.watched.is_set)
        assert "Nothing waits for approval." in view.page
        gate.put("7f3a", DELETE)
        await view.answerable('query: "DELETE FROM t"')
        assert (view.rows, view.state) == (["7f3a"], "1 wait for approval")
        await view.press("a")
        await view.until(lambda: gate.decided)
        await view.until(lambda: view.said == ["approved"])
        gate.take("7f3a")
        await view.until(lambda: "Nothing waits" in view.page)
        await view.press("a")  # there is no question

    drive(story)
    shown = digest(document(DELETE))
    wanted = DecideRequest(
        id="7f3a", digest=shown, verdict=Verdict.APPROVE, channel=Channel.TERMINAL
    )
    assert gate.decided == [wanted]


@pytest.mark.parametrize(
    ("keys", "verdict", "scope", "times", "reason"),
    [
        (["m"], Verdict.APPROVE, Scope.MINUTES, 10, b""),
        (["s"], Verdict.APPROVE, Scope.SESSION, 10, b""),
        (["d", *"no", "enter"], Verdict.DENY, Scope.ONCE, 1, b"no"),
        (["x", "enter"], Verdict.DENY_AND_STOP, Scope.ONCE, 1, b""),
    ],
)
def test_each_key_has_its_answer(
    gate: ScriptedGate, keys: list[str], verdict: str, scope: str, times: int, reason: bytes
) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", DELETE)
        await view.answerable("DELETE")
        await view.press(keys[0])
        if len(keys) > 1:
            await view.until(lambda: view.app.screen.query(Input))
        await view.press(*keys[1:])
        await view.until(lambda: gate.decided)

    drive(story)
    (one,) = gate.decided
    assert (one.verdict, one.scope, one.times, one.reason) == (verdict, scope, times, reason)


async def ask_for_proof(gate: ScriptedGate, view: Driver, key: str) -> None:
    """Have a call wait that needs a proof, press a key, and wait for its box."""
    gate.put("7f3a", DELETE, may="proof")
    await view.answerable("DELETE")
    await view.press(key)
    await view.until(lambda: view.app.screen.query(Input))


@pytest.mark.parametrize("key", ["a", "m", "s"])
def test_an_approval_asks_for_the_password_alone(gate: ScriptedGate, key: str) -> None:
    async def story(view: Driver) -> None:
        await ask_for_proof(gate, view, key)
        assert view.app.screen.query_one(Input).password
        assert box_title(view) == f"Password of {ME} for approvals"
        await view.press(*"pw", "enter")
        await view.until(lambda: view.said == ["approved"])

    drive(story)
    assert [(one.proof, one.password, one.reason) for one in gate.decided] == [
        (Proof.PASSWORD, b"pw", b"")
    ]


def test_the_box_of_a_reason_is_not_that_of_a_password(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        await ask_for_proof(gate, view, "d")
        assert box_title(view) == "Reason for the agent"
        assert "The agent gets this text, which is not hidden" in view.dialog
        reason = view.app.screen
        await view.press(*"no", "enter")
        await view.until(lambda: view.app.screen is not reason and view.app.screen.query(Input))
        assert box_title(view) == f"Password of {ME} for approvals"
        await view.press("enter")  # by polkit
        await view.until(lambda: gate.decided)

    drive(story)
    assert [(one.proof, one.reason) for one in gate.decided] == [(Proof.POLKIT, b"no")]


def test_a_wrong_password_is_typed_again_in_the_same_box(gate: ScriptedGate) -> None:
    gate.answer = RefusedReply(code="proof", why="wrong password")

    async def story(view: Driver) -> None:
        await ask_for_proof(gate, view, "a")
        box = view.app.screen
        await view.press(*"raxq", "enter")
        await view.until(lambda: "wrong password [E-APPROVAL-PROOF]" in view.dialog)
        gate.answer = DoneReply(text="approved")
        await view.press(*"rxdq", "enter")  # none of them is a key of the view
        await view.until(lambda: view.said == ["approved"])
        assert box not in view.app.screen_stack

    drive(story)
    assert [one.password for one in gate.decided] == [b"raxq", b"rxdq"]


def test_what_is_typed_while_a_password_is_checked_decides_nothing(gate: ScriptedGate) -> None:
    gate.answer = RefusedReply(code="busy", why="too many attempts")

    async def story(view: Driver) -> None:
        await ask_for_proof(gate, view, "a")
        box = view.app.screen
        with gate.busy():
            await view.press(*"pw", "enter")
            await view.press(*"da", "enter", "escape")
            assert view.app.screen is box
        await view.until(lambda: "too many attempts" in view.dialog)
        await view.press("escape")  # the twin: now it leaves
        await view.until(lambda: view.app.screen is not box)

    drive(story)
    assert [one.password for one in gate.decided] == [b"pw"]


def test_arguments_are_before_the_details_for_a_low_terminal(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", DELETE)
        await view.answerable("DELETE")
        lines = view.page.splitlines()
        assert [lines[n].split()[0] for n in range(5)] == ["id", "agent", "server", "tool", "rule"]
        assert view.page.index('query: "DELETE FROM t"') < view.page.index("asked  ")
        assert digest(document(DELETE)) in view.page

    drive(story)


def test_a_key_answers_what_is_shown_and_not_what_takes_its_place(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", DELETE)
        await view.until(lambda: '"DELETE FROM t"' in view.page)
        gate.put("81b0", DROP)
        gate.take("7f3a")
        await view.until(lambda: '"DROP TABLE t"' in view.page)
        await view.press("a")  # meant for the previous question

    drive(story, pause_s=600.0)
    assert gate.decided == []


def test_the_list_grows_and_what_is_read_stays(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", DELETE)
        gate.put("81b0", DROP, rule="no-drop")
        await view.answerable("DELETE")
        await view.press("down")
        await view.answerable("DROP")
        gate.put("9000", DELETE, rule="third")
        await view.until(lambda: view.rows == ["7f3a", "81b0", "9000"])
        gate.take("7f3a")
        await view.until(lambda: view.rows == ["81b0", "9000"])
        assert view.pane.answerable
        assert view.pane.answerable.pending.id == "81b0"
        await view.press("enter")
        await view.until(lambda: view.app.focused is view.pane)
        await view.press("escape")
        await view.until(lambda: view.app.focused is not view.pane)
        await view.press("p", "a")
        await view.until(lambda: gate.decided)

    drive(story)
    assert gate.decided[0].id == "81b0"


def test_nothing_that_an_agent_wrote_acts_on_the_screen(gate: ScriptedGate) -> None:
    evil = question(query="[red]\x1b[2J\u202e" + "x" * 200, **{"[b": 1})
    gate.paused.append(Paused(agent_uid=0, server="[i]s", why="[b]w\x1b", until=0))
    gate.answer = DoneReply(text="[link=x]approved")

    async def story(view: Driver) -> None:
        gate.put("7f3a", evil, rule="[red]rule", message="[/]")
        await view.answerable(r'"[red]\u001b[2J\u202exxx')
        assert f"\n{ON}xxx" in view.page
        assert r", [b]w\x1b" in view.state
        assert "on [i]s until" in view.state
        await view.press("a")
        await view.until(lambda: view.said == ["[link=x]approved"])

    drive(story)


def test_a_gate_that_is_restarted_is_found_again(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", DELETE)
        await view.answerable("DELETE")
        gate.hang_up()
        await view.until(lambda: "trying again" in view.state)
        assert view.rows == []
        assert view.pane.answerable is None
        gate.come_back()
        gate.put("81b0", DROP)
        await view.answerable("DROP")

    drive(story)


def test_a_question_that_is_ready_while_the_view_closes_is_ignored(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.put("7f3a", DELETE)
        await view.answerable("DELETE")
        await view.app._close_all()  # screens close first; posted events are handled after
        view.app.on_question_pane_readied()

    drive(story)


def test_a_request_that_is_gone_before_it_was_read_is_an_error(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.hidden.add("7f3a")
        gate.put("7f3a", DELETE)
        await view.until(lambda: "no such request waits" in view.page)
        await view.press("a", "q")

    drive(story)
    assert gate.decided == []


def test_held_definitions_are_accepted_and_rejected_by_keys(gate: ScriptedGate) -> None:
    async def story(view: Driver) -> None:
        gate.report(held_report())
        await view.answerable('new: tool "add"')
        assert '+   "description": "Adds all."' in view.page
        for key in "msx":  # they are for requests
            await view.press(key)
        assert gate.decided == []
        await view.press("a")
        await view.until(lambda: len(gate.decided) == 1)
        await view.press("d")
        await view.until(lambda: view.app.screen.query(Input))
        assert "Reject  github: definitions: 1 new (9c1d)" in view.dialog
        await view.press(*"no", "enter")
        await view.until(lambda: len(gate.decided) == 2)

    drive(story)
    assert [(one.verdict, one.scope, one.reason) for one in gate.decided] == [
        (Verdict.APPROVE, Scope.ONCE, b""),
        (Verdict.DENY, Scope.ONCE, b"no"),
    ]


def test_the_keys_of_definitions_are_not_those_of_a_request(gate: ScriptedGate) -> None:
    def shown(view: Driver) -> set[str]:
        return {one.binding.description for one in view.app.active_bindings.values()}

    async def story(view: Driver) -> None:
        gate.report(held_report())
        await view.answerable("add")
        assert {"Accept", "Reject"} <= shown(view)
        assert shown(view).isdisjoint({"Approve", "Deny", "10 min"})
        gate.take("9c1d")
        gate.put("7f3a", DELETE)
        await view.answerable("DELETE")
        assert {"Approve", "Deny"} <= shown(view)
        assert shown(view).isdisjoint({"Accept", "Reject"})

    drive(story)


def test_all_keys_and_the_columns_that_decide_fit_80_characters(gate: ScriptedGate) -> None:
    def keys(view: Driver) -> str:
        found = list(view.app.query(FooterKey))
        assert all(one.region.right <= 80 for one in found)
        return " ".join(f"{one.key_display} {one.description}" for one in found)

    def right_of(view: Driver, name: str) -> int:
        columns = view.app.query_one("#list", DataTable).ordered_columns
        names = [str(one.label) for one in columns]
        until = columns[: names.index(name) + 1]
        return sum(one.get_render_width(view.app.query_one("#list", DataTable)) for one in until)

    call, then = "a Approve d Deny r Always m 10 min s Session x Deny+stop", "R Rules q Quit"

    async def story(view: Driver) -> None:
        gate.put("7f3a90c1", DELETE, may="proof", rule="default.delete-" + "x" * 40)
        await view.answerable("DELETE")
        await view.until(lambda: keys(view) == f"{call} p Read {then}")
        assert max(right_of(view, name) for name in ("YOU", "EXPIRES", "TOOL")) <= 80
        await view.press("p")
        await view.until(lambda: keys(view) == f"esc Back {call} {then}")
        await view.press("escape")
        await view.until(lambda: keys(view) == f"{call} p Read {then}")
        gate.put("81b0", DROP, may="proof", rule="default.delete-" + "x" * 40)
        await view.until(lambda: len(view.rows) == 3)
        await view.press("up")
        await view.until(lambda: keys(view) == f"A Approve all D Deny all p Read {then}")

    drive(story, size=(80, 24))


def held_report() -> PinsReport:
    """Return the report on a server with one new tool."""
    book = PinBook(is_strict=True)
    book.show("1-1", tool_definition("add", "Adds all."))
    changes = held_changes(book.pins, book.held.held, lambda _: ())
    return PinsReport(server="github", mode="strict", held=book.held.held, changes=changes)


def box_title(view: Driver) -> str:
    """Return the title that the box of the dialog shows in its border."""
    box = view.app.screen.query_one(Vertical)
    border = "heavy" if view.app.screen.query_one(Input).password else "round"
    assert box.styles.border_top[0] == border
    assert box.region.width < view.app.size.width
    return str(box.border_title)
