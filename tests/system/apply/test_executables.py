"""Ownership of executables: no server runs a program that a non-root account can change."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed.machine import Machine
from tests.system.support import emptied
from tests.system.support.tiers import only_in_test_all

STAGE = emptied.booted

TOP = "/opt/case"
PROBE = f'command = "{TOP}/probe.py"'
AGENT = '[mcp_servers.a.mcpwrap]\nagents = ["alice"]'
LOCAL = "$(python3 -c 'import site; print(site.getsitepackages()[0])')"  # below /usr/local
# user::rwx, user:UID:rwx, group::r-x, mask::rwx, other::r-x. acl(5), linux/posix_acl_xattr.h
ACL = ((0x01, 7, -1), (0x02, 7, 0), (0x04, 5, -1), (0x10, 7, -1), (0x20, 5, -1))

# The change, the configuration, the expected message, and the fix. At first there are `probe.py`,
# which `/usr/bin/python3` runs, and `bin`, `lib` and `venv`, all root's.
CASES = [
    pytest.param(
        f"chown alice {TOP}/probe.py",
        PROBE,
        f"{TOP}/probe.py belongs to alice",
        f"chown root {TOP}/probe.py",
        id="file",
    ),
    pytest.param(
        f"chown alice {TOP}", PROBE, f"{TOP} belongs to alice", f"chown root {TOP}", id="folder"
    ),
    pytest.param(
        f"chmod 757 {TOP}", PROBE, "mode 0757: every account", f"chmod 755 {TOP}", id="mode"
    ),
    pytest.param(
        f"chmod g+w {TOP}/probe.py", PROBE, "a group, or another", f"chmod g-w {TOP}/probe.py",
        id="group",
    ),
    pytest.param(
        f"mv {TOP}/probe.py /tmp/; ln -s /tmp/probe.py {TOP}/", PROBE,
        "/tmp has mode 1777: every account can write to it",
        f"rm {TOP}/probe.py; mv /tmp/probe.py {TOP}/", id="link",
    ),
    pytest.param(
        f"cp /usr/bin/python3 {TOP}/bin/; chown alice {TOP}/bin/python3; "
        f"sed -i '1s,.*,#!{TOP}/bin/python3,' {TOP}/probe.py",
        PROBE, f"{TOP}/bin/python3 belongs to alice", f"chown root {TOP}/bin/python3",
        id="interpreter",
    ),
    pytest.param(
        f"chown alice {TOP}/bin; sed -i '1s,.*,#!/usr/bin/env python3,' {TOP}/probe.py",
        f'{PROBE}\nenv = {{ PATH = "{TOP}/bin:/usr/bin" }}',
        f"{TOP}/bin belongs to alice", f"chown root {TOP}/bin", id="path",
    ),
    pytest.param(
        f"chown alice {TOP}/probe.py",
        f'command = "/usr/bin/python3"\nargs = ["{TOP}/probe.py"]',
        f"{TOP}/probe.py belongs to alice", f"chown root {TOP}/probe.py", id="argument",
    ),
    pytest.param(
        f"install -o alice -m 644 /dev/null {TOP}/package.json",
        PROBE, f"{TOP}/package.json belongs to alice", f"chown root {TOP}/package.json",
        id="package.json",
    ),
    pytest.param(
        f"mkdir -p {TOP}/lib/node_modules/x; chown alice {TOP}/lib/node_modules; "
        f"cp {TOP}/probe.py {TOP}/lib/",
        f'command = "{TOP}/lib/probe.py"',
        f"{TOP}/lib/node_modules belongs to alice", f"chown root {TOP}/lib/node_modules",
        id="node_modules",
    ),
    pytest.param(
        f"touch {TOP}/venv/lib/python3/site-packages/x.py; "
        f"chmod o+w {TOP}/venv/lib/python3/site-packages/x.py",
        f'command = "{TOP}/venv/bin/probe.py"',
        "site-packages/x.py has mode 0646", f"chmod -R go-w {TOP}/venv", id="site-packages",
    ),
    pytest.param(
        f"install -d -o alice /srv/source; "
        f"echo /srv/source > {TOP}/venv/lib/python3/site-packages/x.pth",
        f'command = "{TOP}/venv/bin/probe.py"',
        "/srv/source belongs to alice", "chown root /srv/source", id="editable",
    ),
    pytest.param(
        f"chown alice {TOP}/venv/pyvenv.cfg", f'command = "{TOP}/venv/bin/probe.py"',
        "pyvenv.cfg belongs to alice", f"chown root {TOP}/venv/pyvenv.cfg", id="pyvenv.cfg",
    ),
    pytest.param(
        f"touch {TOP}/helper.py; chown alice {TOP}/helper.py", PROBE,
        f"{TOP}/helper.py belongs to alice", f"chown root {TOP}/helper.py", id="beside",
    ),
    pytest.param(
        "install -d -o alice /srv/modules", f'{PROBE}\nenv = {{ PYTHONPATH = "/srv/modules" }}',
        "/srv/modules belongs to alice", "chown root /srv/modules", id="variable",
    ),
    pytest.param(
        "install -d -o alice /srv/work",
        'command = "/usr/bin/python3"\nargs = ["-m", "x"]\ncwd = "/srv/work"',
        "/srv/work belongs to alice", "chown root /srv/work", id="cwd",
    ),
    pytest.param(
        "install -d -o alice /srv/work",
        'command = "/bin/bash"\nargs = ["-lc", "cd /srv/work && exec python3 server.py"]',
        "/srv/work belongs to alice", "chown root /srv/work", id="text",
    ),
    pytest.param(
        f"install -d -o alice {TOP}/helpers; touch {TOP}/helpers/x.py", PROBE,
        f"{TOP}/helpers belongs to alice", f"chown -R root {TOP}/helpers", id="below",
    ),
    pytest.param(
        f"install -d -o alice /srv/source; d={LOCAL}; mkdir -p $d; "
        "echo ../../../../../srv/source > $d/x.pth",
        PROBE, "/srv/source belongs to alice", f"rm {LOCAL}/x.pth", id="pth",
    ),
]  # fmt: skip


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Lend the machine without a server, with a program of root's."""
    emptied.empty(machine)
    site = f"{TOP}/venv/lib/python3/site-packages"
    machine.as_root(
        f"mkdir -p {TOP}/bin {TOP}/lib {TOP}/venv/bin {site}; : > {TOP}/venv/pyvenv.cfg; "
        f"{{ echo '#!/usr/bin/python3'; cat /opt/probe.py; }} > {TOP}/probe.py; "
        f"chmod 755 {TOP}/probe.py; cp {TOP}/probe.py {TOP}/venv/bin/"
    )
    yield machine
    machine.as_root(f"rm -rf {TOP} {LOCAL}/x.pth /tmp/probe.py /srv/source /srv/modules /srv/work")


