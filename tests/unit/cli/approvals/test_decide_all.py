"""`approve --all`, `deny --all`: shown whole, asked once, one answer for each."""

import json
import os
from collections.abc import Callable

import click
import pytest

from mcpwrap.cli.approvals import command
from mcpwrap.cli.approvals.text import agent
from mcpwrap.core.wire.approval_socket import Proof, RefusedReply, Verdict
from mcpwrap.errors import UsageError
from mcpwrap.gate_client.approvals import ApprovalRefusedError
from mcpwrap.linux import tty
from tests.unit.cli.scripted_gate import ScriptedGate, question

Run = Callable[..., tuple[int | None, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that types a command and returns its status and what it printed."""

    def typed(*args: str) -> tuple[int | None, str]:
        status = command.command.main(list(args), standalone_mode=False)
        return status, capsys.readouterr().out

    return typed


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the questions of the terminal, to which the answer is yes, or the password."""
    questions: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "confirm", lambda text, **_: questions.append(text))

    def read_hidden(text: str) -> str:
        questions.append(text)
        return "secret 12"

    monkeypatch.setattr(tty, "read_hidden", read_hidden)
    return questions


def put_three(gate: ScriptedGate, **how: str) -> None:
    for number in range(3):
        gate.put(f"a{number}", question(path=f"/{number}", content="x\ny"), **how)  # type: ignore[arg-type]


def test_the_list_has_one_table_for_calls_of_one_kind(gate: ScriptedGate, run: Run) -> None:
    put_three(gate)
    gate.put("b0", question(path="/b"), rule="other")
    gate.hidden.add("a2")
    lines = run("list")[1].splitlines()
    assert lines[0].split()[:2] == ["ID", "AGE"]
    assert lines[1].startswith("b0 ")
    title = f"3 calls of write_query on sqlite by {agent(0)}, rule no-delete; you may answer"
    assert lines[3] == title
    assert lines[4].split() == ["ID", "AGE", "EXPIRES", "ASKED", "content", "path"]
    assert lines[5].split()[-3:] == ["x", "…", '"/0"']
    assert lines[-1].endswith("approve --all --server sqlite --tool write_query")
    assert sum(line.startswith("a") for line in lines) == 3  # a0, a1, and the last line
    groups = json.loads(run("list", "--json")[1])["groups"]
    assert [group["ids"] for group in groups] == [["a0", "a1", "a2"], ["b0"]]


def test_all_are_shown_and_approved_after_one_question(
    gate: ScriptedGate, run: Run, asked: list[str]
) -> None:
    put_three(gate)
    gate.put("mine", question(path="/x"), may="no")
    status, out = run("approve", "--all")
    assert status == 0
    assert asked == ["Approve all 3 requests that you see above?"]
    for number in range(3):
        assert f"{number + 1} of 3: a{number}\n" in out
        assert f'    path: "/{number}"\n' in out
    assert "    content: text, 2 lines, 3 characters\n      │ x\n" in out
    assert "3 of 3: a2 approved\n3 approved\n" in out
    assert [one.id for one in gate.decided] == ["a0", "a1", "a2"]
    assert len({one.digest for one in gate.decided}) == 3


def test_server_and_tool_choose(gate: ScriptedGate, run: Run, asked: list[str]) -> None:
    put_three(gate)
    for chosen in (["--server", "other"], ["--tool", "other"]):
        with pytest.raises(UsageError, match="E-APPROVAL-NO-REQUEST"):
            run("approve", "--all", *chosen)
    assert run("approve", "--all", "--server", "sqlite", "--tool", "write_query")[0] == 0
    assert len(gate.decided) == 3
    assert len(asked) == 1


def test_one_password_is_for_all(gate: ScriptedGate, run: Run, asked: list[str]) -> None:
    put_three(gate, may="proof")
    assert run("approve", "--all", "--session")[0] == 0
    assert asked == [
        "Approve all 3 requests that you see above, and the same calls until the session ends?",
        f"Approval password of {agent(os.getuid())}: ",
    ]
    assert {(one.proof, one.password) for one in gate.decided} == {(Proof.PASSWORD, b"secret 12")}


def test_all_are_denied_without_a_question(gate: ScriptedGate, run: Run, asked: list[str]) -> None:
    put_three(gate)
    status, out = run("deny", "--all", "--reason", "no")
    assert (status, asked) == (0, [])
    assert out.endswith("3 denied\n")
    assert {(one.verdict, one.reason) for one in gate.decided} == {(Verdict.DENY, b"no")}


def test_what_is_gone_is_said_and_fails(gate: ScriptedGate, run: Run, asked: list[str]) -> None:
    put_three(gate)
    gate.answer = RefusedReply(code="gone", why="gone")
    status, out = run("approve", "--all")
    assert status == 1
    assert asked
    assert out.endswith("3 gone\n")


def test_a_refusal_of_one_that_holds_for_all_ends_it(
    gate: ScriptedGate, run: Run, asked: list[str]
) -> None:
    put_three(gate)
    gate.answer = RefusedReply(code="proof", why="wrong password")
    with pytest.raises(ApprovalRefusedError, match="wrong password"):
        run("approve", "--all")
    assert asked
    assert len(gate.decided) == 1


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["approve", "7f3a", "--all"], "--all excludes an ID"),
        (["approve", "--all", "--polkit"], "--all excludes --polkit"),
        (["deny", "--all", "--polkit"], "--all excludes --polkit"),
        (["approve", "--all", "--always", "--for", "8h"], "--all excludes --always"),
        (["approve", "7f3a", "--server", "sqlite"], "choose from all requests"),
        (["deny", "7f3a", "--tool", "x"], "choose from all requests"),
        (["approve", "--all", "--yes"], "--yes needs an ID"),  # approved unseen
    ],
)
def test_what_is_not_clear_decides_nothing(
    gate: ScriptedGate, run: Run, asked: list[str], args: list[str], why: str
) -> None:
    put_three(gate)
    with pytest.raises(UsageError, match=why):
        run(*args)
    assert (gate.decided, asked) == ([], [])
