"""The project that an agent is in: its session sees that one, and no sibling."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import Session
from tests.system.hub import machines
from tests.system.support.servers import NODE_MODULES, a_server
from tests.system.support.tiers import only_in_test_all

HOME, SRC = "/home/alice", "/home/alice/src"
LOOKUP, VIEW = "as_wrapper/project/lookup", "as_wrapper/project/view"
NOT_THERE, DENIED = "OSError 2", "OSError 13"
READ_ONLY, BUSY = "OSError 30", "OSError 16"
HELD_UP_S = 5.0  # longer than any start
TWIN = only_in_test_all("mutation twin: shows that the probe notices what is missing")
# `a` and `b` are repositories; `c` is a folder; `w` is a worktree of `a`.
MAKE_SRC = """
umask 022; chmod 700 ~; mkdir -p src/c other; cd src; echo 'in c' > c/file
git config --global user.email alice@here; git config --global user.name alice
for name in a b; do
  mkdir -p $name/sub/deep; cd $name; git init -q; echo "in $name" > file; git add .
  git commit -qm first; printf '#!/bin/sh\\ntrue\\n' > .git/hooks/pre-commit; touch .envrc; cd ..
done
git -C a worktree add -q ../w; ln -s a link; ln -s ../other out; echo 'in other' > ../other/file
"""


def probe(name: str, *lines: str, args: str = "", agents: str = '["alice"]') -> str:
    return a_server(name, "\n".join([f"agents = {agents}", *lines]), args=args)


FILES = f"""
[mcp_servers.files]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-filesystem/dist/index.js", "/"]
[mcp_servers.files.mcpwrap]
agents = ["alice"]
projects = ["{SRC}:rw"]
expose = "http"
[mcp_servers.files.mcpwrap.http.web]
project = "{SRC}/b"
[mcp_servers.tools.members.files]
[mcp_servers.tools.mcpwrap]
agents = ["alice"]
"""
RW = probe("rw", f'projects = ["{SRC}:rw"]')
RO = probe("ro", f'projects = ["{SRC}:ro"]')
NAMED = probe("named", f'projects = ["{SRC}:rw"]', args=', "${PROJECT}"')
BOTH = probe(
    "both",
    f'projects = ["{SRC}:rw", "/home/bob/src:rw"]',
    "shared = true",
    agents='["alice", "bob"]',
)
BESIDE = probe("beside", f'projects = ["{SRC}:rw"]', f'workspace = ["{HOME}/other:rw"]')
LINKED = probe("linked", f'projects = ["{SRC}:rw"]', f'workspace = ["{SRC}/a/.git:rw"]')
FREE = probe("free", f'projects = ["{SRC}:rw"]', "protect = false", "protect_instructions = false")
STANDING = FILES + RW + RO + NAMED + BOTH + LINKED + FREE + BESIDE


@contextmanager
def with_projects(suite: str) -> Iterator[Machine]:
    """Boot a machine on which alice has projects side by side, and servers that may see them."""
    with installed.booted(suite) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.as_user("alice", MAKE_SRC)
        machine.as_user("bob", "umask 022; mkdir -p src/p; echo 'of bob' > src/p/file")
        machine.as_root("chmod 755 /home/bob")
        machine.configure(STANDING)
        machine.apply()
        yield machine


STAGE = with_projects


def opened(machine: Machine, name: str, folder: str, *, user: str = "alice") -> Session:
    """Open a session of a server from this folder."""
    command = f"cd {folder} && exec mcpwrap-connect {name}"
    return machine.session(name, user=user, command=command)


def seen(machine: Machine, name: str, folder: str, *, user: str = "alice") -> Any:
    """Return the current folder of a server, and what it sees of the list."""
    with opened(machine, name, folder, user=user) as session:
        return session.evaluate(f"import os; result = [os.getcwd(), os.listdir('{SRC}')]")


def advice(machine: Machine, folder: str) -> str:
    """Return what `initialize` says to an agent that starts in this folder."""
    with opened(machine, "files", folder) as session:
        info = {"name": "bed", "version": "1"}
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        answer = session.answer_to(session.request("initialize", asked))
    return str(answer["result"].get("instructions", ""))


# ------------------------------------------------------------------------------ what it sees
@pytest.mark.parametrize(
    ("folder", "cwd", "project"),
    [
        ("a", "a", "a"),
        ("a/sub/deep", "a/sub/deep", "a"),  # as raw: the folder, in its repository
        ("b", "b", "b"),
        ("c", "c", "c"),  # no repository
        ("w", "w", "w"),  # a worktree: its `.git` is a file, which is not read
        ("link/sub", "a/sub", "a"),  # the agent's folder is what its path leads to
    ],
)
def test_a_session_sees_the_project_that_its_agent_is_in_and_no_sibling(
    machine: Machine, folder: str, cwd: str, project: str
) -> None:
    assert seen(machine, "rw", f"{SRC}/{folder}") == [f"{SRC}/{cwd}", [project]]


def test_what_it_makes_is_the_persons(machine: Machine) -> None:
    with opened(machine, "rw", f"{SRC}/a") as session:
        assert session.evaluate("open('made', 'w').write('x'); result = 1") == 1
        assert session.evaluate("result = open('file').read()") == "in a\n"
    assert machine.as_user("alice", "cd src/a; stat -c %U:%a made; rm made").out == "alice:644\n"
    with opened(machine, "ro", f"{SRC}/a") as session:
        assert session.evaluate("open('made', 'w')") == READ_ONLY
        assert session.evaluate("result = open('file').read()") == "in a\n"


def test_the_project_is_named_in_arguments_and_variables(machine: Machine) -> None:
    """Of the agent's variables those pass that lie in the project, by a path without `..`."""
    told = "import os, sys; result = [sys.argv[1:], {k: v for k, v in os.environ.items() if v"
    told += f".startswith('{SRC}')}}]"
    variables = {
        "CLAUDE_PROJECT_DIR": f"{SRC}/a",
        "CODEX_WORKSPACE_ROOT": f"{SRC}/b",
        "GEMINI_PROJECT_DIR": f"{SRC}/a/../b",
        "INIT_CWD": f"{SRC}/a/sub",
    }
    given = " ".join(f"{name}={value}" for name, value in variables.items())
    command = f"cd {SRC}/a/sub && exec env {given} mcpwrap-connect named"
    with machine.session("named", command=command) as session:
        args, passed = session.evaluate(told)
    assert args == [f"{SRC}/a"]
    assert passed == {
        "PWD": f"{SRC}/a/sub",
        "CLAUDE_PROJECT_DIR": f"{SRC}/a",
        "INIT_CWD": f"{SRC}/a/sub",
    }
    with pytest.raises(
        CommandFailedError, match=r"cannot start without a project: .*other is in no"
    ):
        machine.as_user("alice", "cd ~/other; mcpwrap-connect named </dev/null")