def configured(machine: Machine, definition: str, ours: str = AGENT) -> None:
    machine.configure(f"[mcp_servers.a]\n{definition}\n{ours}\n")


@contextmanager
def changed(machine: Machine, command: str, back: str) -> Iterator[None]:
    machine.as_root(command)
    try:
        yield
    finally:
        machine.as_root(back)


def test_a_program_that_its_agent_can_write_is_refused(machine: Machine) -> None:
    """`plan` and `apply` name the file and its owner, and what that account could read."""
    machine.as_root(f"chown alice {TOP}/probe.py")
    configured(machine, f'{PROBE}\nenv = {{ TOKEN = "${{KEY}}" }}')
    for user, command in (("alice", "mcpwrap plan"), ("root", "mcpwrap apply")):
        refused = machine._run(["sh", "-c", command], user=user, stdin="", status=2)
        assert f"[mcp_servers.a], command: {TOP}/probe.py belongs to alice" in refused.err
        assert (
            "change what this server runs, and so read its secrets (KEY); nothing was"
            in refused.err
        )
    assert machine.look("getent passwd mcpw-a; true") == ""
    machine.as_root(f"chown root {TOP}/probe.py")
    machine.as_user("alice", "mcpwrap plan", status=10)
    machine.apply()


@only_in_test_all("relatives of the story above")
@pytest.mark.parametrize(("before", "definition", "said", "mended"), CASES)
def test_what_root_alone_does_not_own_is_refused(
    machine: Machine, before: str, definition: str, said: str, mended: str
) -> None:
    machine.as_root(before)
    configured(machine, definition)
    refused = machine.as_root("mcpwrap plan", status=2)
    assert said in refused.err
    assert "`writable_command = true` in [mcp_servers.a.mcpwrap]" in refused.err
    machine.as_root(mended)
    machine.as_root("mcpwrap plan", status=10)


