"""Groups of calls on the page: one list, one answer for each or for all that are shown."""

import re

import pytest

from mcpwrap.core.approval.views.question_groups import MAX_SHOWN_BYTES
from mcpwrap.core.wire.approval_socket import RefusedReply, Scope, Verdict
from tests.unit.as_web.browser import Answer, Browser
from tests.unit.as_web.scripted_gate import OTHERS_UID, PASSWORD, ScriptedGate, question

COUNT = 25


@pytest.fixture
def many(gate: ScriptedGate) -> ScriptedGate:
    """Return the gate with 25 calls of one kind."""
    for number in range(COUNT):
        gate.wait(f"a{number:02}", question({"path": f"/notes/{number}.md", "content": "x\ny"}))
    return gate


def open_group(browser: Browser) -> tuple[str, Answer]:
    """Return the path and the page of the only group in the list."""
    (path,) = set(re.findall(r"/group/[0-9a-f]{16}", browser.get("/").text))
    shown = browser.get(path)
    assert shown.status == 200
    return path, shown


def picks(shown: Answer) -> dict[str, str]:
    """Return the ticked fields of a group's form."""
    return dict(re.findall(r'name="(pick\.[^"]+)" value="([0-9a-f]{64})" checked', shown.text))


def fields(shown: Answer, **more: str) -> dict[str, str]:
    given = {"verdict": "approve", "reason": "", "password": PASSWORD.decode()}
    return {"token": shown.fields["token"], **picks(shown), **given, **more}


def test_calls_of_one_kind_are_one_group(logged_in: Browser, many: ScriptedGate) -> None:
    many.wait("alone", question({"path": "/x"}, agent_uid=OTHERS_UID))
    listed = logged_in.get("/")
    assert "25 calls of write_query on sqlite" in listed.said
    assert "path &#34;/notes/7.md&#34;" in listed.said
    assert 'href="/approval/a07"' in listed.text
    assert listed.text.count('class="card call"') == 1
    assert logged_in.get("/list").text in listed.text


def test_all_that_are_shown_are_approved_and_none_that_comes_later(
    logged_in: Browser, many: ScriptedGate
) -> None:
    path, shown = open_group(logged_in)
    assert len(picks(shown)) == COUNT
    many.wait("late", question({"path": "/notes/late.md"}))
    done = logged_in.post(path, fields(shown))
    assert (done.status, done.headers["location"]) == (303, "/")
    assert [one.id for one in many.decided] == [f"a{number:02}" for number in range(COUNT)]
    assert {(one.verdict, one.scope, one.times) for one in many.decided} == {
        (Verdict.APPROVE, Scope.ONCE, 1)
    }
    assert len({one.digest for one in many.decided}) == COUNT
    assert list(many.waiting) == ["late"]
    assert "25 approved" in logged_in.get("/").said


def test_only_ticked_ones_are_answered(logged_in: Browser, many: ScriptedGate) -> None:
    path, shown = open_group(logged_in)
    ticked = fields(shown, verdict="deny", reason="no")
    for number in range(2, COUNT):
        del ticked[f"pick.a{number:02}"]
    assert logged_in.post(path, ticked).status == 303
    assert [(one.id, one.verdict, one.reason) for one in many.decided] == [
        ("a00", Verdict.DENY, b"no"), ("a01", Verdict.DENY, b"no"),
    ]  # fmt: skip


def test_what_is_gone_or_another_call_by_now_is_said(
    logged_in: Browser, many: ScriptedGate
) -> None:
    path, shown = open_group(logged_in)
    del many.waiting["a03"]
    many.waiting["a04"] = question({"path": "/etc/passwd"})
    assert logged_in.post(path, fields(shown)).status == 303
    assert "1 gone, 23 approved, 1 changed" in logged_in.get("/").said
    assert list(many.waiting) == ["a04"]


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ({"password": "wrong"}, 403, "not the password"),
        ({"password": ""}, 400, "enter your password"),
        ({"verdict": "maybe"}, 400, "choose a verdict"),
        ({"token": "x"}, 403, "this form has expired"),
        ({"pick.a/b": "0" * 64}, 400, "a call that cannot be"),
        ({"pick.a01": "0"}, 400, "no valid digest"),
    ],
)
def test_an_invalid_form_answers_none(
    logged_in: Browser, many: ScriptedGate, more: dict[str, str], status: int, said: str
) -> None:
    path, shown = open_group(logged_in)
    refused = logged_in.post(path, fields(shown, **more))
    assert (refused.status, said in refused.said) == (status, True)
    assert many.decided == []
    assert len(picks(refused)) == COUNT
    assert logged_in.post(path, fields(shown)).status == 303


def test_nothing_ticked_is_no_answer(logged_in: Browser, many: ScriptedGate) -> None:
    path, shown = open_group(logged_in)
    kept = {name: one for name, one in fields(shown).items() if not name.startswith("pick.")}
    refused = logged_in.post(path, kept)
    assert (refused.status, "tick at least one" in refused.said) == (400, True)
    assert picks(refused) == {}  # as it was sent


def test_a_refusal_of_all_is_told_with_what_was_done(
    logged_in: Browser, many: ScriptedGate
) -> None:
    path, shown = open_group(logged_in)
    many.refuse_after = 2
    many.later = RefusedReply(code="busy", why="too many attempts")
    refused = logged_in.post(path, fields(shown))
    assert refused.status == 429
    assert "2 approved, 23 not answered: too many attempts" in refused.said


def test_a_long_call_is_answered_by_itself(logged_in: Browser, many: ScriptedGate) -> None:
    many.wait("long", question({"path": "x" * MAX_SHOWN_BYTES}))
    _, shown = open_group(logged_in)
    assert "pick.long" not in picks(shown)
    assert "too long to be shown here" in shown.said
    assert 'href="/approval/long"' in shown.text
    assert len(picks(shown)) == COUNT


def test_a_group_of_others_is_not_seen(browser: Browser, gate: ScriptedGate) -> None:
    for id_ in ("b1", "b2"):
        gate.wait(id_, question({"path": id_}, agent_uid=OTHERS_UID))
    browser.log_in("carol")
    path, shown = open_group(browser)
    other = Browser(browser.port)
    other.log_in("alice")
    assert "/group/" not in other.get("/").text
    assert other.get(path).status == 404
    given = fields(shown) | {"token": other.get("/").fields["token"]}
    assert other.post(path, given).status == 303
    assert "2 gone" in other.get("/").said
    assert gate.decided == []
    assert browser.post(path, fields(shown)).status == 303
    assert len(gate.decided) == 2


def test_a_group_that_is_gone_is_not_there(logged_in: Browser, many: ScriptedGate) -> None:
    path, _ = open_group(logged_in)
    many.waiting.clear()
    assert logged_in.get(path).status == 404
