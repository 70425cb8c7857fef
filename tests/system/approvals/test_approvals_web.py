"""Approval page in a real browser: an approver answers there, and no other account can."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests.shared import pace
from tests.system.approvals.browser import PAGE, Browser, browser
from tests.system.approvals.web_machine import PASSWORD, agent, ask, asking_machine, call, text_of
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support.approvers import decisions
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = asking_machine

COUNT = "SELECT count(*) FROM t"
INSERT = "INSERT INTO t VALUES ({}, 'n')"
HOSTILE = "INSERT INTO t VALUES (1, '</pre><script>document.title=\"mine\"</script>\u202e')"
FORM = "Content-Type: application/x-www-form-urlencoded"
ORIGIN = f"Origin: {PAGE}"


@pytest.fixture
def session(machine: Machine) -> Iterator[Session]:
    with agent(machine) as session:
        yield session


@pytest.fixture(scope="module")
def window(stage: Machine) -> Iterator[Browser]:
    """Start carol's browser, for all stories."""
    with browser(stage, "carol") as window:
        yield window


@pytest.fixture
def carol(window: Browser) -> Browser:
    """Return the browser of an approver who has logged in, without pending approvals."""
    window.forget()
    window.log_in("carol", PASSWORD)
    window.sees("Nothing waits")
    return window


@contextmanager
def waiting(session: Session, window: Browser, query: str) -> Iterator[tuple[int, str]]:
    """Make a call that waits; return its request, and its id on the page."""
    request = ask(session, "write_query", query)
    window.open("/")
    window.sees("write_query on sqlite")
    find = "find('CLASS_NAME', 'call').get_attribute('href')"
    link = window.run(f"result = wait(lambda: {find})")
    yield request, link.rpartition("/")[2]


@dataclass
class Curl:
    """HTTP requests by curl, from an account that has a cookie and no browser."""

    machine: Machine
    user: str
    cookie: str = ""
    headers: list[str] = field(default_factory=list)

    def __call__(
        self, path: str, *more: str, fields: dict[str, str] | None = None
    ) -> tuple[int, str]:
        words = ["curl", "-sS", "-w", r"'\n%{http_code}'", f"'{PAGE}{path}'"]
        words += [f"-H '{line}'" for line in (f"Cookie: mcpwrap={self.cookie}", *more)]
        for name, value in (fields or {}).items():
            words.append(f"--data-urlencode '{name}={value}'")
        text, _, status = self.machine.as_user(self.user, " ".join(words)).out.rpartition("\n")
        return int(status), text

    def form(self, id_: str) -> dict[str, str]:
        """Return the fields of a call's form, filled in but for the password."""
        _, text = self(f"/approval/{id_}")
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', text))
        shown = {name: hidden[name] for name in ("token", "digest")}
        return shown | {"verdict": "approve", "scope": "once", "times": "1", "reason": ""}


def rows(session: Session) -> int:
    return int(re.findall(r"\d+", call(session, "read_query", COUNT))[-1])


def test_a_call_appears_is_read_and_approved_with_the_keyboard(
    session: Session, carol: Browser
) -> None:
    before = rows(session)
    carol.run("driver.execute_script('window.sameLoad = 1')")
    request = ask(session, "write_query", INSERT.format(7))
    carol.sees("write_query on sqlite")  # by itself
    assert carol.run("result = driver.execute_script('return window.sameLoad')") == 1
    assert "1 new; 1 call waits" in carol.run(
        "result = find('ID', 'said').get_attribute('textContent')"
    )
    carol.press("j\n")
    carol.is_at("/approval/")
    for words in (INSERT.format(7), "Rows are changed for good.", "ask-before-writing", "alice"):
        assert words in carol.text
    assert rows(session) == before  # others continue, and this one has not run
    carol.press(f"a{PASSWORD}\n")
    carol.sees("is approved")
    carol.sees("Nothing waits")
    assert "'affected_rows': 1" in text_of(session, request)
    assert rows(session) == before + 1


