"""A post of the webhook on a phone: its link by itself shows nothing and approves nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.shared import pace
from tests.system.approvals.browser import PAGE, Browser, phone
from tests.system.approvals.web_machine import (
    PASSWORD,
    agent,
    ask,
    asking_machine,
    call,
    configure,
    text_of,
)
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.support.approvers import decisions
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = asking_machine

HOOK = "https://api.good.test/hook"
INSERT = "INSERT INTO t VALUES (740, 'from a phone: {}')".format("long " * 30)
COUNT = "SELECT count(*) AS n FROM t WHERE id = 740"
FORM = {"verdict": "approve", "scope": "once", "times": "1", "digest": "0" * 64}
STATUS = "curl -sS -o /dev/null -w '%{http_code}'"


@contextmanager
def posting(machine: Machine) -> Iterator[Internet]:
    """Have pending approvals posted to an internet, for the time of the block."""
    with Internet(machine) as internet:
        configure(machine, f'[approvals]\nwebhook = "{HOOK}"\n')
        try:
            yield internet
        finally:
            configure(machine)


def posted(internet: Internet) -> dict[str, Any]:
    """Wait for a post, and return its body."""
    pace.until(lambda: bool(internet.posts()))
    body: dict[str, Any] = json.loads(internet.posts()[0].body)
    return body


def answers(machine: Machine, id_: str) -> list[str]:
    """Return the decisions of persons on a call, as the audit has them."""
    found = [one for one in decisions(machine) if one.get("approval") == id_]
    return [one["decision"] for one in found if one.get("sender") == "person"]


def knock(machine: Machine, link: str) -> list[str]:
    """Follow the link without a login, in each way; return the status of each."""
    body = " ".join(f"-d {name}={value}" for name, value in FORM.items())
    as_ours = f"{body} -d password='{PASSWORD}' -H 'Origin: {PAGE}'"
    ways = ("", "--head", body, as_ours)
    return [machine.as_user("carol", f"{STATUS} {how} {link}").out for how in ways]


def answer_by_touch(window: Browser, password: str) -> None:
    """Approve the call that is shown."""
    code = "find('ID', 'approve').click()\nfind('ID', 'password').send_keys(word + Keys.ENTER)"
    window.run(code, word=password)


@only_in_test_all(
    "10 s for an internet and a second browser; the fast tier has the post, and the page without it"
)
def test_the_link_of_a_post_opens_on_a_phone_and_only_the_password_approves(
    machine: Machine,
) -> None:
    with posting(machine) as internet, agent(machine) as session, phone(machine, "carol") as window:
        request = ask(session, "write_query", INSERT)
        post = posted(internet)
        link, id_ = post["url"], post["id"]
        # The link alone.
        window.run("driver.get(url)", url=link)
        window.sees("Password for approvals")
        source = window.run("result = driver.page_source")
        assert not [word for word in ("write_query", "phone", "sqlite", "alice") if word in source]
        assert window.fits
        assert knock(machine, link) == ["303", "303", "403", "401"]
        # A login, from which the phone returns to the call.
        window.log_in_here("carol", PASSWORD)
        window.is_at(f"/approval/{id_}")
        assert INSERT in window.text
        assert window.fits
        listed = json.loads(machine.as_user("carol", "mcpwrap approvals list --json").out)
        assert [one["id"] for one in listed["pending"]] == [id_]
        assert answers(machine, id_) == []
        # An answer, by touch: with a wrong password, and with the right one.
        answer_by_touch(window, "a guess")
        window.sees("wrong password")
        assert window.fits
        assert call(session, "read_query", COUNT) == "[{'n': 0}]"
        answer_by_touch(window, PASSWORD)
        window.sees("is approved")
        assert "'affected_rows': 1" in text_of(session, request)
        assert call(session, "read_query", COUNT) == "[{'n': 1}]"
        assert answers(machine, id_) == ["refused", "approved"]
