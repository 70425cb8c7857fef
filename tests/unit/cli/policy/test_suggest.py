"""`mcpwrap policy suggest` and `accept` as typed: from an audit to root's files."""

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from click.testing import CliRunner, Result

from mcpwrap.as_root import accepted_rules as as_root
from mcpwrap.as_root import gate_reload
from mcpwrap.cli.audit import source
from mcpwrap.cli.policy import accept
from mcpwrap.cli.policy.command import command
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import tty
from mcpwrap.machine import accepted_rules, policy_files
from mcpwrap.machine.logs import audit_keys
from tests.unit.cli.scripted_gate import ScriptedGate
from tests.unit.core.audit_records import sealed
from tests.unit.core.audits import Gate, Session, keys, put
from tests.unit.core.pins.pin_book import PinBook, tool_definition

POLICY = """
version: 1
default_policy: disabled
rules:
  - {name: ask, tool: [write, drop], action: allow_with_approval}
"""
LONG_AGO = "2020-01-01"
_NUMBERS = count()


def asked(gate: Gate, session: Session, tool: str, arguments: object, answer: str) -> None:
    number = next(_NUMBERS)
    params = msgspec.json.encode({"name": tool, "arguments": arguments})
    id_ = f"q{number}"
    held = sealed(params)
    gate.record(session, target=tool, approval=id_, decision="held", rule="ask", sealed=held)
    if answer:
        gate.record(session, target=tool, approval=id_, decision=answer, by="bob (command)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an audit with 41 questions, root's files, and a gate that is not running."""
    gate = Gate({})
    session = gate.open("db")
    for number in range(38):
        asked(gate, session, "write", {"sql": f"DELETE FROM s WHERE id = {number}"}, "approved")
    for sql in ("DELETE FROM s", "DROP TABLE s"):
        asked(gate, session, "write", {"sql": sql}, "denied")
    asked(gate, session, "write", {"sql": "DELETE FROM t WHERE id = 1"}, "")
    asked(gate, session, "drop", {"password": "correct horse"}, "approved")
    put(tmp_path / "audit", gate.files)
    monkeypatch.setattr(source, "SYSTEM", tmp_path / "audit")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(audit_keys, "of_system", keys)
    (tmp_path / "policy.d").mkdir()
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(tmp_path / "policy.d"))
    monkeypatch.setattr(accepted_rules, "FOLDER", str(tmp_path / "policy.d"))
    monkeypatch.setattr(accepted_rules, "RULES", str(tmp_path / "policy.d/accepted.yaml"))
    monkeypatch.setattr(accepted_rules, "CASES", str(tmp_path / "policy-cases/accepted.yaml"))
    monkeypatch.setattr(
        gate_reload, "properties", lambda *_: {"mcpwrap-gate.service": {"ActiveState": "inactive"}}
    )
    return tmp_path


