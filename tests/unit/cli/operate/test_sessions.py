"""`mcpwrap sessions`: a column of projects if a session has one, and the list without a gate."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpwrap.cli.operate.sessions import command
from mcpwrap.core.project import SeenProject
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import queries
from mcpwrap.linux import accounts
from mcpwrap.linux.isolation.cgroup import Leaf
from mcpwrap.machine import observer, sessions
from mcpwrap.machine.sessions import RunningSession

IDS = "00000000000000aa", "00000000000000bb"
RUNNING = [
    RunningSession(
        id=id_, name="git", agent_uid=1000, since_s=0, tasks=2, leaf=Leaf(Path("/x"), f"s-{id_}")
    )
    for id_ in IDS
]
SINCE = "1970-01-01T00:00:00+00:00"


@pytest.fixture(autouse=True)
def two_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "server_names", lambda: ["git"])
    monkeypatch.setattr(sessions, "running", lambda _names: RUNNING)
    monkeypatch.setattr(accounts, "name_of", {1000: "alice"}.get)


def given(monkeypatch: pytest.MonkeyPatch, *seen: SeenProject) -> None:
    monkeypatch.setattr(queries, "seen_projects", lambda: list(seen))


def listed() -> list[list[str]]:
    return [line.split() for line in CliRunner().invoke(command).stdout.splitlines()]


def test_a_session_is_listed_with_its_project(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, SeenProject(IDS[0], 1000, "/home/alice/p\x1b[1m"))
    assert listed() == [
        ["SESSION", "SERVER", "AGENT", "SINCE", "TASKS", "PROJECT"],
        [IDS[0], "git", "alice", SINCE, "2", "/home/alice/p\\x1b[1m"],
        [IDS[1], "git", "alice", SINCE, "2"],
    ]
    rows = json.loads(CliRunner().invoke(command, ["--json"]).stdout)
    assert [row["project"] for row in rows] == ["/home/alice/p\x1b[1m", ""]


@pytest.mark.parametrize(
    "seen",
    [
        [],
        [SeenProject("00000000000000cc", 1000, "/a")],  # it has ended meanwhile
        [SeenProject(IDS[0], 1001, "/a")],  # its process claims the session of another account
    ],
)
def test_without_projects_there_is_no_column(
    seen: list[SeenProject], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, *seen)
    assert listed()[0] == ["SESSION", "SERVER", "AGENT", "SINCE", "TASKS"]


REFUSED = McpwrapError("it is full", where="the gate", fix="wait", code="E-SESSION-LIMIT-GATE")


@pytest.mark.parametrize(
    ("error", "why"), [(REFUSED, "it is full"), (ConnectionRefusedError("no one"), "no one")]
)
def test_without_an_answer_of_the_gate_the_list_is_as_it_is(
    error: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> list[SeenProject]:
        raise error

    monkeypatch.setattr(queries, "seen_projects", refuse)
    found = CliRunner().invoke(command)
    assert found.stderr == f"without projects, since the gate does not name them: {why}\n"
    assert (len(found.stdout.splitlines()), found.exit_code) == (3, 0)


def test_without_sessions_the_gate_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "running", lambda _names: [])
    monkeypatch.setattr(queries, "seen_projects", None)
    assert CliRunner().invoke(command).stdout == "no sessions\n"
