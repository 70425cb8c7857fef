"""`mcpwrap init`: who may run it, the order of its steps, and its output."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.main import cli
from mcpwrap.cli.setup.init import account_steps, agents_step, command, machine_steps
from mcpwrap.cli.setup.init.guide import Guide, StepState
from mcpwrap.cli.setup.init.person import PersonAccount
from mcpwrap.config.parse import SourceFile
from mcpwrap.core.doctor import failed, good, warned
from mcpwrap.core.wire.approver_passwords import Approver, Approvers
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import accounts, tty
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import observer, planning
from mcpwrap.machine.doctor import approval_checks, machine_checks
from mcpwrap.plan import paths

ALICE = PersonAccount("alice", 1000, 1000, "/home/alice", "/bin/sh")
USERS_GID, APPROVERS_GID = 900, 901
NO_PASSWORD = (
    "a password is typed at a terminal, and there is none; only root can approve: what waits for a"
    " person is refused to agents"
)


class Root:
    """Stand-in for a machine: its groups, its programs, and what was run on it."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self.ran: list[str] = []
        self.status = 0
        self.passwords: dict[str, Approver] = {}
        self.members: list[str] = []
        self.squid = good("Squid", "5.7")
        self.todo: list[object] = []
        self.is_configured = True
        self.has_polkit = False

    def run(self, *argv: str) -> str:
        self.ran.append(" ".join(argv))
        return ""

    def ran_at_terminal(self, _: Guide, argv: list[str]) -> int:
        self.ran.append(" ".join(argv))
        return self.status


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Root:
    """Have root as the caller, on a machine that is set up but for the group and an approver."""
    root = Root()
    program = tmp_path / "mcpwrap-root"
    program.touch()
    gids = {"mcpwrap": USERS_GID, "mcpwrap-approvers": APPROVERS_GID}
    patches: list[tuple[object, str, object]] = [
        (os, "geteuid", lambda: 0),
        (os, "getgrouplist", lambda *_: root.groups),
        (paths, "ROOT_PROGRAM", str(program)),
        (command, "person_of", lambda _: ALICE),
        (account_steps, "other_person", lambda name, _: PersonAccount(name, 1001, 1001, "/", "")),
        (accounts, "gid_of", gids.get),
        (accounts, "uid_of", {"alice": 1000, "bob": 1001, "alias": 1000}.get),
        (approval_checks, "has_polkit", lambda: root.has_polkit),
        (systemctl, "run", lambda *argv: root.run(*argv)),  # noqa: PLW0108 - a test replaces it
        (Guide, "ran", lambda *argv, **_: root.ran_at_terminal(*argv)),
        (approval_checks, "approvers", lambda: Approvers(by_user=root.passwords)),
        (approval_checks, "members", lambda _: root.members),
        (machine_checks, "squid_program", lambda: root.squid),
        (observer, "has_configuration", lambda: root.is_configured),
        (observer, "config_files", list),
        (planning, "planned", lambda _: SimpleNamespace(steps=root.todo)),
        (tty, "has_terminal", lambda: True),
        (agents_step, "agents", lambda guide, _: guide.end("agents", "already", "", "")),
        (machine_steps, "doctor", lambda guide: guide.end("doctor", "skipped", "", "")),
    ]
    for place, name, value in patches:
        monkeypatch.setattr(place, name, value)
    return root


def init(*more: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, ["init", *more], input=typed, standalone_mode=False)


def states(result: Result) -> dict[str, str]:
    steps = json.loads(result.stdout)["steps"]
    return {step["name"]: step["state"] for step in steps}


