"""An ordinary user tries a server with `mcpwrap run`: no root, no systemd, only pip."""

import json
import shlex
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.session import probe_call
from tests.system.run import trial as trials
from tests.system.run.trial import PROBE_COMMAND, RUN, WITHOUT, hold, relay, run, unit
from tests.system.support.servers import NODE_MODULES, NPM_ENV
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = trials.booted
# Beside the tests of this file a layer is made, the first time.
pytestmark = ON_ONE_RELEASE

KIND = only_in_test_all("decided by the same mechanism as a row beside it")
EVERYTHING = f"node {NODE_MODULES}/server-everything/dist/index.js"
FILESYSTEM = f"node {NODE_MODULES}/server-filesystem/dist/index.js /home/alice/notes"
TIME = "/opt/mcp/pypi/bin/mcp-server-time --local-timezone UTC"
GIT = "/opt/mcp/pypi/bin/mcp-server-git"
TARGET = "198.51.100.10"  # api.good.test


@pytest.fixture
def trial(machine: Machine) -> Iterator[Machine]:
    """Lend the machine to one story, after which no process of a session is left."""
    yield machine
    assert machine.look_by("outliving", "await_end_of_all", "alice", pace.WAIT_S) == []


def asked(machine: Machine, code: str, options: str = "", *, before: str = "") -> Any:
    """Return the result of the probe, as a server."""
    with hold(machine, options, before=before) as session:
        return session.evaluate(code)


# ---------------------------------------------------------------------------- operation


def test_the_handshake_era_works_whole(trial: Machine) -> None:
    argv = [*RUN.split(), "--", *EVERYTHING.split()]
    seen = trial.agent("handshake_tour", command=argv[0], args=argv[1:])
    assert seen["version"] == "2025-11-25"
    assert seen["echo"] == "Echo: hello"
    assert seen["progress"] == [[1, 3], [2, 3], [3, 3]]
    assert "say something" in seen["sampled"]
    assert "file:///home/alice" in seen["roots"]


def test_the_stateless_era_works(trial: Machine) -> None:
    argv = [*RUN.split(), *TIME.split()]  # `--` may be left out
    seen = trial.agent("stateless_tour", command=argv[0], args=argv[1:])
    assert seen["version"] == "2026-07-28"
    assert "21:00" in seen["noon"]


@pytest.mark.parametrize(
    ("options", "may_write"),
    [pytest.param("--read ~/notes", False, marks=KIND), ("--write ~/notes", True)],
)
def test_a_filesystem_server_has_the_folders_that_were_given(
    trial: Machine,
    options: str,
    may_write: bool,  # noqa: FBT001
) -> None:
    argv = shlex.split(f"{RUN} {options} -- {FILESYSTEM}".replace("~", "/home/alice"))
    how: dict[str, Any] = {"command": argv[0], "args": argv[1:]}
    read = {"path": "/home/alice/notes/n"}
    assert "KEY" in trial.agent("call_tool", tool="read_text_file", arguments=read, **how)
    write = {"path": "/home/alice/notes/new", "content": "x"}
    said = trial.agent("call_tool", tool="write_file", arguments=write, **how)
    assert ("Successfully" in said) == may_write
    assert ("new" in trial.look("ls /home/alice/notes")) == may_write
    trial.as_root("rm -f /home/alice/notes/new")


def test_a_filesystem_server_finds_no_folder_that_was_not_given(trial: Machine) -> None:
    err = run(trial, f"-- {FILESYSTEM}", status=1).err
    assert "Cannot access directory /home/alice/notes" in err
    assert "it had no network (`--network`), only some of your files (`--read`, `--write`)" in err


@only_in_test_all("second-order: one more server, with what the stories above have shown")
def test_a_git_server_reads_the_working_folder(trial: Machine) -> None:
    trial.as_user("alice", "cd project && git init -q . && echo x > untracked")
    argv = shlex.split(f"{RUN} -- {GIT}")
    shell = ["-c", f"cd ~/project && exec {shlex.join(argv)}"]
    how: dict[str, Any] = {"command": "/bin/sh", "args": shell}
    arguments = {"repo_path": "/home/alice/project"}
    said = trial.agent("call_tool", tool="git_status", arguments=arguments, **how)
    assert "untracked" in said
    trial.as_root("rm -r /home/alice/project/.git /home/alice/project/untracked")


