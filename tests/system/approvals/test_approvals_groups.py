"""Many calls of one kind on the page, in a real browser: one list, by keyboard and by its tree."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.system.approvals.browser import Browser, browser
from tests.system.approvals.web_machine import PASSWORD, agent, ask, asking_machine, text_of
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = asking_machine

INSERT = "INSERT INTO t VALUES ({}, 'of-many')"
TREE = "result = [[one.get('role', {}).get('value'), one.get('name', {}).get('value')] for one in "
TREE += "driver.execute_cdp_cmd('Accessibility.getFullAXTree', {})['nodes'] if not one['ignored']]"


@pytest.fixture
def session(machine: Machine) -> Iterator[Session]:
    with agent(machine) as session:
        yield session


@pytest.fixture
def carol(stage: Machine) -> Iterator[Browser]:
    """Return the browser of an approver who has logged in."""
    with browser(stage, "carol") as window:
        window.log_in("carol", PASSWORD)
        yield window


def tree(window: Browser) -> Counter[tuple[str, str]]:
    """Return the roles and names that a screen reader gets."""
    return Counter((role, name) for role, name in window.run(TREE))


def fits(window: Browser) -> bool:
    """Return whether the page needs no horizontal scrolling on a phone and on a desk."""
    fitting = []
    for width, is_phone in ((360, True), (1280, False)):
        window.looks(width=width, height=800, scheme="light", is_phone=is_phone)
        fitting.append(window.fits)
    return all(fitting)


def reach(window: Browser, words: str) -> None:
    """Move the focus by Tab to the element with these words, and no further than to the end."""
    tabbed = """
for _ in range(count):
    press(Keys.TAB)
    if driver.execute_script("return document.activeElement.textContent").strip() == words:
        result = True
        break
"""
    count = len(tree(window))
    assert window.run(tabbed, words=words, count=count), f"Tab does not reach {words!r}"


@pytest.mark.parametrize(
    "count", [6, pytest.param(25, marks=only_in_test_all("each password takes half a second"))]
)
def test_many_calls_are_one_group_and_answered_by_keyboard_alone(
    session: Session, carol: Browser, count: int
) -> None:
    asked = [ask(session, "write_query", INSERT.format(number)) for number in range(count)]
    title = f"{count} calls of write_query on sqlite"
    carol.sees(title)
    assert fits(carol)
    listed = tree(carol)
    for role, name in (
        ("heading", title),
        ("region", title),
        ("link", f"Read and answer all {count} together"),
        ("link", "To the content"),
        ("button", "Log out"),
    ):
        assert listed[role, name] == 1, listed
    assert sum(role == "link" and "INSERT INTO t" in name for role, name in listed) == count
    # One of them.
    carol.press("j\n")
    carol.is_at("/approval/")
    assert INSERT.format(0) in carol.text
    carol.press(f"a{PASSWORD}\n")
    carol.sees("is approved")
    assert "1" in text_of(session, asked[0])
    # All the others, by Tab: a person may not know the keys.
    carol.sees(f"{count - 1} calls of write_query on sqlite")
    reach(carol, f"Read and answer all {count - 1} together")
    carol.press("\n")
    carol.is_at("/group/")
    assert fits(carol)
    shown = tree(carol)
    assert sum(role == "checkbox" for role, _ in shown.elements()) == count - 1
    for role, name in (
        ("group", "Verdict"),
        ("radio", "Approve each, once"),
        ("radio", "Deny each"),
        ("textbox", "Your password for approvals, carol"),
        ("button", "Send answer"),
        ("heading", "Your answer to the ticked calls"),
    ):
        assert shown[role, name] == 1, shown
    for number in range(1, count):
        assert INSERT.format(number) in carol.text
    carol.press(f"a{PASSWORD}\n")
    carol.sees(f"{count - 1} approved")
    for request in asked[1:]:
        assert "1" in text_of(session, request)


def test_the_rows_that_a_statement_would_delete_are_counted_by_the_tool_that_root_named(
    machine: Machine, session: Session, carol: Browser
) -> None:
    request = ask(session, "write_query", "DELETE FROM t WHERE id < 0")
    carol.sees("write_query on sqlite")
    carol.press("j\n")
    carol.is_at("/approval/")
    counted = "rows that are counted by SELECT count(*) FROM t WHERE id < 0"
    carol.sees(counted)  # by itself, if it comes after the page
    assert "Read by read_query at" in carol.text
    carol.press(f"d{PASSWORD}\n")
    carol.sees("is denied")
    assert "denied by carol" in text_of(session, request)
    records = machine.as_root("mcpwrap audit show --server sqlite --json").out
    assert '"sender": "gate"' in records or '"sender":"gate"' in records
