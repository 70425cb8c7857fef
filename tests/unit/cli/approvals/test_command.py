"""Approval commands: list, show, approve and deny, with a scripted gate."""

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from mcpwrap.cli.approvals import command, passwd
from mcpwrap.cli.approvals.text import agent
from mcpwrap.cli.approvals.tui import app
from mcpwrap.core.approval.document import digest, document
from mcpwrap.core.wire.approval_socket import (
    Channel,
    DecideRequest,
    Paused,
    Proof,
    RefusedReply,
    Scope,
    Verdict,
)
from mcpwrap.errors import EXIT_INTERRUPTED, McpwrapError, UsageError
from mcpwrap.gate_client.approvals import ApprovalRefusedError
from mcpwrap.linux import tty
from tests.unit.cli.scripted_gate import NOW, ScriptedGate, question

Run = Callable[..., str]
MYSELF = agent(os.getuid())
DELETE = question(query="DELETE FROM t")
BEGINS = "an ID that begins '7f3'"
SEVERAL = r"\[E-APPROVAL-AMBIGUOUS-ID\]"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that types a command and returns what it printed."""

    def typed(*args: str) -> str:
        assert command.command.main(list(args), standalone_mode=False) in {0, None}
        return capsys.readouterr().out

    return typed


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the terminal: it confirms, and types what is in the list."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: True)
    passwords = ["secret 12"]
    monkeypatch.setattr(tty, "read_hidden", lambda _: passwords.pop())
    return passwords


# ------------------------------------------------------------------------------------- seeing
def test_the_list_has_a_line_for_each(gate: ScriptedGate, run: Run) -> None:
    assert run("list") == "nothing waits for approval\n"
    gate.put("7f3a", DELETE)
    gate.put("81b0", question(query="DROP TABLE t"), may="proof")
    gate.paused.append(Paused(agent_uid=0, server="sqlite", why="20 denials", until=time.time()))
    head, *rows, paused = run("list").splitlines()
    assert head.split() == [
        "ID", "AGE", "AGENT", "SERVER", "TOOL", "RULE", "EXPIRES", "ASKED", "YOU",
    ]  # fmt: skip
    assert [row.split()[0] for row in rows] == ["7f3a", "81b0"]
    assert rows[0].split()[-3:] == ["1", "may", "answer"]
    assert rows[0].split()[3:7] == ["root", "sqlite", "write_query", "no-delete"]
    assert "paused: root on sqlite" in paused
    assert run().startswith("ID ")  # standard output is not a terminal here


@pytest.mark.parametrize("has_textual", [True, False])
def test_a_terminal_has_the_view_where_textual_is_installed(
    gate: ScriptedGate,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_textual: bool,
) -> None:
    gate.put("7f3a", DELETE)
    monkeypatch.setattr(tty, "is_interactive", lambda: True)
    monkeypatch.setattr(app.ApprovalsView, "run_until_quit", lambda _: EXIT_INTERRUPTED)
    if not has_textual:
        monkeypatch.setitem(sys.modules, "textual", None)
    status = command.command.main([], standalone_mode=False)
    assert status == (EXIT_INTERRUPTED if has_textual else 0)
    assert ("7f3a" in capsys.readouterr().out) is not has_textual


def test_the_list_for_machines_is_ascii(gate: ScriptedGate, run: Run) -> None:
    gate.put("7f3a", DELETE, message="\u202e")
    out = run("list", "--json")
    assert out.isascii()
    (one,) = json.loads(out)["pending"]
    assert (one["id"], one["agent"], one["message"]) == ("7f3a", "root", "\u202e")
    assert one["asked_at"] == NOW


def test_one_is_shown_in_full(gate: ScriptedGate, run: Run) -> None:
    gate.put("7f3a", DELETE, before=question(query="DELETE FROM u"))
    out = run("show")
    assert '  query: "DELETE FROM t"\n' in out
    assert '- query: "DELETE FROM u"\n' in out
    assert digest(document(DELETE)) in out
    assert run("show", "7") == out


def test_one_is_shown_to_machines(gate: ScriptedGate, run: Run) -> None:
    gate.put("7f3a", question(query="\x9b"), before=DELETE)
    out = run("show", "7f3a", "--json")
    found = json.loads(out)
    assert out.isascii()
    assert found["question"]["params"]["arguments"] == {"query": "\x9b"}
    assert found["shown"] == '{\n  "query": "\\x9b"\n}'
    assert '+query: "\\x9b"' in found["difference"]
    assert found["before"]["params"]["arguments"] == {"query": "DELETE FROM t"}


def test_which_one_is_never_guessed(gate: ScriptedGate, run: Run) -> None:
    with pytest.raises(UsageError, match="no request is pending"):
        run("show")
    gate.put("7f3a", DELETE)
    gate.put("7f3b", DELETE)
    gate.put("7f", DELETE)
    for typed, why in (
        ([], rf"3 requests are pending {SEVERAL}\n.* name one: 7f3a, 7f3b, 7f"),
        (
            ["7f3"],
            rf"2 requests with {BEGINS} are pending {SEVERAL}\n.* name one: 7f3a, 7f3b",
        ),
        (["9"], "no pending request has the ID '9'"),
    ):
        for verb in ("show", "deny"):
            with pytest.raises(UsageError, match=why):
                run(verb, *typed)
    assert "id       7f\n" in run("show", "7f")  # an exact ID, which begins others too
    assert gate.decided == []


def test_each_request_is_printed_once_as_it_comes(
    gate: ScriptedGate, capsys: pytest.CaptureFixture[str]
) -> None:
    def happen() -> None:
        gate.watched.wait()
        gate.put("81b0", DELETE)
        gate.paused.append(Paused(agent_uid=0, server="s", why="20 denials", until=NOW))
        gate.tell()
        gate.take("7f3a")
        gate.put("7f3a", DELETE)  # once more, after it was gone
        gate.hang_up()

    for form, first in (("--json", '"id":"7f3a"'), ("", "  7f3a  root  sqlite  write_query  by ")):
        gate.put("7f3a", DELETE)
        events = threading.Thread(target=happen)
        events.start()
        with pytest.raises(McpwrapError, match="closed the connection"):
            command.command.main(["watch", *filter(None, [form])], standalone_mode=False)
        events.join()
        said = capsys.readouterr().out.splitlines()
        assert first in said[0]
        ids = [id_ for line in said for id_ in ("7f3a", "81b0", "paused") if id_ in line]
        assert ids == ["7f3a", "81b0", "paused", "7f3a"]
        gate.come_back()


# ----------------------------------------------------------------------------------- answering
def test_what_was_shown_is_approved(gate: ScriptedGate, run: Run, at_terminal: list[str]) -> None:
    gate.put("7f3a", DELETE)
    out = run("approve", "7f3a")
    assert '  query: "DELETE FROM t"\n' in out
    assert out.endswith("approved\n")
    shown = digest(document(DELETE))
    assert gate.decided == [DecideRequest(id="7f3a", digest=shown, verdict=Verdict.APPROVE)]
    assert at_terminal  # no password was requested
    assert gate.decided[0].channel is Channel.COMMAND


@pytest.mark.parametrize(
    ("typed", "verdict", "scope", "times", "reason"),
    [
        ("approve --yes 7f3a", Verdict.APPROVE, Scope.ONCE, 1, b""),
        ("approve --yes 7f3a --for 10m", Verdict.APPROVE, Scope.MINUTES, 10, b""),
        ("approve --yes 7 --session --times 3", Verdict.APPROVE, Scope.SESSION, 3, b""),
        ("approve --yes 7f3a --reason ok", Verdict.APPROVE, Scope.ONCE, 1, b"ok"),
        ("deny", Verdict.DENY, Scope.ONCE, 1, b""),
        ("deny 7f --reason no\u00f6", Verdict.DENY, Scope.ONCE, 1, "no\u00f6".encode()),
        ("deny 7f --stop-server", Verdict.DENY_AND_STOP, Scope.ONCE, 1, b""),
    ],
)
def test_answers_say_what_was_typed(
    gate: ScriptedGate, run: Run, typed: str, verdict: str, scope: str, times: int, reason: bytes
) -> None:
    gate.put("7f3a", DELETE)
    run(*typed.split())
    (one,) = gate.decided
    assert (one.verdict, one.scope, one.times, one.reason) == (verdict, scope, times, reason)
    assert one.proof is Proof.NONE


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("approve 7f3a", "asks for confirmation, and standard input is not a terminal"),
        ("approve --yes", "--yes needs an ID"),
        ("approve --yes 7f3a --times 3", "--times needs `--for` or `--session`"),
        ("approve --yes 7f3a --for 10m --session", "--for and --session exclude each other"),
        ("deny 7f3a --polkit --password-stdin", "--password-stdin and --polkit exclude each other"),
        (f"deny 7f3a --reason {1025 * 'x'}", "over 1024 bytes"),
        ("deny 7f3a --reason \udcff", "not UTF-8"),
    ],
)
def test_what_is_not_clear_decides_nothing(
    gate: ScriptedGate, run: Run, typed: str, why: str
) -> None:
    gate.put("7f3a", DELETE)
    with pytest.raises(UsageError, match=why):
        run(*typed.split())
    assert gate.decided == []


def test_without_confirmation_nothing_is_approved(
    gate: ScriptedGate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.put("7f3a", DELETE)
    monkeypatch.setattr("sys.stdin", Typed("n\n"))
    with pytest.raises(click.Abort):
        run("approve")
    assert gate.decided == []
    monkeypatch.setattr("sys.stdin", Typed("y\n"))  # the twin
    run("approve")
    assert len(gate.decided) == 1


class Typed(io.StringIO):
    """Terminal with typed input."""

    def isatty(self) -> bool:
        return True


# -------------------------------------------------------------------------------------- proofs
def test_a_password_is_asked_for_where_the_gate_wants_a_proof(
    gate: ScriptedGate, run: Run, at_terminal: list[str]
) -> None:
    gate.put("7f3a", DELETE, may="proof")
    run("approve")
    (one,) = gate.decided
    assert (one.proof, one.user, one.password) == (Proof.PASSWORD, MYSELF, b"secret 12")
    assert at_terminal == []


def test_a_password_is_read_from_standard_input(
    gate: ScriptedGate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.put("7f3a", DELETE, may="proof")
    monkeypatch.setattr("sys.stdin", io.StringIO("secret \u00fc\nmore\n"))
    run("deny", "--password-stdin")
    assert gate.decided[0].password == "secret \u00fc".encode()
    run("deny", "--password-stdin")  # its password is "more"
    with pytest.raises(UsageError, match="the password is empty"):
        run("deny", "--password-stdin")


def test_polkit_receives_the_process_that_asks(gate: ScriptedGate, run: Run) -> None:
    gate.put("7f3a", DELETE, may="proof")
    run("deny", "--polkit")
    (one,) = gate.decided
    assert (one.proof, one.user, one.password) == (Proof.POLKIT, "", b"")
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 < one.process_start / os.sysconf("SC_CLK_TCK") <= uptime_s


def test_a_refusal_of_the_gate_is_an_error(gate: ScriptedGate, run: Run) -> None:
    gate.put("7f3a", DELETE)
    gate.answer = RefusedReply(code="late", why="it has expired")
    with pytest.raises(
        ApprovalRefusedError, match=r"it has expired \[E-APPROVAL-EXPIRED\]\n.*ask again"
    ) as raised:
        run("deny")
    assert raised.value.exit_code == 1


def test_without_a_gate_every_command_fails(gate: ScriptedGate, run: Run) -> None:
    gate.hang_up()
    for verb in ([], ["list"], ["show"], ["deny"], ["watch"]):
        with pytest.raises(McpwrapError, match="No such file"):
            run(*verb)


def test_passwords_are_roots_to_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[tuple[str, ...]] = []
    monkeypatch.setattr(passwd, "become_root_program", lambda *a, command: became.append(a))
    monkeypatch.setenv("SUDO_USER", "alice")
    run("passwd")
    run("passwd", "bob", "--remove")
    run("passwd", "--stdin")
    assert became == [
        ("passwd", "alice"),
        ("passwd", "--remove", "bob"),
        ("passwd", "--stdin", "alice"),
    ]
    with pytest.raises(UsageError, match="exclude each other"):
        run("passwd", "bob", "--remove", "--stdin")
    monkeypatch.delenv("SUDO_USER")
    with pytest.raises(UsageError, match="names no account"):
        run("passwd")


def test_the_view_is_not_loaded_for_other_commands() -> None:
    code = "import sys, mcpwrap.cli.main; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
