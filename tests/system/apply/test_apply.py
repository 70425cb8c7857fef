"""`mcpwrap apply`: a kill at any step does no harm, and a removal revokes everything it granted."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from mcpwrap.core.names import FIRST_UID, LAST_UID
from tests.system.bed.machine import BED_AT, Machine
from tests.system.bed.session import Session
from tests.system.support import emptied, kill_at_syscall
from tests.system.support.kill_at_syscall import Call
from tests.system.support.servers import a_server
from tests.system.support.tiers import only_in_test_all

STAGE = emptied.booted
QUEUES = f"{BED_AT}/tests/system/guest/given_queues.py"

OLD = a_server("kept", 'agents = ["alice"]') + a_server("leaving", 'agents = ["mallory"]')
COMING = a_server("coming", 'agents = ["alice"]')
# `kept` is for mallory no longer, if it ever was; `leaving` is removed; `coming` is new.
NEW = f"""
[mcp_servers.kept]
command = "/usr/bin/python3"
args = ["/opt/probe.py", "changed"]
[mcp_servers.kept.mcpwrap]
agents = ["alice"]
state = true
{COMING}"""


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend the machine without a server of an earlier story."""
    emptied.empty(machine)
    return machine


@contextmanager
def account(machine: Machine, name: str, options: str = "") -> Iterator[None]:
    """Make an account besides those of servers, for the time of the block."""
    machine.as_root(f"useradd {options} {name}")
    try:
        yield
    finally:
        machine.as_root(f"userdel -f {name}; rm -rf /home/{name} /var/mail/{name}")


def told(machine: Machine, name: str, code: str) -> Any:
    """Run Python in the probe, in a session of alice."""
    with machine.session(name) as session:
        return session.evaluate(code)


def assert_nothing_is_open(seen: dict[str, Any], alice: int, mallory: int) -> None:
    """Between two configurations no account has more than one of the two grants."""
    assert set(seen["accounts"].values()) <= set(seen["refused"])
    assert seen["guests"].keys() <= seen["accounts"].keys() & set(seen["specs"])
    allowed = {"kept": [alice], "coming": [alice], "leaving": [mallory]}
    assert all(uids == allowed[name] for name, uids in seen["guests"].items())


def look(machine: Machine) -> Any:
    """Return the state, when systemd has finished its reloads."""
    machine.look("systemctl show -P Version >/dev/null")
    return machine.look_by("apply_state", "seen")


ONE = '[mcp_servers.{}]\ncommand = "/usr/bin/python3"\nargs = ["/opt/probe.py"]\n'
# The actions of a command depend on the release; how files are written and removed is our own code.
KILLED_AT = {
    "bookworm": {kill_at_syscall.FORK: 10, "rename": 8, "unlink": 4},
    "trixie": {kill_at_syscall.FORK: 10},
    "forky": {kill_at_syscall.FORK: 10},
}


def change(machine: Machine) -> list[Call]:
    """Apply NEW over OLD; return each command and change of a file of that `apply`."""
    for config in (OLD, NEW, OLD):  # so that the steps from one to the other are the same each time
        machine.configure(config)
        machine.apply()
    machine.configure(NEW)
    least = KILLED_AT[machine.suite]
    found = kill_at_syscall.without_looks(kill_at_syscall.calls(machine, "apply"))
    kills = [call for call in found if call.kind in least]
    assert Counter(call.kind for call in kills) >= Counter(least)
    assert kills[0].lines_before == 0  # so the omitted calls came before the first step
    return kills


def assert_killed_at_each_it_leaves_no_door_open(machine: Machine, kills: list[Call]) -> None:
    """Kill `apply` on its way from OLD to NEW at each of these calls, and complete it."""
    alice, mallory = machine.uid_of("alice"), machine.uid_of("mallory")
    for call in kills:
        machine.configure(OLD)
        machine.apply()
        machine.configure(NEW)
        kill_at_syscall.kill_at(machine, call, "apply")
        assert_nothing_is_open(look(machine), alice, mallory)
        machine.apply()
        seen = look(machine)
        assert seen["guests"] == {"kept": [alice], "coming": [alice]}
        assert seen["accounts"].keys() == {"kept", "coming"}
        assert set(seen["refused"]) == set(seen["accounts"].values())
        assert machine.apply() == "nothing to do\n"
    machine.as_user("alice", "mcpwrap-connect coming </dev/null")
    machine.as_user("mallory", "mcpwrap-connect coming </dev/null", status=77)


