"""Approval commands and terminal view, as installed: a person reads pending calls and answers."""

import json

import pytest

from tests.shared import pace
from tests.system.approvals import asking
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support import approvers
from tests.system.support.screen import Screen
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = asking.booted

POLICY = """
version: 1
rules:
  - name: ask-first
    server: sqlite
    tool: write_query
    action: allow_with_approval
    message: A person decides.
"""
DELETE = "DELETE FROM of_commands WHERE id = {}"
DONE = "[{'affected_rows': 1}]"
PASSWORD = "correct horse"  # alice's, for approvals
APPROVERS = "/var/lib/mcpwrap/approvers.json"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put the policy in force, without pending approvals and passwords."""
    machine.as_root(f"rm -f {APPROVERS}")
    approvers.put(machine, POLICY)
    machine.announce("approval")  # accounts without the right, and denials, are in the journal
    return machine


def opened(machine: Machine) -> Session:
    session = machine.session("sqlite")
    session.initialize()
    return session


def ask(session: Session, query: str, tool: str = "write_query") -> int:
    return session.request("tools/call", {"name": tool, "arguments": {"query": query}})


def told(session: Session, request_id: int) -> str:
    return str(session.answer_to(request_id)["result"]["content"][0]["text"])


def call(session: Session, tool: str, query: str) -> str:
    return told(session, ask(session, query, tool))


def asked(machine: Machine, session: Session, query: str) -> tuple[int, str]:
    """Request a call that needs approval, and nothing else; return the request, and the id."""
    request = ask(session, query)
    (one,) = approvers.step(machine, "await_pending")
    return request, str(one["id"])


def waiting(machine: Machine, user: str) -> list[str]:
    out = machine.as_user(user, "mcpwrap approvals list --json").out
    return [one["id"] for one in json.loads(out)["pending"]]


# ----------------------------------------------------------------------------------- commands
def test_a_call_waits_is_read_and_runs_when_it_is_approved(machine: Machine) -> None:
    with opened(machine) as session:
        request, id_ = asked(machine, session, DELETE.format(1))
        head, row = machine.as_user("bob", "mcpwrap approvals list").out.splitlines()
        assert row.split()[0] == id_
        assert "alice" in row
        assert "ask-first" in row
        assert head.startswith("ID ")
        shown = machine.as_user("bob", f"mcpwrap approvals show {id_[:2]}").out
        assert f'  query: "{DELETE.format(1)}"\n' in shown
        assert "ask-first: A person decides." in shown
        # Other calls of the session pass while it waits.
        count = call(session, "read_query", "SELECT count(*) AS n FROM of_commands WHERE id = 1")
        assert count == "[{'n': 1}]"
        out = machine.as_user("bob", f"mcpwrap approvals approve {id_} --yes").out
        assert out.endswith(f"{id_} is approved\n")
        assert told(session, request) == DONE
        assert waiting(machine, "bob") == []
        # The next is compared with it.
        _, next_id = asked(machine, session, DELETE.format(2))
        shown = machine.as_user("bob", "mcpwrap approvals show").out
        assert f'- query: "{DELETE.format(1)}"\n' in shown
        assert f'+ query: "{DELETE.format(2)}"\n' in shown
        machine.as_user("bob", f"mcpwrap approvals deny {next_id}")


def test_each_question_is_told_as_it_comes(machine: Machine) -> None:
    watch = machine.session("", user="bob", command="exec mcpwrap approvals watch --json")
    with opened(machine) as session:
        for n in (14, 15):
            request, id_ = asked(machine, session, DELETE.format(n))
            one = watch.receive()
            assert (one["what"], one["id"], one["agent"]) == ("pending", id_, "alice")
            machine.as_user("bob", f"mcpwrap approvals deny {id_}")
            session.answer_to(request)
    machine.as_user("bob", "pkill -INT -u bob -f 'approvals watch --json$'")  # Ctrl-C
    assert watch.close() == (130, "\n")


def test_a_denial_reaches_the_agent_with_its_reason(machine: Machine) -> None:
    with opened(machine) as session:
        request, _ = asked(machine, session, DELETE.format(3))
        machine.as_user("bob", "mcpwrap approvals deny --reason 'not on a Friday'")
        assert "not on a Friday" in json.dumps(session.answer_to(request))
        count = call(session, "read_query", "SELECT count(*) AS n FROM of_commands WHERE id = 3")
        assert count == "[{'n': 1}]"


def test_the_same_may_run_again_as_often_as_was_said(machine: Machine) -> None:
    with opened(machine) as session:
        query = "INSERT INTO of_commands VALUES (4)"
        request, id_ = asked(machine, session, query)
        machine.as_user("bob", f"mcpwrap approvals approve {id_} --yes --for 10m --times 2")
        assert told(session, request) == DONE
        assert call(session, "write_query", query) == DONE
        request, id_ = asked(machine, session, query)  # the third time
        machine.as_user("bob", f"mcpwrap approvals deny {id_}")
        session.answer_to(request)


def test_denied_and_stopped_ends_the_session(machine: Machine) -> None:
    with opened(machine) as session:
        asked(machine, session, DELETE.format(5))
        machine.as_user("bob", "mcpwrap approvals deny --stop-server --reason enough")
        with pytest.raises(EOFError):
            session.answer_to(0)  # reads to the end


def test_who_is_neither_approver_nor_agent_sees_and_decides_nothing(machine: Machine) -> None:
    with opened(machine) as session:
        request, id_ = asked(machine, session, DELETE.format(6))
        assert waiting(machine, "mallory") == []
        approve = f"mcpwrap approvals approve {id_} --yes"
        err = machine.as_user("mallory", approve, status=2).err
        assert f"no pending request has the ID {id_!r}" in err
        assert waiting(machine, "bob") == [id_]
        machine.as_user("bob", approve)  # the twin
        assert told(session, request) == DONE


# -------------------------------------------------------------------------------------- proofs
def test_the_agents_own_account_approves_by_password_alone(machine: Machine) -> None:
    machine.as_root("mcpwrap approvals passwd alice --stdin", stdin=f"{PASSWORD}\n")
    assert machine.look(f"stat -c '%U:%G %a' {APPROVERS}") == "root:mcpwrap-gate 640\n"
    assert PASSWORD not in machine.read(APPROVERS)
    with opened(machine) as session:
        request, id_ = asked(machine, session, DELETE.format(7))
        approve = f"mcpwrap approvals approve {id_} --yes"
        err = machine.as_user("alice", approve, status=2).err  # without a terminal to type it at
        assert "no terminal" in err
        by_stdin = f"{approve} --password-stdin"
        assert "wrong" in machine.as_user("alice", by_stdin, stdin="correct mule\n", status=1).err
        assert waiting(machine, "alice") == [id_]
        machine.as_user("alice", by_stdin, stdin=f"{PASSWORD}\n")
        assert told(session, request) == DONE
        machine.as_root("mcpwrap approvals passwd alice --remove")
        request, id_ = asked(machine, session, DELETE.format(8))
        by_stdin = f"mcpwrap approvals approve {id_} --yes --password-stdin"
        assert "wrong" in machine.as_user("alice", by_stdin, stdin=f"{PASSWORD}\n", status=1).err
        machine.as_user("bob", f"mcpwrap approvals deny {id_}")


@only_in_test_all(
    "a table of refusals that tests/unit/as_root/test_approver_passwords.py has as well"
)
def test_a_password_is_set_by_root_for_persons_alone(machine: Machine) -> None:
    passwd = "mcpwrap approvals passwd {} --stdin"
    assert "sudo" in machine.as_user("alice", passwd.format("alice"), status=2).err
    for user, password, why in (
        ("nobody-here", PASSWORD, "no such account"),
        ("mcpw-sqlite", PASSWORD, "account of a server"),
        ("mcpwrap-gate", PASSWORD, "not the account of a person"),
        ("root", PASSWORD, "not the account of a person"),
        ("nobody", PASSWORD, "not the account of a person"),
        ("alice", "short", "under 8 characters"),
        ("alice", "two lines\nof it", "more than one line"),
    ):
        done = machine.as_root(passwd.format(user), stdin=f"{password}\n", status=2)
        assert why in done.err
        assert "nothing was changed" in done.err
    assert not machine.path(APPROVERS).exists()
    assert "names no account" in machine.as_root("mcpwrap approvals passwd --stdin", status=2).err
    set_by_sudo = "SUDO_USER=alice mcpwrap approvals passwd --stdin"
    machine.as_root(set_by_sudo, stdin=f"{PASSWORD}\n")  # the twin
    assert '"alice"' in machine.read(APPROVERS)
    assert "no password" in machine.as_root("mcpwrap approvals passwd bob --remove", status=2).err


@only_in_test_all("what `mcpwrap doctor` reports of a setting; no call waits in this story")
def test_doctor_says_who_can_approve_and_what_one_account_for_both_is_worth(
    machine: Machine,
) -> None:
    def found() -> dict[str, str]:
        out = machine.as_root("mcpwrap doctor sqlite --json || true").out
        return {one["what"]: one["state"] for one in json.loads(out)}

    assert found()["approvals"] == "good"
    machine.as_root("for who in bob dave; do gpasswd -d $who mcpwrap-approvers; done")
    try:
        assert found()["approvals"] == "warning"
        machine.as_root("mcpwrap approvals passwd alice --stdin", stdin=f"{PASSWORD}\n")
        after = found()
        assert (after["approvals"], after["approvals by alice"]) == ("good", "warning")
    finally:
        machine.as_root("for who in bob dave; do gpasswd -a $who mcpwrap-approvers; done")


# ---------------------------------------------------------------------------- the terminal view
class View(Screen):
    """Terminal view at a person's terminal, from its start to its key for leaving."""

    def __init__(self, machine: Machine, user: str, size: tuple[int, int] = (110, 40)) -> None:
        columns, rows = size
        super().__init__(machine, user, "mcpwrap approvals", columns=columns, rows=rows)
        self.start()

    def end(self) -> None:
        """Leave the view by its key, and wait until it has ended."""
        self.press("q")
        self.await_end()