def test_a_call_is_denied_with_the_keyboard(session: Session, carol: Browser) -> None:
    before = rows(session)
    with waiting(session, carol, INSERT.format(8)) as (request, id_):
        carol.press("k\n")
        carol.is_at(f"/approval/{id_}")
        carol.run("find('ID', 'reason').send_keys('not on a Sunday')")
        carol.run("press(Keys.ESCAPE)")
        carol.press(f"d{PASSWORD}\n")
        carol.sees("is denied")
        said = text_of(session, request)
        assert "not on a Sunday" in said
        assert "carol" in said
    assert rows(session) == before


def test_without_scripts_it_works_as_well(
    machine: Machine, session: Session, carol: Browser
) -> None:
    curl = Curl(machine, "carol", carol.cookie())
    with waiting(session, carol, INSERT.format(9)) as (request, id_):
        status, text = curl("/")
        assert (status, f'href="/approval/{id_}"' in text) == (200, True)
        form = curl.form(id_) | {"password": PASSWORD}
        assert curl(f"/approval/{id_}", ORIGIN, FORM, fields=form)[0] == 303
        assert "'affected_rows': 1" in text_of(session, request)


def test_what_an_agent_writes_is_text_in_a_browser(session: Session, carol: Browser) -> None:
    with waiting(session, carol, HOSTILE) as (request, id_):
        carol.open(f"/approval/{id_}")
        text = carol.text
        assert "</pre><script>document.title" in text
        assert "\\u202e" in text
        assert "\u202e" not in text
        assert carol.run("result = driver.title") == "write_query - mcpwrap"
        assert carol.run("result = driver.get_log('browser')") == []  # the CSP blocked nothing
        carol.press(f"d{PASSWORD}\n")
        carol.sees("is denied")
        assert "denied" in text_of(session, request)


def test_what_is_not_this_pages_own_form_changes_nothing(
    machine: Machine, session: Session, carol: Browser
) -> None:
    before = rows(session)
    curl = Curl(machine, "carol", carol.cookie())
    with waiting(session, carol, INSERT.format(10)) as (request, id_):
        path, form = f"/approval/{id_}", curl.form(id_) | {"password": PASSWORD}
        query = "&".join(f"{name}={value}" for name, value in form.items()).replace(" ", "+")
        refused = {
            "another page": curl(path, "Origin: http://127.0.0.1:8000", FORM, fields=form),
            "a page without a name": curl(path, "Origin: null", FORM, fields=form),
            "no page": curl(path, FORM, fields=form),
            "another name": curl(path, "Host: evil.example:52080", ORIGIN, FORM, fields=form),
            "a frame": curl(path, ORIGIN, FORM, "Sec-Fetch-Site: cross-site", fields=form),
            "JSON": curl(path, ORIGIN, "Content-Type: application/json", fields=form),
            "no token": curl(path, ORIGIN, FORM, fields=form | {"token": ""}),
            "an old token": curl(path, ORIGIN, FORM, fields=form | {"token": "x" * 43}),
            "no session": Curl(machine, "carol")(path, ORIGIN, FORM, fields=form),
            "another digest": curl(path, ORIGIN, FORM, fields=form | {"digest": "0" * 64}),
        }
        assert {what: answer[0] for what, answer in refused.items()} == {
            "another page": 403, "a page without a name": 403, "no page": 403, "another name": 421,
            "a frame": 403, "JSON": 415, "no token": 403, "an old token": 403, "no session": 401,
            "another digest": 409,
        }  # fmt: skip
        assert curl(f"{path}?{query}")[0] == 200  # a GET shows it, and decides nothing
        assert rows(session) == before
        assert curl(path, ORIGIN, FORM, fields=form)[0] == 303  # the twin
        assert "'affected_rows': 1" in text_of(session, request)
        assert curl(path, ORIGIN, FORM, fields=form)[0] == 404  # and not once more
    assert rows(session) == before + 1
    said = [entry["MESSAGE"] for entry in machine.journal("_SYSTEMD_UNIT=mcpwrap-web.service")]
    why = "the form was not sent by this page [E-WEB-ORIGIN]"
    assert f"a form for {path} was refused: {why}" in said