@only_in_test_all("the whole sweep; the story below has four of its kill points")
@pytest.mark.timeout(900)  # dozens of times: apply, kill, check, apply
def test_killed_anywhere_apply_leaves_no_door_open(machine: Machine) -> None:
    """strace kills root's program at each command that it starts and each file that it changes."""
    assert_killed_at_each_it_leaves_no_door_open(machine, change(machine))


def test_killed_somewhere_apply_leaves_no_door_open(machine: Machine) -> None:
    """At the first and at the last of them, and at two between."""
    kills = change(machine)
    some = [kills[(len(kills) - 1) * third // 3] for third in range(4)]
    assert_killed_at_each_it_leaves_no_door_open(machine, some)


def test_two_at_once_are_one_too_many(machine: Machine) -> None:
    machine.configure("")
    machine.apply()
    hold = "exec flock /run/mcpwrap/apply.lock sh -c 'echo held; read line'"
    with machine.session("", user="root", command=hold) as holder:
        assert holder.read_line() == "held"
        err = machine.as_root("mcpwrap apply", status=1).err
        assert "another `mcpwrap apply` or `mcpwrap secret`, or" in err
        assert "is running; nothing was changed" in err
        holder.send({})
    assert machine.apply() == "nothing to do\n"


def test_removing_a_server_removes_all_of_it(machine: Machine) -> None:
    machine.configure(NEW)
    machine.apply()
    uid = machine.uid_of("mcpw-kept")
    told(machine, "kept", "open('mine', 'w')")
    machine.configure(COMING)
    machine.apply()
    gone = (
        "getent passwd mcpw-kept",
        "getent group mcpw-kept",
        "systemctl is-active mcpwrap@kept.socket mcpwrap@kept.service",
        "systemctl is-enabled mcpwrap@kept.socket",
        "ls /var/lib/mcpwrap/servers/kept.json",
        "ls /var/lib/mcpwrap/sysusers/kept.conf",
        "ls /var/lib/mcpwrap/bin/mcp-wrapper-kept",
        "ls -d /etc/systemd/system/mcpwrap@kept.service.d",
        "ls /run/mcpwrap/sock/kept.sock",
        f"nft get element inet mcpwrap wrapped {{ {uid} }}",
    )
    for command in gone:
        assert machine.look(f"{command} >/dev/null 2>&1 && echo there || true") == "", command
    machine.as_user("alice", "mcpwrap-connect kept", status=78)
    assert machine.look("ls /var/lib/mcpwrap/state/kept") == "mine\n"  # until --purge

    machine.configure(NEW)  # it is added again: the same UID, and its own state
    machine.apply()
    assert machine.uid_of("mcpw-kept") == uid
    assert "mine" in told(machine, "kept", "import os; result = os.listdir()")

    machine.configure("")
    machine.as_root("mcpwrap apply --purge")
    assert machine.look("ls /var/lib/mcpwrap/state") == ""
    assert json.loads(machine.read("/var/lib/mcpwrap/registry.json"))["by_name"] == {}
    assert machine.apply() == "nothing to do\n"


def test_nobody_inherits_what_a_removed_server_kept(machine: Machine) -> None:
    """useradd gives the server's UID to a person; and its state was made hard to remove."""
    machine.configure(NEW)
    machine.apply()
    with machine.session("kept") as session, suppress(EOFError):  # a check may end it, once deep
        session.call("deep_tree", "make")
    uid = machine.uid_of("mcpw-kept")
    machine.configure("")
    machine.apply()
    with account(machine, "zed", f"-u {uid} -m"):
        private = "/var/lib/mcpwrap/state/kept/private"
        assert "Permission denied" in machine.as_user("zed", f"cat {private}", status=1).err
        assert machine.read(private) == "x"
        machine.configure(NEW)
        machine.apply()
        assert machine.uid_of("mcpw-kept") != uid  # zed has it
        # All of it is the new account's, though too deep to be counted before a session.
        err = machine.as_user("alice", "mcpwrap-connect kept </dev/null", status=75).err
        assert "has over 256 levels of folders" in err
        assert machine.look(f"stat -c %U {private}") == "mcpw-kept\n"
        assert machine.read(private) == "x"
        machine.configure("")
        machine.as_root("mcpwrap apply --purge")
        assert machine.look("ls /var/lib/mcpwrap/state") == ""


@only_in_test_all("second-order: a registry that would have one account too many")
def test_an_account_with_the_uid_of_a_server_is_not_taken_for_one(machine: Machine) -> None:
    machine.configure(OLD)
    machine.apply()
    with account(machine, "mcpw-dup", f"-o -u {machine.uid_of('mcpw-kept')} -M"):
        machine.as_root("mcpwrap plan; true")
        registry = json.loads(machine.read("/var/lib/mcpwrap/registry.json"))
        assert registry["by_name"].keys() == {"kept", "leaving"}
    assert machine.apply() == "nothing to do\n"


def test_a_uid_that_is_taken_is_left_alone(machine: Machine) -> None:
    """An account, and a group, at the UID of sha256: sysusers would silently pick another."""
    machine.as_root("groupadd -g 31727 crowd")
    with account(machine, "zed", "-u 31726 -m"):
        machine.configure(ONE.format("github"))  # sha256 says 31726
        machine.apply()
        assert machine.uid_of("mcpw-github") == 31728
        machine.configure(ONE.format("github") + ONE.format("x23306"))  # the same again
        machine.apply()
        assert (machine.uid_of("mcpw-github"), machine.uid_of("mcpw-x23306")) == (31728, 31729)
        ids = told(machine, "github", "import os; result = [os.getuid(), os.getgid()]")
        assert ids == [31728] * 2
        machine.as_root("rm /var/lib/mcpwrap/registry.json")  # lost: the accounts still have UIDs
        machine.apply()
        assert machine.uid_of("mcpw-github") == 31728
    machine.as_root("groupdel crowd")


def held_by(machine: Machine, ids: str) -> Session:
    """Run a process that has ids without an account."""
    command = f"exec setpriv {ids} sh -c 'echo held; read line'"
    session = machine.session("", user="root", command=command)
    assert session.read_line() == "held"
    return session


def test_a_uid_that_is_in_use_without_an_account_is_left_alone(machine: Machine) -> None:
    """At sha256's UID: processes, files, a semaphore, and subordinate ids of containers."""
    by_file = "touch /srv/left/f; chown 31728 /srv/left; chown :31729 /srv/left/f"
    machine.as_root(f"mkdir /srv/left; {by_file}; echo box:31731:1 >> /etc/subuid")
    machine.as_root("setpriv --reuid=31730 --clear-groups ipcmk -S 1")
    machine.configure(ONE.format("github"))  # sha256 says 31726
    looks = "strace -f -e trace=openat,openat2 -P /srv/left -o /tmp/looks mcpwrap apply"
    with held_by(machine, "--ruid=31726 --regid=0 --groups=31727"):
        machine.as_root(looks)
        assert "/srv/left" in machine.read("/tmp/looks")
        assert machine.uid_of("mcpw-github") == 31732
        assert machine.as_root(looks).out == "nothing to do\n"
        assert "/srv/left" not in machine.read("/tmp/looks")  # nothing new, so no search
        machine.configure("")
        machine.apply()
        machine.configure(ONE.format("github"))
        with held_by(machine, "--reuid=31732 --regid=0 --clear-groups"):
            machine.apply()
            assert machine.uid_of("mcpw-github") == 31733  # a process got its UID meanwhile
    machine.configure("")
    machine.as_root("mcpwrap apply --purge")
    machine.as_root("rm -r /srv/left /tmp/looks; sed -i /box:/d /etc/subuid; ipcrm -a")
    # The twin: an account that grants access to every UID keeps no server out.
    machine.as_user("alice", f"/usr/bin/python3 {QUEUES} {FIRST_UID} {LAST_UID + 1 - FIRST_UID}")
    assert str(LAST_UID) in machine.look("cat /proc/sysvipc/msg")
    machine.configure(ONE.format("github"))
    machine.apply()
    assert machine.uid_of("mcpw-github") == 31726
    machine.as_root("ipcrm -a")


def test_a_person_keeps_the_uid_and_the_network_that_a_server_had(machine: Machine) -> None:
    """A server is removed, useradd gives its UID to a person, and the server is added again."""
    machine.configure(ONE.format("github"))
    machine.apply()
    assert machine.uid_of("mcpw-github") == 31726
    machine.configure("")
    machine.apply()
    with account(machine, "zed", "-u 31726 -m"):
        machine.configure(ONE.format("github"))
        machine.apply()
        assert machine.uid_of("mcpw-github") == 31727
        refused = machine.look("nft list set inet mcpwrap wrapped")
        assert ("31726" in refused, "31727" in refused) == (False, True)
        machine.as_user("alice", "mcpwrap-connect github </dev/null")


def test_an_account_that_took_a_servers_place_stops_it(machine: Machine) -> None:
    machine.configure(ONE.format("github"))
    with account(machine, "mcpw-github", "-u 5000"):  # made by an administrator, with its own UID
        err = machine.as_root("mcpwrap apply", status=1).err
        assert "mcpw-github" in err
        assert "5000" in err
        machine.as_user("alice", "mcpwrap-connect github", status=78)
    machine.apply()  # the twin


def test_a_changed_server_is_restarted_and_others_are_not(machine: Machine) -> None:
    machine.configure(OLD)
    machine.apply()
    machine.as_root("systemctl start mcpwrap@kept mcpwrap@leaving")
    pids = [machine.show(f"mcpwrap@{n}", "MainPID") for n in ("kept", "leaving")]
    machine.configure(OLD.replace('["/opt/probe.py"]', '["/opt/probe.py", "new"]', 1))
    assert "restart kept if it runs" in machine.apply()
    now = [machine.show(f"mcpwrap@{n}", "MainPID") for n in ("kept", "leaving")]
    assert (now[0] != pids[0], now[1] == pids[1]) == (True, True)


def test_an_agent_that_is_taken_off_loses_its_open_session(machine: Machine) -> None:
    both = OLD.replace('agents = ["alice"]', 'agents = ["alice", "mallory"]')
    machine.configure(both)
    machine.apply()
    with machine.session("kept", user="mallory") as session:
        session.evaluate("result = 1")
        machine.configure(OLD)
        machine.apply()
        assert session.close()[0] == 70
    machine.as_user("mallory", "mcpwrap-connect kept", status=77)
    machine.as_user("alice", "mcpwrap-connect kept </dev/null")  # the twin


WRONG = """
oops = 1
[mcp_servers.bad]
command = "relative"
args = ["--token=${TOKEN}"]
inherits = ["LD_PRELOAD"]
[mcp_servers.bad.mcpwrap]
agents = []
egress = ["10.0.0.1"]
"""


def test_a_wrong_configuration_changes_nothing(machine: Machine) -> None:
    machine.configure(OLD)
    machine.apply()
    find = "find /var/lib/mcpwrap /etc/systemd -type f | xargs stat -c '%n %i %z'"
    state = machine.look(find)
    machine.configure(OLD + WRONG)
    err = machine.as_root("mcpwrap apply", status=2).err
    assert "6 problems; nothing was changed" in err
    for place in ("oops", "command", "args[0]", "inherits[0]", "agents", "egress[0]"):
        assert place in err
    assert err.count("fix: ") == 6
    assert machine.as_user("alice", "mcpwrap plan", status=2).err == err
    assert machine.look(find) == state
    machine.configure(OLD)
    assert machine.apply() == "nothing to do\n"


FOLDER = only_in_test_all("another folder, refused by the same look")


@pytest.mark.parametrize(
    ("folder", "spoil", "mode"),
    [
        ("/var/lib/mcpwrap", "chmod 777", "mode 0777"),
        pytest.param("/etc/mcpwrap/conf.d", "chmod 775", "mode 0775", marks=FOLDER),
        pytest.param("/var/lib/mcpwrap/servers", "chmod 1777", "mode 1777", marks=FOLDER),
        pytest.param("/etc/mcpwrap", "chown alice", "mode 0755, owner 1000", marks=FOLDER),
    ],
)
def test_a_folder_in_which_others_can_replace_a_file_is_refused(
    machine: Machine, folder: str, spoil: str, mode: str
) -> None:
    machine.configure(OLD)
    machine.apply()
    machine.as_root(f"mkdir -p {folder}; {spoil} {folder}")
    why = f"{folder}: accounts other than root can change its content ({mode})"
    assert why in machine.as_root("mcpwrap apply", status=2).err
    assert why in machine.as_user("alice", "mcpwrap plan", status=2).err
    if folder.startswith("/var"):  # in /etc the gate reads only the policy, and has read it
        machine.announce("mcpwrap-gate")
        assert why in machine.as_user("alice", "mcpwrap-connect kept", status=69).err
    machine.as_root(f"chown root {folder}; chmod 755 {folder}")
    machine.as_user("alice", "mcpwrap-connect kept </dev/null")  # the twin
    assert machine.apply() == "nothing to do\n"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        ("chmod 666 {}", "accounts other than root can write to it"),
        pytest.param(
            "chown alice {}",
            "accounts other than root can write to it",
            marks=only_in_test_all("refused by the same look as the row above"),
        ),
        ("mv {} /tmp/there && ln -s /tmp/there {}", "cannot be opened"),
    ],
)
def test_a_configuration_that_others_can_write_is_refused(
    machine: Machine, spoil: str, why: str
) -> None:
    file = "/etc/mcpwrap/config.toml"
    machine.configure("")
    machine.apply()
    machine.as_root(spoil.format(file, file))
    assert why in machine.as_root("mcpwrap apply", status=2).err
    machine.as_root(f"rm {file}")
    machine.configure("")
    assert machine.apply() == "nothing to do\n"