def test_the_inspector_works(trial: Machine) -> None:
    inspect = "npx @modelcontextprotocol/inspector --cli"
    wrapped = f"{RUN} -- {EVERYTHING}"
    found = trial.as_user(
        "alice",
        f"cd /opt/trial && PATH=/opt/trial/bin:$PATH {inspect} {wrapped} --method tools/list",
    )
    tools = json.loads(found.out)["tools"]
    assert {"echo", "get-sum"} <= {tool["name"] for tool in tools}


def test_what_was_downloaded_once_is_there_without_a_network(trial: Machine) -> None:
    settings = shlex.join(f"{name}={value}" for name, value in NPM_ENV.items())
    command = f"-- env {settings} npx -y bed-echo"
    done = run(trial, command, status=1)
    assert "ended before it answered; it had no network (`--network`)" in done.err
    run(trial, f"--network {command}")
    run(trial, command)
    trial.as_root("rm -r /home/alice/.local/state/mcpwrap/home/bed-echo")


# ---------------------------------------------------------------------------- confinement


def test_it_reads_nothing_of_a_home(trial: Machine) -> None:
    read = "result = open('/home/alice/.ssh/id').read()"
    assert asked(trial, read) == "OSError 2"
    assert asked(trial, read, "--read ~/.ssh") == "KEY\n"
    lists = "import os; result = os.listdir('/home/alice')"
    assert asked(trial, lists) == "OSError 13"


@pytest.mark.parametrize(
    "what",
    [
        "os.chmod(path, 0o644)",
        *(pytest.param(what, marks=KIND) for what in ("os.utime(path)", "os.truncate(path, 0)")),
    ],
)
def test_it_changes_nothing_of_a_home(trial: Machine, what: str) -> None:
    """Not even what Landlock does not control."""
    code = f"import os; path = '/home/alice/.ssh/id'; {what}; result = 'changed'"
    assert asked(trial, code) == "OSError 2"
    assert asked(trial, code, "--read ~/.ssh") == "OSError 30"
    assert trial.read("/home/alice/.ssh/id") == "KEY\n"
    code = code.replace(".ssh/id", "notes/n").replace("(path, 0)", "(path, 4)")
    assert asked(trial, code, "--write ~/notes") == "changed"


HIDDEN = [
    *("/home/alice/.ssh", "/home/alice/.ssh/id", "/home/alice/venv", "/home/alice/.bashrc"),
    *("/root", "/run", "/var/log", "/dev/shm"),  # nothing is made there
]


def test_it_learns_no_name_size_or_time_of_a_home(trial: Machine) -> None:
    """Landlock controls neither stat(2) nor inotify(7)."""
    ways = ["/", "/home/alice", "/tmp"]  # on the way to its own: empty folders otherwise
    make = "echo KEY > .ssh/id; touch .new; mkdir .made; touch /tmp/new-of-alice; echo x > notes/x"
    with hold(trial, "--read ~/notes") as session:
        watched = session.call("file_events", "watch", [*HIDDEN, *ways, "/home/alice/notes"])
        assert watched == dict.fromkeys(HIDDEN, 2) | dict.fromkeys([*ways, "/home/alice/notes"], 0)
        trial.as_user("alice", make)
        assert set(session.call("file_events", "names_until", "x")) == {"x"}
        sizes = session.call("file_events", "sizes", [*HIDDEN, "/home/alice/notes/n"])
        assert sizes == dict.fromkeys(HIDDEN, -2) | {"/home/alice/notes/n": 4}
        mounts = session.evaluate("result = open('/proc/self/mountinfo').read()")
    assert "/home/alice/notes" in mounts
    assert not [path for path in HIDDEN if path in mounts]
    trial.as_user("alice", "rm -r .new .made /tmp/new-of-alice notes/x")


def test_it_makes_nobody_wait_who_writes(trial: Machine) -> None:
    code = "import fcntl; fcntl.fcntl(open('/home/alice/notes/n'), fcntl.{}, 0); result = 'taken'"
    assert asked(trial, code.format("F_SETLEASE"), "--read ~/notes") == "OSError 1"
    assert asked(trial, code.format("F_GETLEASE"), "--read ~/notes") == "taken"  # the twin


