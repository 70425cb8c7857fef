"""`mcpwrap init` on a fresh machine: from the package to a wrapped server that answers."""

import json
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.shared import pace
from tests.system.bed import installed, package
from tests.system.bed.machine import Machine
from tests.system.support import vault
from tests.system.support.tiers import on_each_release, only_in_test_all
from tests.system.wrap.people import FIRST_RUN, HOME, PASSWORD, add_alice

FILE = f"{HOME}/.claude.json"
SERVER = "/opt/mcp/pypi/bin/mcp-server-time"
ADD = f"claude mcp add --scope user time -- {SERVER} --local-timezone UTC"
ENTRY = {"type": "stdio", "command": SERVER, "args": ["--local-timezone", "UTC"], "env": {}}
INSTALL = "apt-get install -y /root/mcpwrap.deb"
STATE = (
    f"find /etc /var/lib/mcpwrap {HOME} -printf '%p %u %m %T@ %s\\n' | sort;"
    "nft list table inet mcpwrap; systemctl list-units --plain --no-legend 'mcpwrap*.socket'"
)
# For the group alone: a server without `agents` of its own.
GROUPS_OWN = f"""
[mcp_servers.shared]
command = "{SERVER}"
args = ["--local-timezone", "Europe/Rome"]
"""
ROME = ("get_current_time", {"timezone": "Europe/Rome"})
TOKEN = f"tok-{secrets.token_hex(16)}"
MORE = {**ENTRY, "args": ["--local-timezone", "Asia/Tokyo"], "env": {"API_KEY": TOKEN}}
REFUSED = 77  # sysexits.h, EX_NOPERM
YES = "mcpwrap init --for alice --yes --json"


@dataclass(frozen=True)
class FirstRun:
    """Fresh machine on which a person has typed what a first run needs."""

    machine: Machine
    commands: list[str]
    shown: str
    seconds: float


@contextmanager
def after_init(suite: str) -> Iterator[FirstRun]:
    """Boot a Debian with an agent of alice's, install the package, and run `init` at a terminal.

    From Debian 13 on alice types `sudo`, and Claude Code has written the file itself. A Debian with
    a password of root has no sudo: there root types the command.
    """
    has_sudo = suite != "bookworm"
    make = installed.bare_agents_machine if has_sudo else installed.bare_machine
    with make(suite) as machine:
        if has_sudo:
            add_alice(machine)
            machine.as_user("alice", ADD)
            shutil.copy2(package.build(suite), machine.path("/root/mcpwrap.deb"))
            commands, user = [f"sudo {INSTALL}", "sudo mcpwrap init"], "alice"
        else:
            machine.add_person("alice")
            write_entry(machine)
            commands, user = [INSTALL, "mcpwrap init --for alice"], "root"
        began = time.monotonic()
        said = [machine.typed(command, FIRST_RUN, user=user) for command in commands]
        seconds = time.monotonic() - began
        shown = "".join(text for _, text in said)
        assert [status for status, _ in said] == [0, 0], shown
        yield FirstRun(machine, commands, shown, seconds)


STAGE = after_init
EACH = on_each_release("the package of each release, and sudo in one of them")
QUIT = "\x1c"  # Ctrl-\: it ends the programs that were started at the terminal too
# Each run is killed one step later than the one before.
KILLED = [
    [(FIRST_RUN[0][0], QUIT)],
    [FIRST_RUN[0], FIRST_RUN[1], (FIRST_RUN[2][0], QUIT)],
    [*FIRST_RUN[1:4], (FIRST_RUN[4][0], QUIT)],
    [FIRST_RUN[4], (FIRST_RUN[5][0], QUIT)],
    [FIRST_RUN[4], FIRST_RUN[5], (r"\n +3/\d+  ", QUIT)],
]


def write_entry(machine: Machine) -> None:
    """Write the agent's file as the agent does."""
    text = json.dumps({"mcpServers": {"time": ENTRY}}, indent=2)
    machine.as_user("alice", f"umask 077; cat > {FILE}", stdin=text)


def entry(machine: Machine) -> object:
    """Return the entry of the server in the agent's file."""
    return json.loads(machine.read(FILE))["mcpServers"]["time"]


def state_by_step(machine: Machine, command: str = YES, *, status: int = 0) -> dict[str, str]:
    """Run `init` without a terminal; return the state of each step."""
    report = json.loads(machine.as_root(command, status=status).out)
    return {step["name"]: step["state"] for step in report["steps"]}