def test_in_the_view_a_call_appears_without_a_key_and_is_approved_by_one(
    machine: Machine,
) -> None:
    view = View(machine, "bob")
    view.until("nothing waits")
    with opened(machine) as session:
        request = ask(session, DELETE.format(10))
        screen = view.until(DELETE.format(10), "keys answer this", "1 wait for approval")
        assert "alice" in screen
        assert "ask-first: A person decides." in screen
        view.press("a")
        assert told(session, request) == DONE
        view.until("nothing waits")
        request = ask(session, "DELETE FROM of_commands -- \x1b[31m\u202eall")
        view.until(r"-- \u001b[31m\u202eall", "keys answer this", "+ query: ")
        view.press("d")
        view.until("Reason for the agent", "not the place of a password")
        view.type("not today")
        view.press("Enter")
        assert "not today" in json.dumps(session.answer_to(request))
        view.until("nothing waits")
    view.end()


@only_in_test_all("mutation twin: shows that the test notices a view that does not listen")
def test_a_view_that_does_not_listen_shows_nothing_new(machine: Machine) -> None:
    hears = "                        self._take(await _next_listing(connection))\n"
    with machine.patched("cli/approvals/tui/app", hears, "                        return\n"):
        view = View(machine, "bob")
        view.until("nothing waits")
        with opened(machine) as session:
            ask(session, DELETE.format(14))
            # It is there for a view that is opened anew.
            approvers.step(machine, "await_pending")
            assert "write_query" in machine.as_user("bob", "mcpwrap approvals list").out
            assert "nothing waits" in view.text()
            view.end()
            again = View(machine, "bob")
            again.until(DELETE.format(14))
            again.end()


