"""Question on a server's definitions, on the approval page: read and answered with the keyboard."""

from tests.system.approvals.browser import browser
from tests.system.approvals.web_machine import PASSWORD, asking_machine
from tests.system.bed.machine import Machine
from tests.system.pins.machines import PAGE_SERVER, POISON, a_tool, first_use, listed, opened, put
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = [
    ON_ONE_RELEASE,
    only_in_test_all("the page of a call, with another text; the fast tier has the commands"),
]
STAGE = asking_machine


def test_a_changed_tool_is_read_and_accepted_on_the_page(machine: Machine) -> None:
    machine.announce("held back|held definitions|mcpwrap tools")
    first_use(machine, PAGE_SERVER, a_tool("one"))
    put(machine, PAGE_SERVER, [a_tool("one", description=POISON)])
    with browser(machine, "carol") as carol, opened(machine, PAGE_SERVER) as session:
        carol.log_in("carol", PASSWORD)
        assert listed(session) == ["change"]
        carol.sees(PAGE_SERVER)
        carol.press("j\n")
        carol.is_at("/approval/")
        for words in (POISON, "Return one.", "one"):
            assert words in carol.text
        carol.press(f"a{PASSWORD}\n")
        carol.sees("Nothing waits")
        assert listed(session) == ["change", "one"]