def test_it_has_nothing_by_a_link_that_it_made(trial: Machine) -> None:
    code = "import os; os.symlink('/home/alice/.ssh', '/home/alice/notes/way'); result = 'made'"
    assert asked(trial, code, "--write ~/notes") == "made"
    for option in ("--read", "--write"):
        refused = run(trial, f"--write ~/notes {option} ~/notes/way -- true", status=2)
        assert "/home/alice/notes/way: leads out of a folder that the server may" in refused.err
    trial.as_user("alice", "ln -sfn . notes/way")  # the twin: files that it may write in any case
    read = "result = open('/home/alice/notes/way/n').read()"
    assert asked(trial, read, "--write ~/notes --read ~/notes/way") == "KEY\n"
    trial.as_user("alice", "rm notes/way")


@only_in_test_all("second-order: a home that is not where homes are")
def test_it_reads_nothing_of_a_home_among_programs(trial: Machine) -> None:
    trial.as_root("install -d -o alice -g alice -m 700 /opt/people/alice; echo x > /opt/people/x")
    trial.as_user("alice", "echo KEY > /opt/people/alice/key")
    home = "export HOME=/opt/people/alice;"
    assert asked(trial, "result = open('/opt/people/alice/key').read()", before=home) == "OSError 2"
    assert asked(trial, "result = open('/opt/people/x').read()", before=home) == "x\n"  # the twin
    trial.as_root("rm -r /opt/people")


@pytest.mark.parametrize(
    ("options", "code", "found"),
    [
        ("--read ~/link", "result = open('/home/alice/link/n').read()", "KEY\n"),
        ("--write ~/notes", "result = open('/home/alice/link/n').read()", "OSError 2"),
        ("--read ~/notes --write ~/notes/sub", "open('/home/alice/notes/sub/n', 'w')", None),
        ("--read ~/notes --write ~/notes/sub", "open('/home/alice/notes/n', 'w')", "OSError 30"),
        ("--write ~/notes --read ~/notes/sub", "open('/home/alice/notes/sub/n', 'w')", None),
        ("--write ~/notes/n", "open('/home/alice/notes/n', 'w').write('KEY\\n')", None),
        ("--write ~/notes/n", "open('/home/alice/notes/new', 'w')", "OSError 30"),
        # Mounts below it come with it.
        ("--read ~/disk", "import os; result = os.listdir('/home/alice/disk/d')", ["f"]),
        ("--write ~/disk", "open('/home/alice/disk/d/f', 'w')", None),
        ("--write ~", "open('/home/alice/made', 'w')", None),
        ("--write ~", "result = open('/home/alice/.ssh/id').read()", "KEY\n"),
        ("--read /", "result = open('/home/alice/.ssh/id').read()", "KEY\n"),
        ("--read /", "open('/home/alice/made', 'w')", "OSError 30"),
    ],
)
@only_in_test_all("second-order: one more way to name what is there")
def test_what_was_given_is_there_under_its_names(
    trial: Machine, options: str, code: str, found: object
) -> None:
    mount = "mkdir -p disk/d notes/sub; ln -s notes link; chown alice disk notes/sub"
    trial.as_root(f"cd /home/alice && {mount} && mount -t tmpfs -o mode=0777 none disk/d")
    trial.as_root("touch /home/alice/disk/d/f && chmod 666 /home/alice/disk/d/f")
    try:
        assert asked(trial, code, options) == found
    finally:
        trial.as_root("cd /home/alice && umount disk/d && rm -rf disk notes/sub link made")


@only_in_test_all("second-order: agents start it in a home")
def test_a_working_folder_that_is_a_home_is_empty(trial: Machine) -> None:
    code = "import os; result = [os.getcwd(), os.path.lexists('.ssh'), os.path.lexists('notes')]"
    assert asked(trial, code, before="cd /home/alice;") == ["/home/alice", False, False]
    given = asked(trial, code, "--read notes", before="cd /home/alice;")
    assert given == ["/home/alice", False, True]


@only_in_test_all("second-order: a program that links lead to, as node's and Python's versions are")
def test_a_program_behind_links_is_started(trial: Machine) -> None:
    make = "mkdir -p apps/1/bin && ln -s 1 apps/now && ln -s ../apps/now/bin .bin/apps"
    tell = "import os, sys; print(os.path.lexists('/home/alice/.ssh'), file=sys.stderr)"
    trial.as_user("alice", f"mkdir .bin && {make} && ln -s /usr/bin/python3 apps/1/bin/python")
    trial.write("/home/alice/apps/1/bin/tool", f"#!/home/alice/.bin/apps/python\n{tell}\n")
    trial.as_root("chmod 755 /home/alice/apps/1/bin/tool")
    for name in ("~/.bin/apps/tool", "~/apps/now/bin/tool", "tool"):
        command = f"PATH=/home/alice/.bin/apps:$PATH {RUN} -- {name}"
        assert "False\n" in trial.as_root(unit(f"{command} < /dev/null")).err
    trial.as_root("rm -r /home/alice/.bin /home/alice/apps")


