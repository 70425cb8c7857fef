"""SELinux types of programs, over recorded contexts, and what each state of SELinux does."""

import os
from pathlib import Path

import pytest

from mcpwrap.config.model import (
    Config,
    Direct,
    Hub,
    Local,
    Python,
    RemoteServer,
    Server,
    WorkerListener,
)
from mcpwrap.errors import UsageError
from mcpwrap.machine.prerequisites import labels
from mcpwrap.machine.prerequisites.labels import Enforcement


@pytest.mark.parametrize(
    ("context", "refused"),
    [
        # As `ls -Z` shows them on Fedora and RHEL.
        ("system_u:object_r:bin_t:s0", ""),
        ("system_u:object_r:shell_exec_t:s0", ""),
        ("system_u:object_r:squid_exec_t:s0", ""),
        ("unconfined_u:object_r:bin_t:s0:c1,c2", ""),  # with categories
        ("system_u:object_r:ours_exec_t:s0", ""),  # of an administrator's own module
        ("unconfined_u:object_r:user_home_t:s0", "user_home_t"),  # moved from a home: mv keeps it
        ("unconfined_u:object_r:admin_home_t:s0", "admin_home_t"),
        ("system_u:object_r:usr_t:s0", "usr_t"),  # /opt/tool
        ("system_u:object_r:lib_t:s0", "lib_t"),
        ("unconfined_u:object_r:var_lib_t:s0", "var_lib_t"),
        ("unconfined_u:object_r:user_tmp_t:s0", "user_tmp_t"),
        ("system_u:object_r:default_t:s0", "default_t"),
        ("system_u:object_r:unlabeled_t:s0", "unlabeled_t"),
        ("", ""),  # a file system without labels
        ("nonsense", ""),
    ],
)
def test_a_type_that_is_not_of_programs_is_refused(context: str, refused: str) -> None:
    assert labels.refused_type(context) == refused


def test_the_fix_can_be_pasted_into_a_shell() -> None:
    assert labels.fix_of("/opt/a b/x.py") == (
        "`sudo restorecon -v '/opt/a b/x.py'`; if that changes nothing, "
        r"`sudo semanage fcontext -a -t bin_t '/opt/a\sb/x\.py'` first"
    )


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("1", Enforcement.ENFORCING),
        ("0", Enforcement.PERMISSIVE),
        (None, Enforcement.ABSENT),
    ],
)
def test_the_state_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, state: Enforcement
) -> None:
    file = tmp_path / "enforce"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(labels, "_ENFORCE", file)
    assert labels.enforcement() is state


def machine(monkeypatch: pytest.MonkeyPatch, state: Enforcement, types: dict[str, str]) -> None:
    """Have a machine with these types; all other files are programs."""

    def getxattr(path: str, _: str) -> bytes:
        if path.startswith("/nolabel"):
            raise OSError(95, "Operation not supported")
        return f"u:object_r:{types.get(path, 'bin_t')}:s0\0".encode()

    monkeypatch.setattr(os, "getxattr", getxattr)
    monkeypatch.setattr(labels, "enforcement", lambda: state)


CONFIG = Config(
    {
        "a": Server(name="a", runs=Local(command="/opt/a")),
        "b": Server(name="b", runs=Python(interpreter="/opt/python")),
        "c": Server(name="c", runs=RemoteServer(url="https://x.example/")),
        "d": Server(name="d", runs=Hub(members=())),
        "e": Server(name="e", runs=Local(command="/nolabel/e")),
    },
    {},
)


@pytest.mark.parametrize(
    ("path", "where"),
    [("/opt/a", "[mcp_servers.a], command"), ("/opt/python", "[mcp_servers.b]")],
)
def test_it_is_refused_where_selinux_enforces_and_noted_where_it_is_permissive(
    monkeypatch: pytest.MonkeyPatch, path: str, where: str
) -> None:
    machine(monkeypatch, Enforcement.ENFORCING, {path: "usr_t"})
    with pytest.raises(UsageError) as found:
        labels.expect_programs(CONFIG)
    assert (found.value.where, found.value.code) == (where, "E-PROGRAM-LABEL")
    assert found.value.problem.startswith(f"{path} has the SELinux type usr_t")
    assert labels.notes(CONFIG) == []
    machine(monkeypatch, Enforcement.PERMISSIVE, {path: "usr_t"})
    labels.expect_programs(CONFIG)
    assert [note.split(" has ")[0] for note in labels.notes(CONFIG)] == [f"{where}: {path}"]
    machine(monkeypatch, Enforcement.ABSENT, {path: "usr_t"})
    labels.expect_programs(CONFIG)
    assert labels.notes(CONFIG) == []


def test_programs_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, Enforcement.ENFORCING, {})
    labels.expect_programs(CONFIG)


def test_the_interpreter_of_a_script_is_a_program_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/opt/python -I\n")
    machine(monkeypatch, Enforcement.ENFORCING, {"/opt/python": "usr_t"})
    config = Config({"a": Server(name="a", runs=Local(command=str(script)))}, {})
    with pytest.raises(UsageError, match="/opt/python has the SELinux type usr_t"):
        labels.expect_programs(config)


def test_the_workers_interpreter_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, Enforcement.ENFORCING, {"/opt/python": "var_lib_t"})
    listen = Direct("10.0.0.1", 443)
    worker = WorkerListener(listen=listen, interpreter="/opt/python", certificate="/c", key="/k")
    with pytest.raises(UsageError) as found:
        labels.expect_programs(Config({}, {}, worker=worker))
    assert found.value.where == "[worker], python"