@only_in_test_all("the proof that the story about the command has, typed into the view")
def test_in_the_view_the_agents_own_account_types_its_password(machine: Machine) -> None:
    machine.as_root("mcpwrap approvals passwd alice --stdin", stdin=f"{PASSWORD}\n")
    view = View(machine, "alice")
    with opened(machine) as session:
        request = ask(session, DELETE.format(11))
        view.until(DELETE.format(11), "keys answer this")
        view.press("a")
        view.until("Password of alice for approvals")
        for typed, then in (("correct mule", "wrong password"), (PASSWORD, "nothing waits")):
            view.type(typed)
            assert typed not in view.text()
            view.press("Enter")
            view.until(then)
        assert told(session, request) == DONE
    view.end()


@only_in_test_all("two calls in the view; the fast tier has one, and a restart on the page")
def test_in_the_view_the_cursor_chooses_and_a_restart_of_the_gate_is_seen(
    machine: Machine,
) -> None:
    view = View(machine, "bob")
    with opened(machine) as session:
        first = ask(session, DELETE.format(12))
        view.until("1 wait for approval", DELETE.format(12), "keys answer this")
        second = ask(session, DELETE.format(13))  # a call that is read stays when others come
        view.until("2 wait for approval", "2 calls", DELETE.format(12), "keys answer this")
        view.press("Down")
        view.until(f'query: "{DELETE.format(13)}"', "keys answer this")
        view.press("s")
        assert told(session, second) == DONE
        view.until("1 wait for approval", f'query: "{DELETE.format(12)}"', "keys answer this")
        machine.as_root("systemctl restart mcpwrap-gate")
        view.until("nothing waits")
        assert first
    view.end()


@only_in_test_all("25 calls at two sizes; the fast tier has one in the view, and six on the page")
@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_in_the_view_many_calls_are_one_row_and_answered_one_by_one_or_all_at_once(
    machine: Machine, size: tuple[int, int]
) -> None:
    with opened(machine) as session:
        insert = f"INSERT INTO of_commands VALUES ({size[0]}{{:02}})"
        asked_all = [ask(session, insert.format(n)) for n in range(25)]
        pace.until(lambda: len(waiting(machine, "bob")) == 25)
        view = View(machine, "bob", size)  # a call that is read stays when others come
        view.until("25 wait for approval", "25 calls", "1 of 25", insert.format(0), "keys answer")
        view.press("Enter")  # lists its calls
        view.until(f"\n {waiting(machine, 'bob')[1]} ")
        view.press("Down", "Down")
        alone = "server   sqlite, session"  # the page of one call; a group has those of several
        view.until(alone, f'query: "{insert.format(1)}"', "keys answer this")
        view.press("a")
        assert told(session, asked_all.pop(1)) == DONE
        view.until("24 wait for approval", "keys answer this")
        view.press("Up", "Up")
        view.until("24 calls", "1 of 24", insert.format(0), "keys answer this")
        view.press("p")
        view.until("esc Back")
        view.press("End")  # the last of them can be read
        view.until(insert.format(24), "keys answer this")
        view.press("A")
        view.until("Approve all 24", "Enter approves them")
        view.press("Enter")
        assert [told(session, one) for one in asked_all] == [DONE] * 24
        view.until("nothing waits", "24 approved")
        count = f"SELECT count(*) AS n FROM of_commands WHERE id / 100 = {size[0]}"
        assert call(session, "read_query", count) == "[{'n': 25}]"
        view.end()