@only_in_test_all("mutation twins: show that a foreign form is taken where nothing looks at it")
@pytest.mark.parametrize(
    ("module", "check", "instead", "lines", "fields"),
    [
        (
            "as_web/request_rules",
            '    if list(head.origin) != [f"http://{head.host[0]}"]:\n',
            "    if False:\n",
            ["Origin: http://127.0.0.1:8000", FORM],
            {},
        ),
        (
            "as_web/forms",
            "    return hmac.compare_digest(",
            "    return True or hmac.compare_digest(",
            [ORIGIN, FORM],
            {"token": "x" * 43},
        ),
    ],
)
def test_without_the_look_at_page_and_token_a_foreign_form_is_taken(
    machine: Machine,
    session: Session,
    carol: Browser,
    module: str,
    check: str,
    instead: str,
    lines: list[str],
    fields: dict[str, str],
) -> None:
    curl = Curl(machine, "carol", carol.cookie())
    with waiting(session, carol, INSERT.format(20)) as (_, id_):
        form = curl.form(id_) | {"password": PASSWORD} | fields
        assert curl(f"/approval/{id_}", *lines, fields=form)[0] == 403
    always = (
        "    if False:\n" if check.endswith(":\n") else "    return True or hmac.compare_digest("
    )
    with machine.patched(module, check, always):
        machine.as_root("systemctl restart mcpwrap-web")
        carol.log_in("carol", PASSWORD)
        curl = Curl(machine, "carol", carol.cookie())
        with agent(machine) as again, waiting(again, carol, INSERT.format(20)) as (request, id_):
            form = curl.form(id_) | {"password": PASSWORD} | fields
            assert curl(f"/approval/{id_}", *lines, fields=form)[0] == 303
            assert "'affected_rows': 1" in text_of(again, request)
    machine.as_root("systemctl restart mcpwrap-web")


def test_a_page_of_the_agents_in_the_approvers_own_browser_gets_nowhere(
    machine: Machine, session: Session, carol: Browser
) -> None:
    """The browser sends its cookie: another port is the same site."""
    curl = Curl(machine, "carol", carol.cookie())
    before = rows(session)
    with waiting(session, carol, INSERT.format(11)) as (request, id_):
        form = curl.form(id_) | {"password": PASSWORD}
        inputs = "".join(f'<input name="{n}" value="{v}">' for n, v in form.items())
        page = (
            f'<title>bait</title><form id="f" method="post" action="{PAGE}/approval/{id_}">{inputs}'
        )
        page += f'</form><iframe src="{PAGE}/approval/{id_}"></iframe>'
        machine.write("/home/alice/page.html", page)
        serve = f"exec {machine.guest_command('foreign_page', 'serve', 8000)} 2>/dev/null"
        with machine.session("", user="alice", command=serve) as foreign:
            assert foreign.read_line() == "listens"
            carol.run("driver.get('http://127.0.0.1:8000/')")
            reads = f"return fetch('{PAGE}/list').then(r => r.text()).catch(e => 'kept out')"
            assert carol.run(f"result = driver.execute_script({reads!r})") == "kept out"
            frame = "driver.switch_to.frame(0)\nresult = text()\ndriver.switch_to.default_content()"
            assert "write_query" not in carol.run(frame)
            carol.run("driver.execute_script('document.getElementById(\"f\").submit()')")
            carol.sees("Not done")
        assert rows(session) == before
        carol.open(f"/approval/{id_}")
        carol.press(f"a{PASSWORD}\n")
        carol.sees("is approved")
        assert "'affected_rows': 1" in text_of(session, request)