def test_a_server_has_no_namespace_of_its_own_making(machine: Machine) -> None:
    status = (
        "result = {l.split()[0]: l.split()[1] for l in open('/proc/self/status') if 'Cap' in l}"
    )
    with opened(machine, "rw", f"{SRC}/a") as session:
        none = "0" * 16
        assert set(session.evaluate(status).values()) == {none}
        for call in ("unshare -Ur true", "unshare -m true", f"umount {SRC}", f"umount {SRC}/a"):
            ran = f"import subprocess as s; result = s.run({call!r}.split(), stderr=-1).returncode"
            assert session.evaluate(ran) != 0
        for numbers in ("56, 0x10000011, 0, 0, 0, 0", "165, 0, 0, 0, 0, 0", "428, 0, 0, 0, 0, 0"):
            tried = (
                f"from tests.system.guest.sandbox_probes import called; result = called({numbers})"
            )
            assert session.evaluate(tried) == "Operation not permitted"
        assert session.evaluate("import os; result = len(os.listdir('/proc/self/fd'))") == 4


def test_nothing_of_a_sibling_is_reached_by_its_path(machine: Machine) -> None:
    before = machine.as_user("alice", "stat -c '%a %Y %s' src/b/file").out
    with opened(machine, "rw", f"{SRC}/a") as session:
        tried = session.call("project_folders", "attempts_on", f"{SRC}/b")
        assert tried == dict.fromkeys(tried, NOT_THERE)
        own = session.call("project_folders", "attempts_on", f"{SRC}/a")  # the twin
        assert own == dict.fromkeys(own, "done")
    assert machine.as_user("alice", "stat -c '%a %Y %s' src/b/file").out == before
    machine.as_user("alice", "cd src/a; mv file.x file; git checkout -q file")


