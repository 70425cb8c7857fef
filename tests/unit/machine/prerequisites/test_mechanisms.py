"""Mechanisms by configuration: what needs each, and the refusal with its fix.

The probes themselves are tried by the stories, on a kernel that lacks something.
"""

import os
from collections.abc import Collection
from dataclasses import replace

import pytest

from mcpwrap.config.model import Config, Direct, Local, Server, WorkerListener, Workspace
from mcpwrap.errors import EXIT_USAGE, UsageError
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine.prerequisites import environment, mechanisms, probes
from mcpwrap.machine.prerequisites.environment import Environment
from mcpwrap.machine.prerequisites.mechanisms import MECHANISMS

SYSTEMD = ["E-MACHINE-SYSTEMD", "E-MACHINE-SYSTEMD-VERSION"]
CODE = ["E-MACHINE-SECCOMP", "E-MACHINE-PACKET-RULES", "E-MACHINE-NAMESPACES"]
LANDLOCK, IDMAP = "E-MACHINE-LANDLOCK", "E-MACHINE-IDMAP"


SERVER = Server(name="a", runs=Local(command="/usr/bin/a"))
FOLDER = Workspace("/home/alice/x", is_writable=True)
EMPTY = Config({}, {})
PLAIN = Config({"a": SERVER}, {})
DEGRADED = Config({"a": replace(SERVER, allow_degraded=True)}, {})
WORKSPACE = Config({"a": replace(SERVER, workspace=(FOLDER,))}, {})
WORKER = Config(
    {},
    {},
    worker=WorkerListener(
        listen=Direct("10.0.0.1", 443), interpreter="/usr/bin/python3", certificate="/c", key="/k"
    ),
)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have root, on a machine that has every controller and no mechanism."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(environment, "found", lambda: Environment.MACHINE)
    monkeypatch.setattr(probes, "missing_controllers", list)
    monkeypatch.setattr(probes, "session_namespaces", str)
    lacking(monkeypatch, [one.code for one in MECHANISMS])


def lacking(monkeypatch: pytest.MonkeyPatch, codes: Collection[str]) -> None:
    """Have these mechanisms missing, and all others work."""

    def missing() -> str:
        return "broken"

    def works() -> str:
        return ""

    scripted = [replace(m, probe=missing if m.code in codes else works) for m in MECHANISMS]
    monkeypatch.setattr(mechanisms, "MECHANISMS", scripted)
    monkeypatch.setattr(mechanisms, "SYSTEMD", scripted[0])


@pytest.mark.parametrize(
    ("wanted", "codes"),
    [
        (EMPTY, SYSTEMD),  # the last server goes: nothing may keep `apply` from it
        (PLAIN, [*SYSTEMD, LANDLOCK, *CODE]),
        (DEGRADED, [*SYSTEMD, *CODE]),
        (WORKSPACE, [*SYSTEMD, LANDLOCK, *CODE, IDMAP]),
        (WORKER, [*SYSTEMD, LANDLOCK, *CODE]),  # runs are always confined by Landlock
    ],
)
def test_a_mechanism_is_tried_where_it_is_needed(wanted: Config, codes: list[str]) -> None:
    assert sorted(one.mechanism.code for one in mechanisms.missing(wanted)) == sorted(codes)


def test_an_ordinary_account_tries_what_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = {one.mechanism.code for one in mechanisms.missing(WORKSPACE)}
    assert found == {*SYSTEMD, "E-MACHINE-SECCOMP", LANDLOCK}


@pytest.mark.parametrize(
    ("here", "fix"),
    [
        (Environment.MACHINE, "boot this machine with systemd 252 or later; or use `mcpwrap run`"),
        (Environment.WSL, "write `[boot]` and below it `systemd=true` into /etc/wsl.conf, run "),
        (Environment.CONTAINER, "start the container with systemd 252 or later as its first"),
    ],
)
def test_without_systemd_the_fix_is_said(
    monkeypatch: pytest.MonkeyPatch, here: Environment, fix: str
) -> None:
    monkeypatch.setattr(environment, "found", lambda: here)
    with pytest.raises(UsageError) as found:
        mechanisms.expect_systemd()
    assert found.value.fix.startswith(fix)
    assert (found.value.code, found.value.exit_code) == ("E-MACHINE-SYSTEMD", EXIT_USAGE)
    lacking(monkeypatch, [])
    mechanisms.expect_systemd()


def test_each_environment_has_a_fix() -> None:
    assert all(one.fix_by_environment.keys() == set(Environment) for one in MECHANISMS)


def test_all_that_is_missing_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, ["E-MACHINE-NAMESPACES", IDMAP])
    with pytest.raises(UsageError) as found:
        mechanisms.expect(WORKSPACE)
    first, second, _ = found.value.lines()
    assert first == (
        "this machine: namespaces of units: broken; nothing was changed [E-MACHINE-NAMESPACES]"
    )
    assert second.startswith(
        "  ID-mapped mounts, for `workspace`: broken [E-MACHINE-IDMAP]: boot Linux 5.12 or later"
    )
    mechanisms.expect(EMPTY)


def test_doctor_has_a_check_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, [IDMAP])
    found = list(mechanisms.checks(WORKSPACE))
    assert [check.state for check in found] == ["good"] * 6 + ["failed"]
    assert found[-1].found == "is missing: broken [E-MACHINE-IDMAP]"


def test_a_probe_that_cannot_be_made_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise ToolError("timed out", where="systemctl show", fix="x", code="E-TOOL-FAILED")

    scripted = [replace(one, probe=fail) for one in MECHANISMS]
    monkeypatch.setattr(mechanisms, "MECHANISMS", scripted)
    assert {check.state for check in mechanisms.checks(WORKSPACE)} == {"unknown"}


def test_limits_that_are_not_enforced_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mechanisms.notes(PLAIN) == []
    monkeypatch.setattr(probes, "missing_controllers", lambda: ["memory", "pids"])
    assert mechanisms.notes(EMPTY) == []
    assert [note.split(":")[0] for note in mechanisms.notes(PLAIN)] == [
        "this machine lacks the cgroup controllers memory, pids"
    ]
    lacking(monkeypatch, [])
    assert [check.state for check in mechanisms.checks(EMPTY)] == ["good", "good"]
    assert [check.state for check in mechanisms.checks(PLAIN)][-1] == "warning"


def test_where_no_session_can_see_a_project_a_note_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    projects = Config({"a": replace(SERVER, projects=(FOLDER,))}, {})
    assert mechanisms.notes(projects) == []
    monkeypatch.setattr(probes, "session_namespaces", lambda: "No space left on device")
    assert mechanisms.notes(PLAIN) == []
    (note,) = mechanisms.notes(projects)
    assert note.startswith("sessions see no project: ")
    assert note.endswith("(No space left on device) [E-SESSION-NAMESPACES]")
    lacking(monkeypatch, [])
    assert "projects" in [check.what for check in mechanisms.checks(projects)]