def test_a_stolen_cookie_shows_and_cannot_approve(
    machine: Machine, session: Session, carol: Browser
) -> None:
    """Nor can a guessed password, for long; tries are in the audit."""
    before = rows(session)
    thief = Curl(machine, "alice", carol.cookie())
    with waiting(session, carol, INSERT.format(12)) as (request, id_):
        path, form = f"/approval/{id_}", thief.form(id_)  # it is shown, with a token
        assert thief(path, ORIGIN, FORM, fields=form)[0] == 400
        for guess in ("hunter2", "correct horse"):
            status, text = thief(path, ORIGIN, FORM, fields=form | {"password": guess})
            assert status == 403
            assert guess not in text
        assert rows(session) == before
        # The twin: the same cookie, with the password.
        assert thief(path, ORIGIN, FORM, fields=form | {"password": PASSWORD})[0] == 303
        assert "'affected_rows': 1" in text_of(session, request)
    answers = [one for one in decisions(machine) if one.get("approval") == id_]
    by = f"uid {machine.uid_of('mcpwrap-web')} as carol (web, password)"
    tried = [(one["decision"], one["by"]) for one in answers if one.get("sender") == "person"]
    assert tried == [("refused", by), ("refused", by), ("approved", by)]


def test_the_agents_own_account_sees_its_calls_and_answers_by_its_password_alone(
    machine: Machine, session: Session, carol: Browser
) -> None:
    with waiting(session, carol, INSERT.format(13)) as (request, id_):
        with browser(machine, "bob") as bobs:  # neither an approver, nor with an agent
            bobs.log_in("bob", PASSWORD)
            bobs.sees("Nothing waits")
            bobs.open(f"/approval/{id_}")
            bobs.sees("no such call waits")
        with browser(machine, "alice") as alices:
            alices.log_in("alice", PASSWORD)
            alices.sees("write_query on sqlite")
            alices.press("j\n")
            alices.is_at(f"/approval/{id_}")
            alices.press("awrong\n")
            alices.sees("wrong password")
            alices.press(f"a{PASSWORD}\n")
            alices.sees("is approved")
        assert "'affected_rows': 1" in text_of(session, request)


def test_an_open_page_goes_on_when_the_gate_restarts(
    machine: Machine, session: Session, carol: Browser
) -> None:
    with waiting(session, carol, INSERT.format(14)):
        machine.as_root("systemctl restart mcpwrap-gate")
        carol.sees("Nothing waits")
    with agent(machine) as again:
        request = ask(again, "write_query", INSERT.format(15))
        carol.sees("write_query on sqlite")
        carol.press("j\n")
        carol.is_at("/approval/")
        carol.press(f"a{PASSWORD}\n")
        carol.sees("is approved")
        assert "'affected_rows': 1" in text_of(again, request)


def test_the_page_is_for_this_machine_and_calls_nobody(machine: Machine) -> None:
    Curl(machine, "carol")("/login")
    listens = machine.look("ss -Htln 'sport = :52080'").split()
    assert listens[3] in {"127.0.0.1%lo:52080", "127.0.0.1:52080"}
    unit = machine.show("mcpwrap-web.service", "MainPID", "User")
    assert unit["User"] == "mcpwrap-web"
    status = machine.read(f"/proc/{unit['MainPID']}/status")
    assert re.search(r"^CapBnd:\t0+$", status, re.MULTILINE)
    enter = f"nsenter -t {unit['MainPID']} -n"
    devices = json.loads(machine.look(f"{enter} ip -j link"))
    assert [(device["ifname"], "UP" in device["flags"]) for device in devices] == [("lo", True)]
    # Nor would the packet rules let its account connect, without a namespace of its own.
    knock = f"curl -sS --max-time {pace.WAIT_S} -o /dev/null http://127.0.0.1:52080/login"
    machine.as_user("carol", knock)
    machine.as_root(f"runuser -u mcpwrap-web -- {knock}", status=7)
