"""`mcpwrap tools diff NAME --next`: root's program is run, and its output read without root."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from mcpwrap.cli.tools import next_version
from mcpwrap.cli.tools.diff import command
from mcpwrap.cli.tools.next_version import DiffCommand, next_difference
from mcpwrap.core.pins.next_version import NextVersionDifference
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.wire.next_version_pipe import (
    NextVersionAnswer,
    NextVersionPage,
    encode_answer,
)
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.plan import paths
from tests.unit.cli.scripted_gate import ScriptedGate

COMMAND = ("npx", "-y", "git-mcp@2")
LISTED = NextVersionPage("tools/list", msgspec.Raw(b'{"tools": [{"name": "send"}]}'))


@dataclass
class RootProgram:
    """Stand-in for root's program: it notes its arguments, prints an answer and exits."""

    folder: Path
    given_up: list[tuple[str, str]] = field(default_factory=list)

    def answers(self, answer: bytes, status: int = 0) -> None:
        (self.folder / "answer").write_bytes(answer)
        program = self.folder / "root"
        script = f'printf "%s\\n" "$@" > {self.folder}/asked; cat {self.folder}/answer'
        program.write_text(f"#!/bin/sh\n{script}; exit {status}\n")
        program.chmod(0o755)

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RootProgram:
    made = RootProgram(tmp_path)
    monkeypatch.setattr(paths, "ROOT_PROGRAM", str(tmp_path / "root"))
    monkeypatch.setattr(next_version, "expect_root", lambda _: None)
    monkeypatch.setattr(next_version, "give_up_root", lambda *to: made.given_up.append(to))
    return made


def found(*command: str, with_secrets: bool = False) -> NextVersionDifference:
    report = PinsReport(server="git", mode="first-use")
    return next_difference(report, command, with_secrets=with_secrets)


def test_the_answer_is_compared_after_root_was_given_up(root: RootProgram) -> None:
    root.answers(encode_answer(NextVersionAnswer(pages=(LISTED,))))
    [change] = found(*COMMAND).changes.changes
    assert (change.what, change.name) == ("added", "send")
    assert root.asked() == ["next", "git", *COMMAND]
    assert root.given_up == [("", "")]


def test_secrets_are_asked_for_by_root(root: RootProgram) -> None:
    root.answers(encode_answer(NextVersionAnswer(pages=(LISTED,))))
    found(*COMMAND, with_secrets=True)
    assert root.asked() == ["next", "--with-secrets", "git", *COMMAND]


@pytest.mark.parametrize(
    ("answer", "code", "lines"),
    [
        (
            NextVersionAnswer(
                pages=(LISTED,), problem="it has ended", stderr="no TOKEN\x1b[2J\ngood bye\n"
            ),
            "E-NEXT-FAILED",
            [r"| no TOKEN\x1b[2J", "| good bye"],
        ),
        (
            NextVersionAnswer(problem="cannot start /x: no such file [E-SESSION-SERVER-START]"),
            "E-SESSION-SERVER-START",
            [],
        ),
        (
            NextVersionAnswer(pages=(NextVersionPage("tools/list", msgspec.Raw(b"[1e999]")),)),
            "E-NEXT-NOT-MCP",
            [],
        ),
    ],
)
def test_what_is_not_all_definitions_is_not_compared(
    root: RootProgram, answer: NextVersionAnswer, code: str, lines: list[str]
) -> None:
    root.answers(encode_answer(answer))
    with pytest.raises(McpwrapError) as refused:
        found(*COMMAND)
    assert refused.value.code == code
    assert list(refused.value.more) == lines


@pytest.mark.parametrize(
    ("answer", "code"),
    [(b"", "E-NEXT-FAILED"), (b"{", "E-NEXT-NOT-MCP"), (b"\xff", "E-NEXT-NOT-MCP")],
)
def test_an_answer_that_was_cut_is_none(root: RootProgram, answer: bytes, code: str) -> None:
    root.answers(answer)
    with pytest.raises(McpwrapError) as refused:
        found(*COMMAND)
    assert refused.value.code == code


def test_what_root_refuses_is_not_compared(root: RootProgram) -> None:
    root.answers(encode_answer(NextVersionAnswer(pages=(LISTED,))), status=2)
    with pytest.raises(click.exceptions.Exit) as ended:
        found(*COMMAND)
    assert ended.value.exit_code == 2


def test_without_a_command_nothing_is_started(root: RootProgram) -> None:
    with pytest.raises(UsageError) as refused:
        found()
    assert refused.value.code == "E-NEXT-NO-COMMAND"
    assert not (root.folder / "asked").exists()


@pytest.mark.parametrize(
    ("count", "told"),
    [(1, []), (3, ["2 more differ, and are too long to be shown with these"])],
)
def test_what_does_not_fit_is_counted(
    root: RootProgram,
    gate: ScriptedGate,
    capsys: pytest.CaptureFixture[str],
    count: int,
    told: list[str],
) -> None:
    gate.report(PinsReport(server="git", mode="first-use"))
    tools = [{"name": f"t{n}", "description": "x" * 600_000} for n in range(count)]
    result = msgspec.Raw(msgspec.json.encode({"tools": tools}))
    root.answers(encode_answer(NextVersionAnswer(pages=(NextVersionPage("tools/list", result),))))
    assert command.main(["git", "--next", *COMMAND], standalone_mode=False) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if " more " in line] == told
    assert "decided" not in printed


@pytest.mark.parametrize(
    ("typed", "parsed"),
    [
        ("git", ("git", False, None)),
        ("git --json", ("git", True, None)),
        ("git --json --next npx -y --json", ("git", True, ["npx", "-y", "--json"])),
        ("--json git --next /x --next", ("git", True, ["/x", "--next"])),
        ("git --next", ("git", False, [])),
    ],
)
def test_all_behind_next_is_the_command(typed: str, parsed: Any) -> None:
    @click.command(cls=DiffCommand)
    @click.argument("name")
    @click.option("--json", "as_json", is_flag=True)
    def diff(*, name: str, as_json: bool, next_command: tuple[str, ...] | None) -> str:
        return json.dumps((name, as_json, next_command))

    said = diff.main(typed.split(), standalone_mode=False)
    assert tuple(json.loads(said)) == parsed