def test_nothing_of_a_sibling_is_reached_through_another_process(machine: Machine) -> None:
    """Not through its session, nor through the supervisor, which sees the whole list."""
    paths = (f"root{SRC}/a/file", f"root{SRC}/b/file", "cwd/file")
    with opened(machine, "rw", f"{SRC}/a") as one, opened(machine, "rw", f"{SRC}/b") as other:
        pids = [session.evaluate("import os; result = os.getpid()") for session in (one, other)]
        supervisor = int(machine.show("mcpwrap@rw.service", "MainPID")["MainPID"])
        assert machine.look(f"cat /proc/{supervisor}/root{SRC}/b/file") == "in b\n"
        found = one.call("project_folders", "read_through", [*pids, supervisor], paths)
    assert found == [[f"root{SRC}/a/file", "cwd/file"], [], []]  # its own process is the twin


def test_where_the_list_is_not_covered_a_sibling_is_reached(machine: Machine) -> None:
    cover = "        mount_api.attach_empty_folder(listed.path)\n"
    uncovered = "        if listed.path == '':\n    " + cover
    with machine.patched(VIEW, cover, uncovered), opened(machine, "rw", f"{SRC}/a") as session:
        assert session.evaluate(f"result = open('{SRC}/b/file').read()") == "in b\n"


# ------------------------------------------------------------------------------ no project
NO_PROJECT = [
    (HOME, f'{HOME} is in no folder of `projects`: have root add "{HOME}:rw"'),
    ("/", "/ is in no folder of `projects`"),
    ("/etc", "/etc is in no folder of `projects`"),
    (f"{HOME}/other", f'{HOME}/other is in no folder of `projects`: have root add "{HOME}/other'),
    (f"{SRC}/out", f"{HOME}/other is in no folder"),  # a link in the list
    ("/home/bob/src/p", "/home/bob/src/p is in no folder"),
    (SRC, f"{SRC} has all projects in it: start the agent in one of them"),
]


@pytest.mark.parametrize(
    ("folder", "said"),
    NO_PROJECT,
    ids=[row[1].split()[0][1:].replace("/", "-") or "root" for row in NO_PROJECT],
)
def test_in_another_folder_there_is_no_project_and_the_agent_is_told(
    machine: Machine, folder: str, said: str
) -> None:
    cwd, shown = seen(machine, "rw", folder)
    assert cwd.startswith("/run/mcpwrap/rt/rw/")
    assert shown == []
    told = advice(machine, folder)
    assert f"mcpwrap: files sees no project: {said}" in told
    if "in no folder" in said:
        assert "of [mcp_servers.files.mcpwrap], and run `sudo mcpwrap apply`" in told
    assert "sees no project" not in advice(machine, f"{SRC}/a")  # the twin


def test_a_project_is_that_of_the_agents_own_account(machine: Machine) -> None:
    """Bob may read alice's folder, and may use the server; her rights are not his."""
    machine.as_root("chmod 755 /home/alice")
    assert seen(machine, "both", "/home/bob/src/p", user="bob")[0] == "/home/bob/src/p"
    assert seen(machine, "both", f"{SRC}/a")[1] == ["a"]
    cwd, shown = seen(machine, "both", f"{SRC}/a", user="bob")
    assert (cwd.startswith("/run/mcpwrap/rt/"), shown) == (True, [])
    machine.as_root(f"mkdir {SRC}/roots; chown root {SRC}/roots")
    assert seen(machine, "rw", f"{SRC}/roots")[1] == []
    machine.as_root(f"rmdir {SRC}/roots; chmod 700 /home/alice")