def test_the_working_folder_is_there_to_be_read(trial: Machine) -> None:
    lists = "import os; result = os.listdir('.')"
    write = "import os; open('made', 'w'); os.remove('made'); result = 'written'"
    assert asked(trial, lists) == []
    assert asked(trial, write) == "OSError 30"
    assert asked(trial, write, "--write .") == "written"


def test_its_own_home_lasts_and_its_temporary_folder_does_not(trial: Machine) -> None:
    write = "import os; [open(os.environ[n] + '/x', 'x') for n in ('HOME', 'TMPDIR')]; result = 1"
    there = "import os; result = [os.listdir(os.environ[n]) for n in ('HOME', 'TMPDIR')]"
    assert asked(trial, write) == 1
    assert asked(trial, there) == [["x"], []]
    assert asked(trial, there, "--name other") == [[], []]  # another server's is another
    trial.as_root("rm /home/alice/.local/state/mcpwrap/home/probe/x")
    assert trial.look("ls /tmp | grep mcpwrap || true") == ""


def test_it_makes_no_setuid_program(trial: Machine) -> None:
    """It would be alice's, for every agent that starts it, and outlive the session."""
    with hold(trial) as session:
        tmp = session.evaluate("import os; result = os.environ['TMPDIR']")
        found = session.call("setuid_ways", "tried", tmp)
    assert len(found) == 11
    if found["fchmodat2"][2] == 38:  # ENOSYS: the kernel is older than the call (6.6)
        found["fchmodat2"][2] = 0
    assert all(answers == [1, 1, 0] for answers in found.values()), found


def test_nothing_is_left_of_what_cannot_be_listed(trial: Machine) -> None:
    with hold(trial) as session:
        tmp = session.evaluate("import os; result = os.environ['TMPDIR']")
        assert session.call("hidden", "hide", tmp) == tmp
        assert tmp.startswith("/tmp/mcpwrap-")
        trial.look(f"test -e {tmp}/d/e/x")
        # By a shell: setpriv(1) itself still has root's capabilities when it searches for a
        # program.
        others = f"setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c {tmp}/d/e/x"
        assert "Permission denied" in trial.look(f"{others} 2>&1 || true")
    assert trial.look("ls /tmp | grep mcpwrap || true") == ""
    above = "/home/alice/.local/state/mcpwrap /home/alice/.local/state/mcpwrap/home"
    assert trial.look(f"stat -c %a {above}").split() == ["700", "700"]


CONNECT = "import socket; socket.create_connection(('{}', 80), {}); result = 'reached'"
TCP = pytest.param(CONNECT.format(TARGET, pace.WAIT_S), id=CONNECT.format(TARGET, 5))
UDP = f"import socket; s = socket.socket(type=2); s.connect(('{TARGET}', 53)); result = 'sent'"
NAME = "import socket; result = socket.gethostbyname('api.good.test')"
LOCAL = "import socket; socket.socket(socket.AF_UNIX).connect('/run/dbus/system_bus_socket')"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        pytest.param(*TCP.values, "reached", id=f"{TCP.id}-reached"),
        pytest.param(UDP, "sent", marks=KIND),
        (NAME, TARGET),
    ],
)
def test_it_has_no_network_until_it_is_given(trial: Machine, code: str, found: str) -> None:
    assert str(asked(trial, code)).startswith("OSError")
    assert asked(trial, code, "--network") == found


def test_it_speaks_to_no_service_of_the_machine(trial: Machine) -> None:
    assert asked(trial, LOCAL) == "OSError 97"
    assert asked(trial, LOCAL, "--network") == "OSError 97"
    trial.as_user("alice", f"python3 -c {shlex.quote(LOCAL)}")  # it is there, and answers


ENVIRONMENT = "import os; result = dict(os.environ)"


