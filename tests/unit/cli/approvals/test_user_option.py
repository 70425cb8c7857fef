"""`--user`: the requests of the caller's own runs, before the command or after it."""

import contextvars
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.cli.approvals import command
from mcpwrap.core.doctor import APPROVERS_GROUP
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import accounts
from tests.unit.cli.scripted_gate import ScriptedGate, question, saved_rule

Run = Callable[[str], tuple[str, str]]


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
    """Return a function that types a command and returns its two outputs."""
    environ = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path / "login")}

    def typed(line: str) -> tuple[str, str]:
        call = contextvars.copy_context().run
        call(command.command.main, line.split(), standalone_mode=False, obj=environ)
        out, err = capsys.readouterr()
        return out, err

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
    assert shown in run(typed)[0]
    at_gate = typed.replace("--user", "")
    try:
        assert shown not in run(at_gate)[0]
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
    assert f"all of them: mcpwrap approvals --user {all_of_them}" in run("list --user")[0]


@pytest.mark.parametrize("name", ["passwd", "notify"])
def test_commands_of_the_gate_alone_are_refused(run: Run, name: str) -> None:
    with pytest.raises(UsageError, match="is for the gate's requests") as refused:
        run(f"--user {name}")
    assert (refused.value.code, refused.value.fix) == ("E-APPROVAL-USER", "leave out --user")


@pytest.mark.parametrize(
    ("typed", "uid", "gids", "from_next_login", "is_warned"),
    [
        ("", 1001, [100], {100, 990}, True),
        ("list", 1001, [100], {100, 990}, True),
        ("list --json", 1001, [100], {100, 990}, True),  # on standard error
        ("rules revoke --all", 1001, [100], {100, 990}, True),  # once
        ("list", 1001, [100, 990], {100, 990}, False),
        ("list", 1001, [100], {100}, False),  # no member
        ("list", 1001, [100], set(), False),  # the database cannot be read
        ("list", 0, [0], {0, 990}, False),  # root sees all
        ("list --user", 1001, [100], {100, 990}, False),
        ("--user list", 1001, [100], {100, 990}, False),
    ],
)
@pytest.mark.usefixtures("gate", "own")
def test_an_old_login_is_named(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    uid: int,
    gids: list[int],
    from_next_login: set[int],
    *,
    is_warned: bool,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(os, "getegid", lambda: gids[0])
    monkeypatch.setattr(os, "getgroups", lambda: gids)
    monkeypatch.setattr(accounts, "gid_of", {APPROVERS_GROUP: 990}.get)
    monkeypatch.setattr(
        accounts, "groups_from_next_login", {uid: frozenset(from_next_login)}.__getitem__
    )
    _, err = run(typed)
    warning = "Your session began before you were added to mcpwrap-approvers: log in again"
    assert err.count(warning) == (1 if is_warned else 0)
