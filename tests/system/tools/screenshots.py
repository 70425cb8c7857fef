"""`make screenshots`: render the approval page for docs/screenshots, by a real browser.

RUNS AS ROOT on the host, which it leaves as it was.
"""

from pathlib import Path

from tests.system.approvals.browser import Browser, browser
from tests.system.approvals.web_machine import PASSWORD, agent, ask, asking_machine, text_of
from tests.system.bed import roots

SUITE = "bookworm"
FOLDER = Path(__file__).resolve().parents[3] / "docs/screenshots"
LAST = "DELETE FROM t WHERE id = 6"
MANY = 25
NOW = "DELETE FROM t WHERE id = 7 OR name LIKE 'n%'"


def main() -> None:
    """Show one call in full: on a phone and on a desk, light and dark."""
    roots.need_root("make screenshots")
    FOLDER.mkdir(exist_ok=True)
    with (
        asking_machine(SUITE) as machine,
        agent(machine) as session,
        browser(machine, "carol") as window,
    ):
        window.log_in("carol", PASSWORD)
        request = ask(session, "write_query", LAST)
        _read_the_first(window)
        window.press(f"a{PASSWORD}\n")
        window.sees("is approved")
        text_of(session, request)
        ask(session, "write_query", NOW)
        _read_the_first(window)
        for scheme in ("light", "dark"):
            window.looks(width=1000, height=1560, scheme=scheme, is_phone=False)
            window.screenshot(FOLDER / f"{scheme}-desktop.png")
            window.looks(width=390, height=844, scheme=scheme, is_phone=True)
            window.screenshot(FOLDER / f"{scheme}-phone.png")
        for number in range(MANY):
            ask(session, "write_query", f"INSERT INTO t VALUES ({number}, 'n')")
        window.open("/")
        window.sees(f"{MANY} calls of write_query on sqlite")
        _many(window, "list")
        window.press("g\n")
        window.is_at("/group/")
        _many(window, "group")
    for path in sorted(FOLDER.iterdir()):
        print(path.relative_to(FOLDER.parents[1]))


def _many(window: Browser, page: str) -> None:
    """Show calls of one kind on a phone and on a desk."""
    window.looks(width=360, height=800, scheme="light", is_phone=True)
    window.screenshot(FOLDER / f"many-{page}-phone.png")
    window.looks(width=1280, height=1600, scheme="light", is_phone=False)
    window.screenshot(FOLDER / f"many-{page}-desktop.png")


def _read_the_first(window: Browser) -> None:
    window.sees("write_query on sqlite")
    window.press("j\n")
    window.is_at("/approval/")


if __name__ == "__main__":
    main()