@EACH
def test_two_commands_from_a_fresh_machine_to_an_answer(machine: Machine, stage: FirstRun) -> None:
    print(stage.shown)
    print(f"{len(stage.commands)} commands, {stage.seconds:.1f} s: {stage.commands}")
    assert "sudo mcpwrap init" in stage.shown.split("1. Group")[0]  # apt's end
    for command in (
        "sudo usermod -aG mcpwrap alice",
        "sudo mcpwrap approvals passwd alice",
        "mcpwrap wrap --all",
    ):
        assert f"$ {command}" in stage.shown
    assert PASSWORD not in stage.shown
    found = entry(machine)
    assert isinstance(found, dict)
    assert (found["command"], found["args"]) == ("/usr/bin/mcpwrap-connect", ["time"])
    answer = machine.call_tool("time", "get_current_time", {"timezone": "UTC"})
    assert json.loads(answer)["timezone"] == "UTC"
    with machine.session("time") as session:
        session.initialize()
        assert machine.look(f"pgrep -u {machine.uid_of('mcpw-time')} -f {SERVER}")


@EACH
def test_a_second_run_has_nothing_to_do(machine: Machine) -> None:
    before = machine.look(STATE)
    status, shown = machine.typed("mcpwrap init --for alice", [], user="root")
    assert (status, "nothing to do" in shown, "[Y/n]" in shown) == (0, True, False), shown
    assert state_by_step(machine) == {
        "group": "already",
        "squid": "already",
        "approver": "already",
        "apply": "already",
        "agents": "already",
        "doctor": "skipped",
    }
    assert machine.look(STATE) == before


@only_in_test_all("mutation twin: shows that a machine without the group lets her not in")
def test_the_group_step_is_what_lets_alice_in(machine: Machine) -> None:
    machine.write("/etc/mcpwrap/conf.d/shared.toml", GROUPS_OWN)
    assert state_by_step(machine)["apply"] == "done"
    assert "Rome" in machine.call_tool("shared", *ROME)
    machine.as_root("gpasswd -d alice mcpwrap")
    refused = machine.as_user("alice", "mcpwrap-connect shared", status=REFUSED).err
    assert "may not use 'shared'" in refused
    assert state_by_step(machine)["group"] == "done"
    assert "Rome" in machine.call_tool("shared", *ROME)
    machine.as_root("rm /etc/mcpwrap/conf.d/shared.toml; mcpwrap apply")


def test_without_a_terminal_no_new_server_is_accepted(machine: Machine) -> None:
    machine.as_root("mcpwrap approvals passwd --remove alice")
    before = machine.read(FILE)
    more = json.loads(before)
    more["mcpServers"]["tokyo"] = MORE
    machine.as_user("alice", f"cat > {FILE}", stdin=json.dumps(more))
    states = state_by_step(machine)
    assert (states["approver"], states["agents"]) == ("skipped", "skipped")
    assert json.loads(machine.read(FILE)) == more
    assert machine.look("ls /etc/mcpwrap/conf.d") == "time.toml\n"
    # The twin: at a terminal a person types the password and the `yes`.
    status, shown = machine.typed(
        f"{YES} > /root/told.json", FIRST_RUN[2:4] + FIRST_RUN[5:], user="root"
    )
    assert (status, TOKEN in shown, PASSWORD in shown) == (0, False, False), shown
    states = {
        one["name"]: one["state"] for one in json.loads(machine.read("/root/told.json"))["steps"]
    }
    assert (states["approver"], states["agents"]) == ("done", "done")
    assert TOKEN not in machine.read(FILE)
    assert machine.path(vault.sealed("tokyo", "API_KEY")).exists()
    assert "Rome" in machine.call_tool("tokyo", *ROME)


