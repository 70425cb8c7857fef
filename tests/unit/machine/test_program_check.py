"""Refusal of programs in homes, and of those that an account other than root can change."""

import errno
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mcpwrap.config.model import (
    Config,
    Destination,
    Direct,
    Local,
    Python,
    RemoteServer,
    SecretRef,
    Server,
    Template,
    WorkerListener,
    Workspace,
)
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.executables import launch
from mcpwrap.linux.executables.look import ExecutableScan
from mcpwrap.machine.program_check import changeable, expect_roots, missing


def config(command: str, *workspace: str) -> Config:
    folders = tuple(Workspace(path, is_writable=False) for path in workspace)
    # Owners and modes, which differ by the machine of this test, are tested by the stories.
    server = Server(name="a", runs=Local(command=command), workspace=folders, writable_command=True)
    elsewhere = Server(name="b", runs=RemoteServer(url="https://x.example/"))
    return Config({"a": server, "b": elsewhere}, {})


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script"
    path.write_text("#! /home/alice/.nvm/node --x\nnode()\n")
    return path


def test_a_program_or_what_runs_it_in_a_home_is_refused(script: Path) -> None:
    for command, really in (("/home/alice/x", "/home/alice/x"), (str(script), "alice/.nvm/node")):
        with pytest.raises(McpwrapError, match=f"{really}.*nothing was changed"):
            expect_roots(config(command))
    expect_roots(config("/home/alice/x", "/home/alice"))
    expect_roots(config(str(script), "/home/alice/.nvm"))


def test_a_link_is_followed(script: Path) -> None:
    link = script.with_name("link")
    link.symlink_to(script)
    with pytest.raises(McpwrapError, match=r"alice/\.nvm/node"):
        expect_roots(config(str(link)))


@pytest.mark.parametrize("command", ["/usr/bin/env", "/nowhere", "/", "/dev/null"])
def test_other_programs_are_not(command: str) -> None:
    expect_roots(config(command))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """The account that proposes a server chooses its command."""
    os.mkfifo(tmp_path / "pipe")
    expect_roots(config(str(tmp_path / "pipe")))


def test_a_program_that_every_account_can_write_is_refused_without_the_setting(
    tmp_path: Path,
) -> None:
    script = tmp_path / "server"  # in /tmp, which has mode 1777
    script.write_text("#!/bin/sh\n")
    env: dict[str, Template] = {"TOKEN": (SecretRef("KEY"),)}
    server = Server(name="a", runs=Local(command=str(script), env=env))
    with pytest.raises(McpwrapError) as refused:
        expect_roots(Config({"a": server}, {}))
    text = str(refused.value)
    assert text.startswith(f"[mcp_servers.a], command: {script}: ")
    assert "and so read its secrets (KEY); nothing was changed [E-PROGRAM-WRITABLE]" in text
    assert "`writable_command = true` in [mcp_servers.a.mcpwrap]" in text
    expect_roots(Config({"a": replace(server, writable_command=True)}, {}))


def test_for_the_working_directory_another_fix_is_proposed(tmp_path: Path) -> None:
    server = Server(name="a", runs=Local(command="/usr/bin/npx", args=("x",), cwd=str(tmp_path)))
    with pytest.raises(McpwrapError, match=r", cwd: (.|\n)*fix: leave out `cwd`, "):
        expect_roots(Config({"a": server}, {}))