def test_a_forged_folder_is_refused(machine: Machine) -> None:
    found = machine.call("project_folders", "forged", "rw", pace.WAIT_S, user="alice")
    for name in ("file", "socket", "pipe", "path", "two"):
        assert found[name].startswith("!76 the agent's folder: "), name
    for name in ("none", "proc"):
        assert found[name][1] == [], name
    assert found["folder"] == [f"{SRC}/a", ["a"]]  # the twin


def test_a_folder_that_is_gone_or_mounted_over_is_no_project(machine: Machine) -> None:
    gone = f"mkdir {SRC}/gone; cd {SRC}/gone; rmdir {SRC}/gone; exec mcpwrap-connect rw"
    listing = f"import os; result = os.listdir('{SRC}')"
    with machine.session("rw", command=gone) as session:
        assert session.evaluate(listing) == []
    long = machine.call(
        "project_folders", "seen_in_long_path", "rw", f"{SRC}/c", pace.WAIT_S, user="alice"
    )
    assert long[1] == []
    machine.as_user("alice", f"rm -r {SRC}/c/d*")
    machine.as_root(f"mount -t tmpfs -o uid=$(id -u alice) none {SRC}/c")
    assert seen(machine, "rw", f"{SRC}/c")[1] == []
    machine.as_root(f"umount {SRC}/c")
    assert seen(machine, "rw", f"{SRC}/c")[1] == ["c"]  # the twin


HANGING = ("hanging_files", "seen_in_hanging", "rw", f"{SRC}/c", "alice")


def test_a_file_system_that_does_not_answer_holds_up_nobody(machine: Machine) -> None:
    """An agent passes a folder of its own FUSE file system, which then answers nothing."""
    for option in ("", "allow_other"):
        assert machine.call(*HANGING, option, pace.WAIT_S)[1] == [], option
    assert seen(machine, "rw", f"{SRC}/c")[1] == ["c"]  # the twin


@TWIN
def test_if_it_were_asked_it_would(machine: Machine) -> None:
    flags = "_EMPTY_PATH | _DONT_SYNC"
    with machine.patched("linux/mount/open_folder", flags, "_EMPTY_PATH"):
        assert machine.call(*HANGING, "allow_other", HELD_UP_S) is None


SWAP = "os.rename('{0}/a', '{0}/moved'); os.symlink('b', '{0}/a')"
FOUND = "        with lookup.found(server, wanted, workspaces) as (project, fd):\n"
CHECK = "        _walk(fds, listed, names, wanted.path)\n"


@pytest.mark.parametrize(
    ("where", "line"), [(LOOKUP, CHECK), (VIEW, FOUND)], ids=["before", "after"]
)
def test_a_folder_that_is_replaced_meanwhile_is_never_another(
    machine: Machine, where: str, line: str
) -> None:
    """Replaced by a link to its sibling before the lookup, or between lookup and mount."""
    indent = " " * (8 if where == LOOKUP else 12)
    swap = f"{indent}{SWAP.format(SRC)}\n"
    changed = swap + line if where == LOOKUP else line + swap
    with machine.patched(where, line, changed), opened(machine, "rw", f"{SRC}/a") as session:
        shown = session.evaluate(f"import os; result = os.listdir('{SRC}')")
        assert shown == ([] if where == LOOKUP else ["a"])
        if shown:
            assert session.evaluate("result = open('file').read()") == "in a\n"
    machine.as_user("alice", "cd src; rm a; mv moved a")


def test_a_folder_that_was_moved_is_shown_where_it_is(machine: Machine) -> None:
    """The agent's folder was moved, and another one has its place."""
    move = f"cd {SRC}/a; mv {SRC}/a {SRC}/moved; cp -r {SRC}/b {SRC}/a; exec mcpwrap-connect rw"
    with machine.session("rw", command=move) as session:
        assert session.evaluate(f"import os; result = os.listdir('{SRC}')") == ["moved"]
    machine.as_user("alice", "cd src; rm -rf a; mv moved a")


BENEATH = """\
        _walk(fds, listed, names, wanted.path)
        _expect_same(fds[-1], wanted)
"""
BY_PATH = """\
        fds.append(os.open(listed.path, os.O_PATH))
        fds.extend(os.open(f"{listed.path}/{name}", os.O_PATH) for name in names)
"""