@pytest.mark.parametrize(
    ("more", "uid", "code"),
    [
        (["--yes"], 0, ""),
        (["--yes"], 1000, "E-USAGE-NEEDS-ROOT"),
        ([], 0, "E-USAGE-NO-TERMINAL"),
        (["--json"], 0, "E-INIT-JSON-CONFIRM"),
    ],
)
@pytest.mark.usefixtures("root")
def test_who_may_run_it(
    monkeypatch: pytest.MonkeyPatch, more: list[str], uid: int, code: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    error = init(*more).exception
    assert (error.code if isinstance(error, UsageError) else "") == code


def test_it_needs_the_package(root: Root) -> None:
    Path(paths.ROOT_PROGRAM).unlink()
    error = init("--yes").exception
    assert isinstance(error, UsageError)
    assert error.code == "E-USAGE-NOT-INSTALLED"
    assert root.ran == []


def test_on_a_fresh_machine_each_step_is_done(root: Root) -> None:
    root.squid = failed("Squid", "/usr/sbin/squid does not exist", "")
    root.todo = [SimpleNamespace(describe=lambda: "a step")]
    result = init("--yes", "--json")
    assert root.ran == [
        "/usr/sbin/usermod -aG mcpwrap alice",
        "/usr/bin/apt-get install -y --no-remove squid-openssl",
        "/usr/bin/mcpwrap approvals passwd alice",
        "/usr/bin/mcpwrap apply",
    ]
    # Squid is still not there after apt, which only said so.
    assert result.return_value == (0 if Path(machine_checks.SQUID).exists() else 1)
    report = json.loads(result.stdout)
    assert report["is_changed"]
    assert report["account"] == "alice"
    assert [step["name"] for step in report["steps"]] == [
        "group", "squid", "approver", "apply", "agents", "doctor",
    ]  # fmt: skip
    assert "$ sudo usermod -aG mcpwrap alice" in result.stderr


def test_a_second_run_has_nothing_to_do(root: Root) -> None:
    root.groups = {USERS_GID}
    root.passwords = {"alice": Approver(uid=1000, hash="x")}
    result = init("--yes")
    assert result.return_value == 0
    assert root.ran == []
    assert "nothing to do\n" in result.stdout
    assert "open: " not in result.stdout


@pytest.mark.parametrize(
    ("typed", "ran", "expected"),
    [
        ("\n\n", ["/usr/sbin/usermod -aG mcpwrap alice", "/usr/bin/mcpwrap approvals passwd alice"],
         ["done", "done"]),
        ("n\nn\n\n", [], ["skipped", "skipped"]),
        ("n\nn\nbob\n", ["/usr/sbin/usermod -aG mcpwrap-approvers bob"], ["skipped", "done"]),
    ],
)  # fmt: skip
def test_a_person_answers(
    root: Root, monkeypatch: pytest.MonkeyPatch, typed: str, ran: list[str], expected: list[str]
) -> None:
    monkeypatch.setattr(tty, "is_interactive", lambda: True)
    found: list[Guide] = []
    monkeypatch.setattr(command, "_end", lambda guide, *_, **__: found.append(guide))
    assert init(typed=typed).exception is None
    results = {result.name: result for result in found[0].results}
    assert [results[name].state for name in ("group", "approver")] == expected
    assert root.ran == ran


def test_no_answer_ends_it_and_says_how_to_continue(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tty, "is_interactive", lambda: True)
    result = init(typed="\n")  # the end of input is like Ctrl-C
    assert isinstance(result.exception, click.Abort)
    assert root.ran == ["/usr/sbin/usermod -aG mcpwrap alice"]
    told = result.stdout.split("interrupted at the step approver")[1]
    again = "`sudo mcpwrap init --for alice`"
    assert f": what is done stays; {again} continues\n" in told
    assert f"next: {again}, " in told
    assert "nothing" not in told


def raises_tool_error(root: Root, _: pytest.MonkeyPatch) -> None:
    def run(*_: str) -> str:
        raise McpwrapError("no", where="usermod", fix="x", code="E-TOOL-FAILED")

    root.run = run  # type: ignore[method-assign]


def has_no_group(_: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "gid_of", lambda _: None)


def is_damaged(_: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    def approvers() -> Approvers:
        raise msgspec.DecodeError

    monkeypatch.setattr(approval_checks, "approvers", approvers)


def is_unreadable(_: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    def approvers() -> Approvers:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr(approval_checks, "approvers", approvers)


def fails(root: Root, _: pytest.MonkeyPatch) -> None:
    root.status = 2


def has_no_terminal(_: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tty, "has_terminal", lambda: False)


def is_old(root: Root, _: pytest.MonkeyPatch) -> None:
    root.squid = warned("Squid", "4.6 has known vulnerabilities", "upgrade")


def has_no_configuration(root: Root, _: pytest.MonkeyPatch) -> None:
    root.is_configured = False


@pytest.mark.parametrize(
    ("odd", "step", "state", "status"),
    [
        (raises_tool_error, "group", "failed", 1),
        (has_no_group, "group", "failed", 1),
        (is_damaged, "approver", "failed", 1),
        (is_unreadable, "approver", "failed", 1),
        (fails, "approver", "failed", 1),
        (has_no_terminal, "approver", "skipped", 0),
        (is_old, "squid", "already", 0),
        (has_no_configuration, "apply", "already", 0),
    ],
)
def test_a_step_that_fails_does_not_end_the_run(
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    odd: Callable[[Root, pytest.MonkeyPatch], None],
    step: str,
    state: str,
    status: int,
) -> None:
    odd(root, monkeypatch)
    result = init("--yes", "--json")
    found = states(result)
    assert (found[step], list(found)[-1]) == (state, "doctor")
    assert result.return_value == status


def test_what_is_open_is_listed_at_the_end(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tty, "has_terminal", lambda: False)
    root.groups = {USERS_GID}
    lines = init("--yes").stdout.split("nothing was changed\n")[1].splitlines()
    assert lines == [
        "alice has 0 servers behind the gate",
        f"open: approver: {NO_PASSWORD}; `sudo mcpwrap approvals passwd alice`",
        "next: `sudo mcpwrap approvals passwd alice`, `mcpwrap wrap --all`, `mcpwrap clients`",
    ]


@pytest.mark.parametrize(
    ("state", "doctor", "is_changed", "following"),
    [
        ("failed", "done", False, ["mcpwrap wrap --all", "mcpwrap clients"]),
        ("done", "failed", True, ["sudo mcpwrap doctor", "mcpwrap wrap --all", "mcpwrap clients"]),
        ("already", "skipped", False, ["mcpwrap wrap --all", "mcpwrap clients"]),
    ],
)
def test_a_test_is_no_change(
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    state: StepState,
    doctor: StepState,
    is_changed: bool,  # noqa: FBT001
    following: list[str],
) -> None:
    root.groups = {USERS_GID}
    root.members = ["bob"]
    wrap, test = "mcpwrap wrap --all", "sudo mcpwrap doctor"
    monkeypatch.setattr(
        agents_step, "agents", lambda guide, _: guide.end("agents", state, wrap, "")
    )
    monkeypatch.setattr(machine_steps, "doctor", lambda g: g.end("doctor", doctor, test, ""))
    report = json.loads(init("--yes", "--json").stdout)
    found = (report["is_changed"], report["is_interrupted"], report["next"])
    assert found == (is_changed, False, following)


PASSWD = "/usr/bin/mcpwrap approvals passwd alice"
SAME_UID = b"[approvals]\nsame_uid = true\n"


@pytest.mark.parametrize(
    ("members", "passwords", "config", "why"),
    [
        (["bob"], {}, b"", "bob can approve calls of alice"),
        (["bob", "alice"], {"alice": 1000}, b"", "alice, bob can approve calls of alice"),
        ([], {"alice": 1000}, b"", "alice can approve calls of alice"),
        ([], {}, SAME_UID, "alice can approve without a password, by `same_uid`"),
        (["alice"], {}, b"", ""),
        (["alias"], {}, b"", ""),
        (["gone"], {}, b"", ""),
        ([], {"bob": 1001}, b"", ""),
        ([], {"alice": 999}, b"", ""),  # of another account that had the name
    ],
)
def test_the_approver_is_one_of_calls_of_this_account(
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    members: list[str],
    passwords: dict[str, int],
    config: bytes,
    why: str,
) -> None:
    root.members = members
    root.passwords = {name: Approver(uid=uid, hash="x") for name, uid in passwords.items()}
    monkeypatch.setattr(observer, "config_files", lambda: [SourceFile("c", config)])
    step = json.loads(init("--yes", "--json").stdout)["steps"][2]
    assert (step["state"] == "already", PASSWD in root.ran) == (bool(why), not why)
    assert not why or step["why"] == why


def test_polkit_is_named_where_it_is_what_is_left(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.has_polkit = True
    monkeypatch.setattr(tty, "has_terminal", lambda: False)
    step = json.loads(init("--yes", "--json").stdout)["steps"][2]
    assert step["state"] == "skipped"
    assert step["why"].endswith("and alice by `--polkit`, with the password of the account")


CONFIG = b"""
[mcp_servers.by-name]
command = "/usr/bin/true"
[mcp_servers.by-name.mcpwrap]
agents = ["alice"]
[mcp_servers.by-group]
command = "/usr/bin/true"
[mcp_servers.of-bob]
command = "/usr/bin/true"
[mcp_servers.of-bob.mcpwrap]
agents = ["bob"]
"""


@pytest.mark.parametrize(
    ("content", "groups", "servers"),
    [
        (CONFIG, {USERS_GID}, ["by-group", "by-name"]),
        (CONFIG, {1000}, ["by-name"]),
        (b"broken", {USERS_GID}, []),
    ],
)
def test_the_servers_of_the_account_are_listed(
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    groups: set[int],
    servers: list[str],
) -> None:
    root.passwords = {"alice": Approver(uid=1000, hash="x")}
    monkeypatch.setattr(observer, "config_files", lambda: [SourceFile("c", content)])
    root.groups = groups
    assert json.loads(init("--yes", "--json").stdout)["servers"] == servers