@pytest.fixture
def writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create a program in /tmp, which has mode 1777, and have it as uv."""
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    monkeypatch.setattr(launch, "UV_PATHS", ("/no/such", str(program)))
    return str(program)


def python(interpreter: str, *, worker: Direct | None = None, egress: bool = False) -> Server:
    hosts = (Destination("pypi.example", 443, with_subdomains=False),) if egress else ()
    runs = Python(interpreter=interpreter, worker=worker)
    return Server(name="a", runs=runs, egress=hosts)


ELSEWHERE = Direct("10.0.0.5", 9443)


def test_the_interpreter_and_uv_of_a_python_server_are_checked(writable: str) -> None:
    for server in (python(writable), python("/bin/sh", egress=True)):
        with pytest.raises(McpwrapError) as refused:
            expect_roots(Config({"a": server}, {}))
        text = str(refused.value)
        assert text.startswith(f"[mcp_servers.a]: {writable}: ")
        assert "and so read its token; nothing was changed [E-PROGRAM-WRITABLE]" in text
        assert "writable_command" not in text  # which such a server refuses
    permitted = (
        python("/bin/sh"),  # nothing is downloaded for it
        python(writable, worker=ELSEWHERE, egress=True),  # this machine executes neither
    )
    for server in permitted:
        expect_roots(Config({"a": server}, {}))


def test_the_interpreter_for_other_machines_is_checked(writable: str) -> None:
    listener = WorkerListener(listen=ELSEWHERE, interpreter=writable, certificate="", key="")
    with pytest.raises(McpwrapError, match=r"^\[worker\], python: .*what runs return"):
        expect_roots(Config({}, {}, worker=listener))
    expect_roots(Config({}, {}, worker=replace(listener, interpreter="/bin/sh")))


def test_uv_may_be_missing_and_an_interpreter_that_is_executed_may_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "UV_PATHS", ("/no/such",))
    assert missing(python("/bin/sh", egress=True)) == []
    assert missing(python("/no/python3")) == ["/no/python3 does not exist"]
    assert missing(python("/no/python3", worker=ELSEWHERE)) == []


def test_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    script = tmp_path / "server"
    for line, name in (("#!/no/such", "/no/such"), ("#!/usr/bin/env no-such", "no-such")):
        script.write_text(f"{line}\n")
        (found,) = missing(Server(name="a", runs=Local(command=str(script))))
        assert found == f"{name}, interpreter of {script}, does not exist"
    assert missing(Server(name="a", runs=Local(command="/bin/sh"))) == []
    assert missing(Server(name="a", runs=RemoteServer(url="https://x.example/"))) == []
    assert missing(Server(name="a", runs=Local(command="/no/such"))) == ["/no/such does not exist"]


def test_a_hidden_path_is_left_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """No account is said to be able to change a file that was not seen."""
    roots = Path("/").stat()

    def lstat(path: str) -> os.stat_result:
        if path == "/opt/x":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return roots

    server = Server(name="a", runs=Local(command="/opt/x"))
    monkeypatch.setattr(os, "lstat", lstat)
    for uid, said in ((1000, "Permission denied; nothing was changed.*`sudo mcpwrap plan`"),
                      (0, "an account other than root could")):  # fmt: skip
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        with pytest.raises(McpwrapError) as refused:
            expect_roots(Config({"a": server}, {}))
        assert re.search(f"/opt/x cannot be checked: .*{said}", str(refused.value), re.DOTALL)


def test_what_is_not_looked_at_is_refused() -> None:
    """Many arguments cannot hide a path."""
    args = tuple(f"/bin/{number}/../sh" for number in range(300))
    server = Server(name="a", runs=Local(command="/bin/sh", args=args))
    assert (
        changeable(server, ExecutableScan()) is None
    )  # the same few folders lead nowhere: `/bin/0`
    env: dict[str, Template] = {"PATH": (":".join(f"/bin/{n}" for n in range(300)),)}
    found = changeable(Server(name="a", runs=Local(command="/bin/sh", env=env)), ExecutableScan())
    assert found
    deep = Server(name="a", runs=Local(command="/usr/bin/env", args=("env",) * 9_999))
    assert "env is nested in over 16 commands: it is not checked" in str(
        changeable(deep, ExecutableScan())
    )
    assert "comes after 256 other paths: it is not checked" in str(found)


@pytest.mark.parametrize(
    ("command", "args", "part"),
    [
        ("/usr/bin/npx", ("-y", "x"), "cwd"),  # a package of the project comes first
        ("/usr/bin/python3", ("-m", "x"), "cwd"),
        ("/usr/bin/python3", ("${PROJECT}/x.py",), "args"),
        ("/usr/bin/python3", ("x.py",), "args"),
        ("/usr/bin/python3", ("-I", "-m", "x"), ""),
        ("/usr/bin/id", ("--repository", "."), ""),
        ("/usr/bin/id", ("--db", "${PROJECT}/x.db"), ""),
    ],
)
def test_no_code_is_taken_from_a_project(
    tmp_path: Path, command: str, args: tuple[str, ...], part: str
) -> None:
    """Its agent, and the repository's authors, would decide what the server runs."""
    tmp_path.chmod(0o777)
    projects = (Workspace(str(tmp_path), is_writable=False),)
    server = Server(name="a", runs=Local(command=command, args=args), projects=projects)
    found = changeable(server, ExecutableScan())
    assert (found.part if found else "") == part
    if part == "cwd":
        with pytest.raises(McpwrapError, match="searches for no code in the project"):
            expect_roots(Config({"a": server}, {}))