@only_in_test_all("a relative of the story above")
def test_an_access_control_list_counts(machine: Machine) -> None:
    """Mode and owner in `ls -l` look correct, but for the mask."""
    alice = machine.uid_of("alice")
    entries = [(tag, perm, alice if tag == 0x02 else who) for tag, perm, who in ACL]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    machine.as_root(
        f'python3 -c \'import os; os.setxattr("{TOP}/probe.py", "system.posix_acl_access", '
        f'bytes.fromhex("{acl.hex()}"))\''
    )
    machine.as_user("alice", f"echo >> {TOP}/probe.py")  # it is in force
    configured(machine, PROBE)
    assert "can write to it" in machine.as_root("mcpwrap plan", status=2).err


def test_root_can_allow_it_and_is_told_each_time(machine: Machine) -> None:
    machine.as_root(f"chown alice {TOP}/probe.py")
    configured(machine, PROBE, f"{AGENT}\nwritable_command = true")
    widened = f"writable_command: an account that can write to {TOP}/probe.py"
    assert widened in machine.as_root("mcpwrap plan", status=10).out
    assert widened in machine.apply()
    assert widened in machine.as_user("alice", "mcpwrap plan").out
    with machine.session("a") as session:
        assert session.evaluate("result = 1 + 1") == 2
    found = machine.as_root("mcpwrap doctor a", status=1).out  # the probe has no tools to list
    assert f"warning  a: program: {TOP}/probe.py belongs to alice" in found


def test_what_was_changed_since_apply_is_not_started(machine: Machine) -> None:
    """The wrapper checks again each time: a file that was root's may be alice's by now."""
    configured(machine, PROBE)
    machine.apply()
    machine.announce("mcpwrap@a")
    with machine.session("a") as session:
        assert session.evaluate("result = 1 + 1") == 2
    with changed(machine, f"chown alice {TOP}/probe.py", f"chown root {TOP}/probe.py"):
        refused = machine.as_user("alice", "mcpwrap-connect a </dev/null", status=70)
        assert f"{TOP}/probe.py belongs to alice" in refused.err
        doctor = machine.as_root("mcpwrap doctor a", status=1).out
        assert f"a: program: {TOP}/probe.py belongs to alice" in doctor
    with machine.session("a") as session:
        assert session.evaluate("result = 1 + 1") == 2


def test_a_missing_interpreter_is_named(machine: Machine) -> None:
    """execve(2) reports "No such file or directory" for a file that exists."""
    machine.as_root(f"sed -i '1s,.*,#!{TOP}/bin/python9,' {TOP}/probe.py")
    configured(machine, PROBE)
    name = f"{TOP}/bin/python9, interpreter of {TOP}/probe.py, does not exist"
    assert f"note: a does not start: {name}" in machine.apply()
    machine.announce("mcpwrap@a")
    assert f"a: program: {name}" in machine.as_root("mcpwrap doctor a", status=1).out
    refused = machine.as_user("alice", "mcpwrap-connect a </dev/null", status=70)
    assert f"its interpreter {TOP}/bin/python9 does not exist" in refused.err
    machine.as_root(f"ln -s /usr/bin/python3 {TOP}/bin/python9")
    assert machine.apply().strip() == "nothing to do"
    with machine.session("a") as session:
        assert session.evaluate("result = 1 + 1") == 2
