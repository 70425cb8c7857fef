"""`--user`: the requests of the caller's own runs, before the command or after it."""

import contextvars
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.cli.approvals import command
from mcpwrap.errors import McpwrapError, UsageError
from tests.unit.cli.scripted_gate import ScriptedGate, question, saved_rule

Run = Callable[..., str]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ScriptedGate]:
    """Yield a run of the caller, with one question and one rule; the gate has neither."""
    folder = tmp_path / "login/mcpwrap/approvals"
    folder.mkdir(parents=True)
    run = ScriptedGate(folder / "1.sock")
    run.put("a1", question(query="DELETE FROM t"))
    run.rules.append(saved_rule(question(query="DELETE FROM t"), "query", "7f3a"))
    yield run
    run.hang_up()


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that types a command and returns what it printed."""
    environ = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path / "login")}

    def typed(line: str) -> str:
        call = contextvars.copy_context().run
        call(command.command.main, line.split(), standalone_mode=False, obj=environ)
        return capsys.readouterr().out

    return typed


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("--user", "a1"),
        ("--user list", "a1"),
        ("list --user", "a1"),
        ("--user list --user", "a1"),
        ("show --user", "a1"),
        ("approve --user --yes a1", "approved"),
        ("deny --user", "approved"),  # the scripted reply
        ("deny --all --user", "1 denied"),
        ("rules --user", "7f3a"),
        ("rules show --user 7f3a", "7f3a"),
        ("rules --user show 7f3a", "7f3a"),
        ("rules revoke --user 7f3a", "is revoked"),
        ("--user rules revoke 7f3a", "is revoked"),
    ],
)
@pytest.mark.usefixtures("own", "gate")
def test_both_places_choose_the_callers_own_runs(run: Run, typed: str, shown: str) -> None:
    assert shown in run(typed)
    at_gate = typed.replace("--user", "")
    try:
        assert shown not in run(at_gate)
    except McpwrapError as error:
        assert "--user" not in error.fix  # noqa: PT017  # lists are empty, other commands refuse


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("show --user 9", "`mcpwrap approvals --user list` shows the pending requests"),
        ("--user show 9", "`mcpwrap approvals --user list` shows the pending requests"),
        ("show 9", "`mcpwrap approvals list` shows the pending requests"),
        ("approve --user --yes", "name the request: `mcpwrap approvals --user list` shows the IDs"),
        ("approve --yes", "name the request: `mcpwrap approvals list` shows the IDs"),
        (
            "deny --user --all --tool x",
            "`mcpwrap approvals --user list` shows the pending requests",
        ),
        ("rules --user revoke 9", "`mcpwrap approvals --user rules` lists the rules"),
        ("rules revoke 9", "`mcpwrap approvals rules` lists the rules"),
    ],
)
@pytest.mark.usefixtures("own", "gate")
def test_a_fix_names_the_command_for_these_requests(run: Run, typed: str, fix: str) -> None:
    with pytest.raises(UsageError) as refused:
        run(typed)
    assert refused.value.fix == fix


@pytest.mark.usefixtures("gate")
def test_the_line_for_a_group_names_it_too(own: ScriptedGate, run: Run) -> None:
    own.put("a2", question(query="DELETE FROM u"))
    all_of_them = "approve --all --server sqlite --tool write_query\n"
    assert f"all of them: mcpwrap approvals --user {all_of_them}" in run("list --user")


@pytest.mark.parametrize("name", ["passwd", "notify"])
def test_commands_of_the_gate_alone_are_refused(run: Run, name: str) -> None:
    with pytest.raises(UsageError, match="is for the gate's requests") as refused:
        run(f"--user {name}")
    assert (refused.value.code, refused.value.fix) == ("E-APPROVAL-USER", "leave out --user")