def test_it_has_the_listed_variables_and_no_others(trial: Machine) -> None:
    canary = "export TOKEN=canary-1 OTHER=canary-2 PYTHONPATH=/canary-3;"
    found = asked(trial, ENVIRONMENT, "--inherit TOKEN", before=canary)
    assert found.pop("TOKEN") == "canary-1"
    assert "canary" not in str(found)
    assert found.keys() == {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG"),
        *("npm_config_update_notifier", "npm_config_offline", "UV_OFFLINE"),
    }
    assert "canary" not in str(asked(trial, ENVIRONMENT, before=canary))


def test_a_variable_that_decides_what_runs_is_refused(trial: Machine) -> None:
    done = run(trial, f"--inherit LD_PRELOAD -- {PROBE_COMMAND}", status=2)
    assert "--inherit LD_PRELOAD: LD_PRELOAD decides which code runs" in done.err


def test_it_ends_nothing_but_its_own(trial: Machine) -> None:
    """No other process has a PID there, and the process that started it must not be signalled."""
    kill = "import os; os.kill({0}, 9)"
    with hold(trial) as session:
        assert session.evaluate("import os; result = [os.getpid(), os.getppid()]") == [2, 1]
        assert session.evaluate(kill.format("os.getppid()")) == "OSError 1"
        assert session.evaluate(kill.format(relay(trial))) == "OSError 3"
        assert session.evaluate("import os; os.kill(os.getpid(), 0); result = 'may'") == "may"


# ---------------------------------------------------------------------------- a missing layer

LAYERS = [layer for layer in WITHOUT if layer]
FREED = {  # what only this layer refuses
    "user namespaces": "import os; os.chmod('/home/alice/notes/n', 0o644); result = 'may'",
    "Landlock": "import os; os.kill(1, 0); result = 'may'",
    "seccomp": "import socket; socket.socket(socket.AF_UNIX); result = 'may'",
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_missing_layer_is_an_error(trial: Machine, layer: str) -> None:
    done = run(trial, f"-- {PROBE_COMMAND}", without=layer, status=69)
    assert f"{layer}: not available on this machine: " in done.err
    fix = "with `--allow-degraded` it starts nevertheless, but "
    assert f"nothing was started [E-RUN-MISSING-LAYER]\n  fix: {fix}" in done.err


@pytest.mark.parametrize(
    "layer", ["user namespaces", *(pytest.param(layer, marks=KIND) for layer in LAYERS[1:])]
)
def test_it_is_done_without_where_it_may_be(trial: Machine, layer: str) -> None:
    """The same probe is refused with the layer, so it is this layer that refuses."""
    call = json.dumps({"id": 1, "params": {"arguments": {"code": FREED[layer]}}})
    script = f"printf '%s\\n' {shlex.quote(call)} | {PROBE_COMMAND} >&2"
    command = f"--allow-degraded -- sh -c {shlex.quote(script)}"
    done = run(trial, command, without=layer)
    assert f"mcpwrap run: without {layer} (" in done.err
    assert '"told": "may"' in done.err
    assert '"told": "OSError' in run(trial, command).err


@only_in_test_all("mutation twin: shows that the story of setuid notices a missing filter")
def test_without_the_filter_a_program_can_be_made_setuid(trial: Machine) -> None:
    """So it is the filter that refuses."""
    code = "import os; p = os.environ['TMPDIR'] + '/x'; open(p, 'x'); os.chmod(p, 0o4755)"
    call = json.dumps(probe_call(f"{code}; result = oct(os.stat(p).st_mode)"))
    script = f"printf '%s\\n' {shlex.quote(call)} | {PROBE_COMMAND} >&2"
    command = f"--allow-degraded -- sh -c {shlex.quote(script)}"
    assert '"told": "0o104755"' in run(trial, command, without="seccomp").err
    assert '"told": "OSError 1"' in run(trial, command).err


@pytest.mark.parametrize(
    "code",
    [
        "open('/home/alice/.ssh/id')",
        pytest.param("open('made', 'w')", marks=KIND),
        pytest.param(*TCP.values, id=TCP.id, marks=KIND),
    ],
)
def test_without_namespaces_the_rest_holds(trial: Machine, code: str) -> None:
    layer = "user namespaces"
    with hold(trial, "--allow-degraded", without=layer) as session:
        assert str(session.evaluate(code)).startswith("OSError")
        assert session.evaluate("import os; os.kill(os.getppid(), 0)") == "OSError 1"
    with hold(trial, "--allow-degraded --network --read ~/.ssh --write .", without=layer) as it:
        assert not str(it.evaluate(code)).startswith("OSError")
    trial.as_root("rm -f /home/alice/project/made")


# ---------------------------------------------------------------------------- policy


def test_rules_hold_where_the_user_keeps_them(trial: Machine) -> None:
    rule = "{name: no-run, server: probe, tool: run, action: block, message: Not that.}"
    trial.as_user("alice", f"mkdir -p .config/mcpwrap; echo 'version: 1\nrules: [{rule}]' > p.yaml")
    with hold(trial) as session:
        assert session.evaluate("result = 1") == 1
    for place, options in ((".config/mcpwrap/policy.yaml", ""), ("p.yaml", "--policy ~/p.yaml")):
        trial.as_user("alice", f"mv p.yaml {place} 2>/dev/null || cp .config/mcpwrap/* {place}")
        with hold(trial, options) as session:
            session.ask("result = 1")
            assert "Refused by mcpwrap (rule no-run). Not that." in session.read_line()
            assert "blocked" in session.close()[1]
        with hold(trial, f"{options} --name other") as session:
            assert session.evaluate("result = 1") == 1
    trial.as_user("alice", "rm p.yaml .config/mcpwrap/policy.yaml")


def test_limits_hold(trial: Machine) -> None:
    trial.as_user("alice", "echo 'version: 1\nlimits: {calls: 2/min}' > p.yaml")
    with hold(trial, "--policy ~/p.yaml") as session:
        assert [session.evaluate("result = 1") for _ in range(2)] == [1, 1]
        session.ask("result = 1")
        assert "2 calls in 60 s" in session.read_line()


# ---------------------------------------------------------------------------- end


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("import os; os._exit(0)", 0, marks=KIND),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),
        pytest.param("import os; os.abort()", 134, marks=KIND),
    ],
)
def test_it_exits_as_the_server_did(trial: Machine, code: str, status: int) -> None:
    with hold(trial) as session:
        session.ask(code)
        found, err = session.close()
    assert found == status
    assert ("was ended by signal" in err) == (status > 128)