@TWIN
def test_without_the_lookup_beneath_the_list_another_project_is_shown(machine: Machine) -> None:
    swap = f"        {SWAP.format(SRC)}\n"
    with (
        machine.patched(LOOKUP, BENEATH, swap + BY_PATH),
        opened(machine, "rw", f"{SRC}/a") as seen,
    ):
        assert seen.evaluate("result = open('file').read()") == "in b\n"
    machine.as_user("alice", "cd src; rm a; mv moved a")


WITHOUT = "/etc/systemd/system/mcpwrap@files.service.d/99-story.conf"


def test_where_no_namespace_can_be_made_there_is_no_project_and_no_list(machine: Machine) -> None:
    machine.write(WITHOUT, "[Service]\nRestrictNamespaces=\nRestrictNamespaces=yes\n")
    machine.as_root("systemctl daemon-reload; systemctl stop mcpwrap@files.service")
    told = advice(machine, f"{SRC}/a")
    assert "no ordinary account make user and mount namespaces: Operation not permitted" in told
    with opened(machine, "files", f"{SRC}/a") as session:
        session.initialize()
        answer = machines.call(session, "list_directory", path=HOME)
        assert machines.is_refused(answer)  # there is not even a home
    machine.as_root(f"rm {WITHOUT}; systemctl daemon-reload; systemctl stop mcpwrap@files.service")
    assert "sees no project" not in advice(machine, f"{SRC}/a")  # the twin


# ------------------------------------------------------------------------------ held names
RUN_BY_PERSON = [".git/hooks/pre-commit", ".git/config", ".envrc"]


def test_what_runs_code_is_read_only_in_each_project(machine: Machine) -> None:
    for name in ("a", "b"):
        with opened(machine, "rw", f"{SRC}/{name}") as session:
            refused = session.call("workspace_probes", "write_each", f"{SRC}/{name}", RUN_BY_PERSON)
            assert refused == dict.fromkeys(RUN_BY_PERSON, "EROFS")
            assert session.evaluate("import os; os.rename('.git', 'x')") == BUSY
            assert session.evaluate("open('file', 'a').close(); result = 1") == 1  # the twin
            session.ask("open('AGENTS.md', 'w')")
            assert "AGENTS.md has appeared, and must be read-only" in session.await_end()
        machine.as_user("alice", f"rm src/{name}/AGENTS.md")


def test_without_protection_it_is_written(machine: Machine) -> None:
    for name in ("a", "b"):
        with opened(machine, "free", f"{SRC}/{name}") as session:
            asked = (f"{SRC}/{name}", RUN_BY_PERSON)
            assert session.call("workspace_probes", "write_each", *asked) == {}
        restore = (
            "for f in .git/config .envrc .git/hooks/pre-commit; do sed -i '/# written/d' $f; done"
        )
        machine.as_user("alice", f"cd src/{name}; {restore}")


def test_the_agent_replaces_a_held_file_and_its_session_alone_ends(machine: Machine) -> None:
    with opened(machine, "rw", f"{SRC}/a") as one, opened(machine, "rw", f"{SRC}/b") as other:
        one.evaluate("result = 1")
        machine.as_user("alice", "cd src/a; git config some.key value")
        assert "a/.git/config was moved, replaced or unmounted" in one.await_end()
        assert other.evaluate("result = open('file').read()") == "in b\n"


def test_a_worktrees_repository_is_shown_only_if_it_is_listed(machine: Machine) -> None:
    status = "import subprocess as s; r = s.run(['git', 'status', '-s'], capture_output=True); "
    status += "result = r.returncode"
    for name, expected in (("rw", 128), ("linked", 0)):
        with opened(machine, name, f"{SRC}/w") as session:
            assert session.evaluate(status) == expected, name
    listing = f"import os; result = [os.listdir(p) for p in ('{SRC}', '{SRC}/a')]"
    with opened(machine, "linked", HOME) as session:  # without a project
        assert session.evaluate(listing) == [["a"], [".git"]]