@only_in_test_all("a run for each step; what a run that is not interrupted does is in make test")
def test_killed_at_any_step_the_next_run_continues(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    machine.as_root(INSTALL)
    write_entry(machine)
    command = "ulimit -c 0; exec mcpwrap init --for alice"
    for answers in KILLED:
        status, shown = machine.typed(command, answers, user="root")
        print(shown)
        assert status == -signal.SIGQUIT, shown
        pace.until(lambda: not machine.look("pgrep -u alice || true"))
        assert entry(machine) == ENTRY
    # Root has accepted the server, and its account, units and rules were not complete.
    answers = [(r"Apply it\? \[Y/n\]: ", ""), FIRST_RUN[4]]
    status, shown = machine.typed(command, answers, user="root")
    assert (status, ": alice can approve" in shown) == (0, True), shown
    assert json.loads(machine.call_tool("time", *ROME))["timezone"] == "Europe/Rome"
    assert set(state_by_step(machine).values()) == {"already", "skipped"}


@only_in_test_all("an answer of a person; the unit tests have the others")
def test_a_person_may_stop_at_any_question(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    machine.as_root(INSTALL)
    write_entry(machine)
    answers = [
        (FIRST_RUN[0][0], "n"),
        (FIRST_RUN[1][0], "n"),
        ("Enter: none", ""),
        ("Do this", "\x03"),
    ]
    status, shown = machine.typed("mcpwrap init --for alice", answers, user="root")
    assert (status, "`sudo mcpwrap init --for alice` continues" in shown) == (130, True), shown
    assert "Traceback" not in shown
    assert entry(machine) == ENTRY
    pace.until(lambda: not machine.look("pgrep -u alice || true"))
    left = ["sudo mcpwrap init --for alice", "sudo usermod -aG mcpwrap alice"]
    left += ["sudo mcpwrap approvals passwd alice", "mcpwrap wrap --all", "mcpwrap clients"]
    assert f"next: {', '.join(f'`{one}`' for one in left)}" in shown
    status, shown = machine.typed("mcpwrap approvals passwd alice", [("New", "\x03")], user="root")
    assert (status, "Traceback" in shown) == (130, False), shown


@only_in_test_all("slips at the questions of one run; the unit tests have the others")
def test_a_slip_is_asked_again_and_alice_is_not_her_own_approver(
    boot: Callable[..., Machine],
) -> None:
    machine = boot(package=False)
    machine.as_root(INSTALL)
    write_entry(machine)
    answers = [
        FIRST_RUN[0],
        (FIRST_RUN[1][0], "n"),
        ("Enter: none.*: ", "alice"),  # whom her own agents' calls would wait for in vain
        (FIRST_RUN[4][0], "n"),
    ]
    status, shown = machine.typed("mcpwrap init --for alice", answers, user="root")
    assert (status, "[E-INIT-APPROVER]" in shown) == (1, True), shown
    # A member of the group, alice is no approver of her own calls.
    machine.as_root("usermod -aG mcpwrap-approvers alice")
    answers = [
        FIRST_RUN[1],
        ("New password.*: ", "short"),
        *[("New password.*: ", PASSWORD), ("Once more: ", "another")],
        *FIRST_RUN[2:5],
        ("yes or no: ", "y"),
        ("yes or no: ", "no"),
    ]
    status, shown = machine.typed("mcpwrap init --for alice", answers, user="root")
    assert (status, PASSWORD in shown) == (1, False), shown
    assert "alice can approve with the password" in shown
    assert "open: agents: root has not accepted" in shown
    assert entry(machine) == ENTRY


@only_in_test_all("a machine whose package was installed without what it recommends")
def test_squid_is_installed_where_it_is_not_there(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    names = " ".join(machine.call("squid_packages", "repack"))
    machine.as_root(
        f"apt-get purge -y {names}; rm -rf /etc/apt/sources.list.d/*;"
        "cp /root/repo.list /etc/apt/sources.list; apt-get update; dpkg -i /root/mcpwrap.deb"
    )
    answers = [(r"Add alice to it\? .*: ", ""), (r"Install it\? \[Y/n\]: ", "n")]
    answers += [(r"Set one for alice\? .*: ", "n"), ("Enter: none.*: ", "")]
    status, shown = machine.typed("mcpwrap init --for alice", answers, user="root")
    assert (status, "open: squid: without it a server reaches no host" in shown) == (0, True), shown
    machine.as_root("test ! -e /usr/sbin/squid")
    assert state_by_step(machine)["squid"] == "done"
    machine.as_root("test -e /usr/sbin/squid")
    # mcpwrap starts instances of its own: Debian's stays off, as at an installation by apt.
    assert machine.look("systemctl is-active squid.service || true") == "inactive\n"
    assert state_by_step(machine)["squid"] == "already"