@only_in_test_all("second-order: an agent that starts it without standard streams")
def test_streams_that_are_closed_are_nobody_elses(trial: Machine) -> None:
    """Descriptors that are opened next would have their numbers."""
    say = shlex.quote("echo told >&2; echo not a message")
    trial.as_root(unit(f"exec {RUN} -- sh -c {say} <&- >&- 2>&-"))
    assert "told" in trial.as_root(unit(f"exec {RUN} -- sh -c {say} <&- >&-")).err


HEEDS = "import signal, sys; signal.signal({0}, lambda *_: sys.exit(40 + {0})); result = 1"


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=KIND), signal.SIGTERM],
)
def test_signals_are_the_servers(trial: Machine, number: int) -> None:
    for code, status in ((HEEDS.format(int(number)), 40 + number), (DEAF, 128 + number)):
        with hold(trial) as session:
            session.evaluate(code)
            trial.as_root(f"kill -{int(number)} {relay(trial)}")
            session.process.wait(pace.WAIT_S)
            assert session.close()[0] == status


DEAF = "import signal; [signal.signal(n, signal.SIG_DFL) for n in (1, 2, 15)]; result = 1"
DAEMON = "from tests.system.guest import outliving; result = outliving.become_daemon()"


@pytest.mark.parametrize(
    ("way", "without"),
    [
        ("killed", ""),
        ("killed", "user namespaces"),
        ("ended", ""),
        pytest.param("ended", "user namespaces", marks=KIND),
        ("left", ""),
        pytest.param("left", "user namespaces", marks=KIND),
    ],
)
def test_however_it_ends_nothing_is_left(trial: Machine, way: str, without: str) -> None:
    """Daemons end too: the fixture checks."""
    options = "--allow-degraded" if without else ""
    if way == "left":
        argv = f"{RUN} {options} {PROBE_COMMAND}".split()
        leave = trial.guest_command("outliving", "leave", json.dumps(probe_call(DAEMON)), argv)
        trial.as_root(unit(leave, WITHOUT[without][0]))
        return
    with hold(trial, options, without=without) as session:
        session.evaluate(DAEMON)
        assert int(trial.look("pgrep -c -u alice -f ^/usr/bin/python3")) == 2
        if way == "killed":
            trial.as_root(f"kill -KILL {relay(trial)}")
        else:
            session.ask("import os; os._exit(3)")
        session.process.wait(pace.WAIT_S)
        assert session.close()[0] == (255 if way == "killed" else 3)  # systemd-run, of a signal