def test_a_held_link_into_a_workspace_leaves_no_project(machine: Machine) -> None:
    """It would be written by a session in another project, which sees the same workspace."""
    machine.as_user("alice", "ln -s ~/other/rules src/a/AGENTS.md; touch other/rules")
    listing = f"import os; result = os.listdir('{SRC}')"
    for name, expected in (("beside", []), ("rw", ["a"])):  # the twin has no such workspace
        with opened(machine, name, f"{SRC}/a") as session:
            assert session.evaluate(listing) == expected, name
    machine.as_user("alice", "rm src/a/AGENTS.md other/rules")


def test_a_workspace_deep_in_a_project_is_there_with_it(machine: Machine) -> None:
    machine.as_user("alice", "mkdir -p src/b/.vscode/x; touch src/b/.vscode/tasks.json")
    machine.configure(
        STANDING
        + probe("deep", f'projects = ["{SRC}:rw"]', f'workspace = ["{SRC}/b/.vscode/x:rw"]')
    )
    machine.apply()
    with opened(machine, "deep", f"{SRC}/b") as session:
        names = [".vscode/x/new", ".vscode/tasks.json"]
        refused = session.call("workspace_probes", "write_each", f"{SRC}/b", names)
        assert refused == {".vscode/tasks.json": "EROFS"}
    machine.configure(STANDING)
    machine.apply()
    machine.as_user("alice", "rm -r src/b/.vscode")


def test_a_list_at_the_top_of_the_machine_is_as_any_other(machine: Machine) -> None:
    """It is an entry of the root folder, each of which has a rule of Landlock."""
    make = "mkdir /all; mount -t tmpfs none /all; mkdir -p /all/a /all/b/p; echo in a > /all/a/x"
    machine.as_root(f"{make}; chown -R alice: /all")
    inside = probe("inside", 'projects = ["/all/b:rw"]')
    machine.configure(STANDING + probe("top", 'projects = ["/all:rw"]') + inside)
    machine.apply()
    with opened(machine, "top", "/all/a") as session:
        assert session.evaluate("result = open('x').read()") == "in a\n"
        assert session.evaluate("result = open('/all/a/made', 'w').write('x')") == 1
        assert session.evaluate("import os; result = os.listdir('/all')") == ["a"]
    # A list that is elsewhere now, of which the kernel reports no event.
    with opened(machine, "inside", "/all/b/p") as session:
        assert session.evaluate("result = open('made', 'w').write('x')") == 1
    machine.as_user("alice", "cd /all; mv b old; mkdir -p b/p")
    with opened(machine, "inside", "/all/b/p") as session:
        assert session.evaluate("result = open('/all/old/p/made', 'a').write('x')") == DENIED
        assert session.evaluate("result = open('made', 'w').write('x')") == 1
    machine.configure(STANDING)
    machine.apply()
    machine.as_root("umount /all; rmdir /all")


def test_what_makes_a_folder_a_project_stays_without_protection(machine: Machine) -> None:
    """Without `.git` the next session in it would see the project around it."""
    with opened(machine, "free", f"{SRC}/b") as session:
        assert session.evaluate("import os; os.rename('.git', 'x')") == BUSY
        assert session.evaluate("import os; os.rename('sub', 'x'); os.rename('x', 'sub')") is None


def test_what_one_session_leaves_in_tmp_no_other_finds(machine: Machine) -> None:
    paths = ("/tmp/left", "/var/tmp/left", "/dev/shm/left")
    with opened(machine, "rw", f"{SRC}/a") as one, opened(machine, "rw", f"{SRC}/b") as other:
        written = f"result = [open(p, 'w').write('x') for p in {paths}]"
        assert one.evaluate(written) == [1, 1, 1]
        found = f"import os; result = [os.path.exists(p) for p in {paths}]"
        assert one.evaluate(found) == [True] * 3
        assert other.evaluate(found) == [False] * 3


def test_a_folder_with_an_odd_name_ends_its_own_session_alone(machine: Machine) -> None:
    """A vertical tab, which the kernel does not escape in mount tables."""
    with opened(machine, "rw", f"{SRC}/c") as one, opened(machine, "rw", f"{SRC}/b") as other:
        one.evaluate("result = 1")
        machine.as_user("alice", "cd src; mv c \"$(printf 'c\\vx')\"")
        assert "/c was moved, replaced or unmounted" in one.await_end()
        assert other.evaluate("result = open('file').read()") == "in b\n"
    machine.as_user("alice", "cd src; mv c* c")