@pytest.fixture(autouse=True)
def root_program(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace root's program by a call of it: a test's process must not become another."""
    stdin = os.dup(0)

    def become(verb: str, before: str) -> NoReturn:
        assert verb == "policy-accept"
        as_root.write(before, os.read(0, 1 << 20))
        raise SystemExit(0)

    monkeypatch.setattr(accept, "become_root_program", become)
    yield
    os.dup2(stdin, 0)
    os.close(stdin)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), standalone_mode=False, obj={})


def suggestion() -> dict[str, object]:
    found = json.loads(run("suggest", "--since", LONG_AGO, "--json").stdout)
    assert found["left_out_as_secret"] == 1
    (one,) = found["suggestions"]
    return dict(one)


def id_() -> str:
    return str(suggestion()["id"])


@pytest.mark.usefixtures("folder")
def test_a_suggestion_has_its_rule_its_cases_and_what_it_would_have_done() -> None:
    found = run("suggest", "--since", LONG_AGO)
    assert found.return_value == 0
    lines = found.stdout.splitlines()
    id_, _, about = lines[0].partition(": ")
    assert about == "db, write"
    assert lines[1:9] == [
        "  # 41 questions would have been 3; none of your 2 denials would pass",
        f"  - name: accepted-{id_}",
        '    server: ["db"]',
        '    tool: ["write"]',
        "    when:",
        '      - {arg: "sql", matches: "^DELETE FROM s WHERE id = [0-9]{1,3}$"}',
        "    action: allow",
        '    instead_of: ["ask"]',
    ]
    assert lines[9] == "cases:"
    assert "expect: allow" in lines[10]
    assert "DROP TABLE s" in found.stdout
    assert f"accept it: sudo mcpwrap policy accept {id_} --since {LONG_AGO}" in lines
    assert lines[-1] == "1 calls are left out: an argument looks like a secret"


@pytest.mark.usefixtures("folder")
def test_without_a_suggestion_the_reason_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no suggestion from 0 questions" in run("suggest").stdout  # of the last 7 days
    assert "no suggestion from 0 q" in run("suggest", "--since", LONG_AGO, "--server", "x").stdout
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    said = run("suggest", "--since", LONG_AGO).stdout
    assert "no suggestion from 42 questions" in said
    assert "42 questions have sealed params, which only root can open: run it with sudo" in said


def test_several_suggestions_are_counted_together(folder: Path) -> None:
    gate = Gate({})
    session = gate.open("db")
    for tool in ("write", "drop", "drop", "write"):
        asked(gate, session, tool, {"x": tool}, "approved")
    put(folder / "audit", gate.files)
    assert (
        "all together: 4 questions would have been 0" in run("suggest", "--since", LONG_AGO).stdout
    )


def test_a_tool_without_a_glob_gets_no_suggestion(folder: Path) -> None:
    gate = Gate({})
    session = gate.open("db")
    (folder / "policy.yaml").write_text(POLICY.replace("[write, drop]", '"*"'))
    for _ in range(2):
        asked(gate, session, "odd name", {}, "approved")
    put(folder / "audit", gate.files)
    assert "no suggestion from 2 questions" in run("suggest", "--since", LONG_AGO).stdout


def test_what_a_schema_states_counts_as_in_a_session(folder: Path, gate: ScriptedGate) -> None:
    """The default policy asks of an argument that is SQL by its description alone."""
    (folder / "policy.yaml").write_text("version: 1\n")
    audit = Gate({})
    session = audit.open("db")
    for _ in range(2):
        asked(audit, session, "write", {"text": "DELETE FROM s WHERE id = 1"}, "approved")
    put(folder / "audit", audit.files)
    assert "no suggestion from 2 questions" in run("suggest", "--since", LONG_AGO).stdout
    book = PinBook()
    schema: Json = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "SQL query to execute"}},
    }
    book.show("1-1", tool_definition("write", "Writes.", inputSchema=schema))
    gate.report(PinsReport(server="db", mode="first-use", accepted=book.pins.accepted))
    said = run("suggest", "--since", LONG_AGO).stdout
    assert 'instead_of: ["default.sql-delete"]' in said


def test_an_accepted_rule_is_in_the_policy_and_its_cases_hold(folder: Path) -> None:
    one = id_()
    found = run("accept", one, "--since", LONG_AGO, "--yes")
    assert found.exit_code == 0
    assert found.stdout.endswith("accepted, from the gate's next start\n")
    rules, cases = folder / "policy.d/accepted.yaml", folder / "policy-cases/accepted.yaml"
    assert f"accepted-{one}" in rules.read_text()
    assert rules.stat().st_mode & 0o777 == 0o644
    assert cases.stat().st_mode & 0o777 == 0o600
    played = run("test", "--accepted")
    assert played.return_value == 0
    assert "23 cases, 0 of them differ" in played.stdout
    # It is not suggested again, and a revoked rule is.
    assert "no suggestion" in run("suggest", "--since", LONG_AGO).stdout
    rules.write_text("version: 1\n")
    assert run("test", "--accepted").return_value == 1
    assert id_() == one
    assert run("accept", one, "--since", LONG_AGO, "--yes").exit_code == 0
    assert run("test", "--accepted").return_value == 0


@pytest.mark.parametrize(
    ("terminal", "typed", "is_accepted"),
    [(True, "y\n", True), (True, "n\n", False), (True, "\n", False), (False, "y\n", False)],
)
def test_a_person_confirms(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, terminal: bool, typed: str, is_accepted: bool
) -> None:
    monkeypatch.setattr(tty, "is_interactive", lambda: terminal)
    arguments = ["accept", id_(), "--since", LONG_AGO]
    found = CliRunner().invoke(command, arguments, standalone_mode=False, obj={}, input=typed)
    assert (folder / "policy.d/accepted.yaml").exists() == is_accepted
    if not is_accepted:
        assert isinstance(found.exception, UsageError)
        assert found.exception.code == "E-POLICY-NOT-CONFIRMED"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("version: 1\nrules:\n  - {name: x, tool: t, action: alow}\n", "E-POLICY"),
        ("version: 1\nrules:\n  - {name: x, tool: t, action: block}\nobserve: x\n", "E-POLICY"),
        (b"version: 1 # \xff\n", "E-POLICY-NOT-UTF8"),
    ],
)
def test_a_damaged_file_is_not_changed(folder: Path, text: str | bytes, code: str) -> None:
    one, path = id_(), folder / "policy.d/accepted.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    before = path.read_bytes()
    found = run("accept", one, "--since", LONG_AGO, "--yes")
    assert isinstance(found.exception, McpwrapError)
    assert found.exception.code.startswith(code)
    assert found.exception.exit_code == 2
    assert path.read_bytes() == before
    assert not (folder / "policy-cases").exists()


@pytest.mark.usefixtures("folder")
def test_without_an_accepted_rule_there_are_no_cases() -> None:
    found = run("test", "--accepted")
    assert isinstance(found.exception, UsageError)
    assert found.exception.code == "E-POLICY-TEST-NO-CASES"


def test_an_unknown_id_changes_nothing(folder: Path) -> None:
    found = run("accept", "00000000", "--since", LONG_AGO, "--yes")
    assert isinstance(found.exception, UsageError)
    assert found.exception.code == "E-POLICY-NO-SUGGESTION"
    assert list((folder / "policy.d").iterdir()) == []


@pytest.mark.usefixtures("folder")
def test_others_than_root_accept_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = run("accept", "00000000")
    assert isinstance(found.exception, UsageError)
    assert found.exception.code == "E-USAGE-NEEDS-ROOT"
