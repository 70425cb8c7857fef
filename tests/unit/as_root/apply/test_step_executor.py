"""Steps of `apply` on a machine that changed since its observation; numbers of tool calls."""

import pwd

import pytest

from mcpwrap.as_root.apply import step_executor
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import accounts
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.plan import paths, steps


@pytest.mark.parametrize(
    ("owner", "running", "problem"),
    [
        ("zed", frozenset(), "UID 31726 now belongs to account 'zed'"),
        (None, frozenset({31_726}), "a process now runs with UID or GID 31726"),
    ],
)
def test_no_account_is_made_with_an_id_that_is_taken(
    owner: str | None, running: frozenset[int], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "name_of", lambda _: owner)
    monkeypatch.setattr(accounts, "uid_of", lambda _: None)
    monkeypatch.setattr(accounts, "running_ids", lambda: running)
    monkeypatch.setattr(step_executor, "run", lambda *_: pytest.fail("something was done"))
    with pytest.raises(McpwrapError, match=problem):
        step_executor.carry_out(steps.MakeAccounts((("mcpw-github", 31_726),)))


UIDS = {f"mcpw-s{number}": 20_000 + number for number in range(50)}
NAMES = tuple(f"s{number}" for number in range(50))
UNITS = {f"mcpwrap@{name}" for name in NAMES}


def entry(name: str, uid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/sh"))


def made_as(uids: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Have sysusers make accounts with these UIDs; return the list of its calls."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(accounts, "name_of", lambda _: None)
    monkeypatch.setattr(accounts, "uid_of", lambda _: None)
    monkeypatch.setattr(accounts, "running_ids", frozenset)
    monkeypatch.setattr(step_executor, "run", lambda *argv: calls.append(argv))
    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry(name, uids[name]))
    return calls


def test_all_accounts_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = made_as(UIDS, monkeypatch)
    step_executor.carry_out(steps.MakeAccounts(tuple(UIDS.items())))
    assert calls == [(step_executor.SYSUSERS, *map(paths.sysusers, NAMES))]


def test_an_account_of_many_that_got_another_uid_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made_as({**UIDS, "mcpw-s7": 31_000}, monkeypatch)
    with pytest.raises(McpwrapError, match="was made with UID 31000") as found:
        step_executor.carry_out(steps.MakeAccounts(tuple(UIDS.items())))
    assert found.value.where == "the account mcpw-s7"


@pytest.mark.parametrize(
    ("step", "states", "named"),
    [
        (steps.StartSockets(("a", "b", "c")), ("active", "failed", "inactive"), "b.*c.socket"),
        (steps.RestartServers(("a", "b", "c")), ("active", "failed", "inactive"), "b.service"),
        (steps.StartSockets(("a",)), ("active",), ""),  # systemctl failed for another reason
    ],
)
def test_the_units_of_many_that_failed_are_named(
    step: steps.Step, states: tuple[str, ...], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*argv: str) -> str:
        raise ToolError("Job failed.", where=argv[0], fix="", code="E-TOOL-FAILED")

    def properties(units: list[str], _: list[str]) -> dict[str, dict[str, str]]:
        return {u: {"ActiveState": state} for u, state in zip(units, states, strict=True)}

    monkeypatch.setattr(step_executor, "run", run)
    monkeypatch.setattr(step_executor, "properties", properties)
    first_line = rf"^.*mcpwrap@{named} failed: Job failed. \[E-APPLY-UNIT-FAILED\]\n"
    said = first_line if named else "Job failed"
    with pytest.raises(McpwrapError, match=said) as found:
        step_executor.carry_out(step)
    assert ("mcpwrap@a" in found.value.problem) is False


@pytest.mark.parametrize(
    ("step", "count"),
    [
        (steps.EnableSockets(NAMES), 1),
        (steps.StartSockets(NAMES), 2),
        (steps.RestartServers(NAMES), 1),
        (steps.StopServers(NAMES), 2),
    ],
)
def test_systemctl_is_run_as_often_for_many_servers_as_for_one(
    step: steps.Step, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(step_executor, "run", lambda *argv: calls.append(argv))
    step_executor.carry_out(step)
    assert len(calls) == count
    assert all({unit.partition(".")[0] for unit in c if "@" in unit} >= UNITS for c in calls)