def test_an_agent_that_leaves_during_the_start_leaves_nothing(machine: Machine) -> None:
    """More often than its account has inotify instances: each would be one that is lost."""
    machine.call("project_folders", "leave_at_once", "rw", 140, user="alice")
    assert seen(machine, "rw", f"{SRC}/a") == [f"{SRC}/a", ["a"]]
    supervisor = machine.show("mcpwrap@rw.service", "MainPID")["MainPID"]
    assert len(machine.as_root(f"ls /proc/{supervisor}/fd").out.split()) < 40


@only_in_test_all("another way to leave nothing than the story before")
def test_starts_that_fail_in_a_project_leave_nothing(machine: Machine) -> None:
    """The program's interpreter is gone: that shows once the project is watched."""
    machine.as_root("mkdir /opt/x; cp /bin/sh /opt/x; echo '#!/opt/x/sh' >/opt/x/run")
    machine.as_root("chmod 755 /opt/x/run")
    settings = f'[mcp_servers.x.mcpwrap]\nagents = ["alice"]\nprojects = ["{SRC}:rw"]\n'
    machine.configure(f'{STANDING}[mcp_servers.x]\ncommand = "/opt/x/run"\n{settings}')
    machine.apply()
    machine.as_root("rm /opt/x/sh")
    start = "mcpwrap-connect x </dev/null 2>&1 >/dev/null"
    times = f"for _ in $(seq 140); do {start}; done"
    told = machine.as_user("alice", f"cd src/a; {times} | sort -u").out
    assert "cannot start /opt/x/run: its interpreter /opt/x/sh does not exist" in told
    assert len(told.splitlines()) == 1
    supervisor = machine.show("mcpwrap@x.service", "MainPID")["MainPID"]
    assert len(machine.as_root(f"ls /proc/{supervisor}/fd").out.split()) < 40
    machine.configure(STANDING)
    machine.apply()
    machine.as_root("rm -r /opt/x")


# ------------------------------------------------------------------------------ other ways in
def test_a_hub_passes_the_project_on_to_its_member(machine: Machine) -> None:
    for folder, expected in ((f"{SRC}/a", "[DIR] a"), (f"{SRC}/b", "[DIR] b"), (HOME, "")):
        with opened(machine, "tools", folder) as session:
            session.initialize()
            machines.await_tools(session, "files__list_directory")
            answer = machines.call(session, "files__list_directory", path=SRC)
            assert machines.text_of(answer) == expected


def test_an_agents_url_has_the_project_that_root_named_or_none(machine: Machine) -> None:
    servers = json.loads(machine.as_user("alice", "mcpwrap status --json").out)
    listeners = next(each["http"] for each in servers if each["name"] == "files")
    url_by_name = {each["url_name"]: each["url"] for each in listeners}
    for name, expected in (("web", "[DIR] b"), ("", "")):
        arguments = {"path": SRC}
        called = {"url": url_by_name[name], "tool": "list_directory", "arguments": arguments}
        assert machine.agent("call_tool", **called) == expected
    machine.as_root("systemctl stop mcpwrap@files.service")  # its listeners keep their sessions


# ------------------------------------------------------------------------------ many sessions
# All by which processes of the server keep a mount namespace: in it, or by an open mount table.
KEPT = """
for pid in $(pgrep -u mcpw-rw); do
  find /proc/$pid/ns/mnt /proc/$pid/fd -type l -printf '%l\\n' 2>/dev/null
done | grep -E '^mnt:|/mountinfo' | sort -u | wc -l
"""
IDLE = 3  # the supervisor's, its table, and that of the process that waits for the next session


def test_sessions_in_two_projects_at_once_never_see_the_others(machine: Machine) -> None:
    """While they last each has a mount namespace and a table, and afterwards none is left."""

    def await_kept(count: int) -> None:
        pace.until(lambda: int(machine.look(KEPT)) == count)

    with opened(machine, "rw", SRC) as session:  # so that the mounts of its wrapper are there
        session.evaluate("result = 1")
    before = machine.read("/proc/1/mountinfo")
    with opened(machine, "rw", f"{SRC}/a") as one, opened(machine, "rw", f"{SRC}/b") as other:
        listing = f"import os; result = os.listdir('{SRC}')"
        assert (
            machine.call("project_folders", "seen_in_turn", "rw", ["a", "b"], 200, user="alice")
            == []
        )
        assert (one.evaluate(listing), other.evaluate(listing)) == (["a"], ["b"])
        await_kept(IDLE + 2 * 2)
    await_kept(IDLE)
    assert machine.read("/proc/1/mountinfo") == before


# ------------------------------------------------------------------------------ policy
ONLY_B = f"""
version: 1
default: block
rules:
  - {{name: not-in-a, server: rw, project: [{SRC}/a, {SRC}/a/*], tool: run, action: block}}
  - {{name: in-b, server: rw, project: {SRC}/b, tool: other, action: allow}}
  - {{name: all, server: "*", tool: run, action: allow}}
"""


def judged_in(session: Session, tool: str = "run") -> str:
    """Call a tool; return the rule that refuses the call, or "" if it reaches the server."""
    params = {"name": tool, "arguments": {"code": "result = 'ran'"}}
    answer = session.answer_to(session.request("tools/call", params))
    if answer["result"].get("told") == "ran":
        return ""
    return str(answer["result"]["content"][0]["text"]).splitlines()[0]


def test_a_rule_for_a_project_holds_there_and_in_no_other(machine: Machine) -> None:
    """A block in its project, an allow in no other; also of a policy that comes meanwhile."""
    path = "/etc/mcpwrap/policy.yaml"
    machine.write(path, ONLY_B)
    machine.as_root("systemctl reload mcpwrap-gate")
    with opened(machine, "rw", f"{SRC}/a/sub") as in_a, opened(machine, "rw", f"{SRC}/b") as in_b:
        assert "(rule not-in-a)" in judged_in(in_a)
        assert "no rule allows it" in judged_in(in_a, "other")
        assert judged_in(in_b) == judged_in(in_b, "other") == ""  # the twin
        machine.write(path, ONLY_B.replace("not-in-a", "renamed"))
        machine.as_root("systemctl reload mcpwrap-gate")
        assert "(rule renamed)" in judged_in(in_a)
        assert judged_in(in_b) == ""
    with opened(machine, "rw", f"{HOME}/other") as nowhere:
        assert judged_in(nowhere) == ""
        assert "no rule allows it" in judged_in(nowhere, "other")
    shown = machine.as_root(f"mcpwrap audit show --decision blocked --project '{SRC}/a*'").out
    by_rule = [line for line in shown.splitlines() if f"  in {SRC}/a  by " in line]
    assert [line.split("  by ")[1].split()[0] for line in by_rule] == ["not-in-a", "renamed"]
    assert len(shown.splitlines()) == 3  # and that of the default
    machine.as_root(f"rm {path}; systemctl reload mcpwrap-gate")


def test_a_list_of_sessions_names_the_projects_of_ones_own_account(machine: Machine) -> None:
    """Root is shown all; neither another account nor a control group has the path."""
    with opened(machine, "both", f"{SRC}/a") as hers, opened(machine, "rw", f"{HOME}/other") as no:
        assert hers.evaluate("result = 1") == no.evaluate("result = 1")
        with opened(machine, "both", "/home/bob/src/p", user="bob") as his:
            his.evaluate("result = 1")
            told = {
                who: json.loads(machine.as_user(who, "mcpwrap sessions --json").out)
                for who in ("alice", "bob", "root")
            }
            table = machine.as_user("alice", "mcpwrap sessions").out
            groups = machine.look("find /sys/fs/cgroup -path '*mcpwrap*' -name '*src*'")
    projects = {who: sorted(row["project"] for row in rows) for who, rows in told.items()}
    assert projects == {
        "alice": ["", "", f"{SRC}/a"],
        "bob": ["", "", "/home/bob/src/p"],
        "root": ["", f"{SRC}/a", "/home/bob/src/p"],
    }
    assert "PROJECT" in table.splitlines()[0]
    assert "/home/bob" not in table
    assert groups == ""
