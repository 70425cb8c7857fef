"""`mcpwrap apply`: breaks off anywhere without harm, and takes back all that it gave."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.system import killing
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import probe_call

OLD = """
[mcp_servers.kept]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.kept.mcpwrap]
agents = ["alice"]

[mcp_servers.leaving]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.leaving.mcpwrap]
agents = ["mallory"]
"""
# `kept` is for mallory no longer, if it ever was; `leaving` goes; `coming` is new.
NEW = """
[mcp_servers.kept]
command = "/usr/bin/python3"
args = ["/opt/probe.py", "changed"]
[mcp_servers.kept.mcpwrap]
agents = ["alice"]
state = true

[mcp_servers.coming]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.coming.mcpwrap]
agents = ["alice"]
"""
DEEP_TREE = """
import os
open('private', 'w').write('x')
for _ in range(2000):
    os.mkdir('d'); os.chdir('d')
"""
LOOK = """
import json, os, pwd, re
def read(path):
    return json.load(open(path)) if os.path.exists(path) else {}
text = os.popen("nft -n list set inet mcpwrap wrapped").read()
guests = read("/var/lib/mcpwrap/gate.json").get("by_server", {})
print(json.dumps({
    "accounts": {e.pw_name[5:]: e.pw_uid for e in pwd.getpwall() if e.pw_name.startswith("mcpw-")},
    "refused": [int(n) for n in re.findall(r"\\\\b[23][0-9]{4}\\\\b", text)],
    "guests": {name: guest["uids"] for name, guest in guests.items()},
    "specs": [f[:-5] for f in os.listdir("/var/lib/mcpwrap/servers") if f.endswith(".json")],
}))
""".replace("\\\\", "\\")


def told(machine: Machine, name: str, code: str) -> Any:
    """Run Python in the probe, in a session of alice's."""
    call = json.dumps(probe_call(code))
    done = machine.as_user("alice", f"mcpwrap-connect {name}", stdin=f"{call}\n")
    return json.loads(done.out)["result"]["told"]


def assert_nothing_is_open(seen: dict[str, Any], alice: int, mallory: int) -> None:
    """Between two configurations nobody has more than one of the two gives."""
    assert set(seen["accounts"].values()) <= set(seen["refused"])
    assert seen["guests"].keys() <= seen["accounts"].keys() & set(seen["specs"])
    allowed = {"kept": [alice], "coming": [alice], "leaving": [mallory]}
    assert all(uids == allowed[name] for name, uids in seen["guests"].items())


def look(machine: Machine) -> Any:
    """Return what is there.

    What was killed may have left a daemon-reload at work, in which systemd forgets whoever waits
    for a command: then the question is asked again.
    """
    try:
        return machine.probe(LOOK)
    except CommandFailedError:
        return machine.probe(LOOK)


# What a command does is the release's affair; how files are written and removed is ours.
KILLED_AT = {"bookworm": {killing.FORK: 10, "rename": 8, "unlink": 4}, "trixie": {killing.FORK: 10}}


@pytest.mark.timeout(900)  # dozens of times: apply, kill, look, apply
def test_killed_anywhere_apply_leaves_no_door_open(boot: Callable[..., Machine]) -> None:
    """strace kills root's program at each command that it starts and each file that it changes."""
    machine = boot()
    alice, mallory = machine.uid_of("alice"), machine.add_person("mallory")
    for config in (OLD, NEW, OLD):  # so that the way from one to the other is the same each time
        machine.configure(config)
        machine.apply()
    machine.configure(NEW)
    least = KILLED_AT[machine.suite]
    found = killing.without_looks(killing.calls(machine, "apply"))
    kills = [call for call in found if call.kind in least]
    assert Counter(call.kind for call in kills) >= Counter(least)
    for call in kills:
        machine.configure(OLD)
        machine.apply()
        machine.configure(NEW)
        killing.kill_at(machine, call, "apply")
        assert_nothing_is_open(look(machine), alice, mallory)
        machine.apply()
        seen = look(machine)
        assert seen["guests"] == {"kept": [alice], "coming": [alice]}
        assert seen["accounts"].keys() == {"kept", "coming"}
        assert set(seen["refused"]) == set(seen["accounts"].values())
        assert machine.apply() == "nothing to do\n"
    assert kills[0].lines_before == 0  # so what was left out came before the first step
    machine.as_user("alice", "mcpwrap-connect coming </dev/null")
    machine.as_user("mallory", "mcpwrap-connect coming </dev/null", status=77)


def test_two_at_once_are_one_too_many(machine: Machine) -> None:
    hold = "exec flock /run/mcpwrap/apply.lock sh -c 'echo held; read line'"
    with machine.session("", user="root", command=hold) as holder:
        assert holder.read_line() == "held"
        err = machine.as_root("mcpwrap apply", status=1).err
        assert "another `mcpwrap apply` or `mcpwrap secret` is at work; nothing was changed" in err
        holder.send({})
    assert machine.apply() == "nothing to do\n"


def test_removing_a_server_removes_all_of_it(boot: Callable[..., Machine]) -> None:
    machine = boot()
    machine.configure(NEW)
    machine.apply()
    uid = machine.uid_of("mcpw-kept")
    told(machine, "kept", "open('mine', 'w')")
    machine.configure(
        OLD.partition("[mcp_servers.kept]")[0] + NEW[NEW.index("[mcp_servers.coming]") :]
    )
    machine.apply()
    for command in (
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
    ):
        assert machine.as_root(f"{command} >/dev/null 2>&1 && echo there || true").out == "", (
            command
        )
    machine.as_user("alice", "mcpwrap-connect kept", status=78)
    assert machine.as_root("ls /var/lib/mcpwrap/state/kept").out == "mine\n"  # until --purge

    machine.configure(NEW)  # it comes back: the same UID, and its own state
    machine.apply()
    assert machine.uid_of("mcpw-kept") == uid
    assert "mine" in told(machine, "kept", "import os; result = os.listdir()")

    machine.configure("")
    machine.as_root("mcpwrap apply --purge")
    assert machine.as_root("ls /var/lib/mcpwrap/state").out == ""
    assert json.loads(machine.read("/var/lib/mcpwrap/registry.json"))["by_name"] == {}
    assert machine.apply() == "nothing to do\n"


def test_nobody_inherits_what_a_removed_server_kept(boot: Callable[..., Machine]) -> None:
    """useradd gives the server's UID to a person; and its state was made hard to remove."""
    machine = boot()
    machine.configure(NEW)
    machine.apply()
    told(machine, "kept", DEEP_TREE)
    uid = machine.uid_of("mcpw-kept")
    machine.configure("")
    machine.apply()
    machine.as_root(f"useradd -u {uid} -m zed")
    refused = machine.as_user("zed", "cat /var/lib/mcpwrap/state/kept/private", status=1)
    assert "Permission denied" in refused.err
    assert machine.as_root("cat /var/lib/mcpwrap/state/kept/private").out == "x"
    machine.configure(NEW)
    machine.apply()
    assert machine.uid_of("mcpw-kept") != uid  # zed has it
    assert told(machine, "kept", "result = open('private').read()") == "x"
    machine.configure("")
    machine.as_root("mcpwrap apply --purge")
    assert machine.as_root("ls /var/lib/mcpwrap/state").out == ""


def test_an_account_with_the_uid_of_a_server_is_not_taken_for_one(
    boot: Callable[..., Machine],
) -> None:
    machine = boot()
    machine.add_person("mallory")
    machine.configure(OLD)
    machine.apply()
    machine.as_root("useradd -o -u $(id -u mcpw-kept) -M mcpw-dup")
    machine.as_root("mcpwrap plan; true")
    registry = json.loads(machine.read("/var/lib/mcpwrap/registry.json"))
    assert registry["by_name"].keys() == {"kept", "leaving"}
    machine.as_root("userdel mcpw-dup")
    assert machine.apply() == "nothing to do\n"


def test_a_uid_that_is_taken_is_left_alone(boot: Callable[..., Machine]) -> None:
    """An account, and a group, where sha256 would put us: sysusers would quietly pick another."""
    machine = boot()
    machine.as_root("useradd -u 31726 -m zed && groupadd -g 31727 crowd")
    one = '[mcp_servers.{}]\ncommand = "/usr/bin/python3"\nargs = ["/opt/probe.py"]\n'
    machine.configure(one.format("github"))  # sha256 says 31726
    machine.apply()
    assert machine.uid_of("mcpw-github") == 31728
    machine.configure(one.format("github") + one.format("x23306"))  # the same again
    machine.apply()
    assert (machine.uid_of("mcpw-github"), machine.uid_of("mcpw-x23306")) == (31728, 31729)
    assert told(machine, "github", "import os; result = [os.getuid(), os.getgid()]") == [31728] * 2
    machine.as_root("rm /var/lib/mcpwrap/registry.json")  # lost: the accounts still tell
    machine.apply()
    assert machine.uid_of("mcpw-github") == 31728


def test_a_person_keeps_the_uid_and_the_network_that_a_server_had(
    boot: Callable[..., Machine],
) -> None:
    """A server goes, useradd gives its UID to a person, and the server comes back."""
    machine = boot()
    one = '[mcp_servers.github]\ncommand = "/usr/bin/python3"\nargs = ["/opt/probe.py"]\n'
    machine.configure(one)
    machine.apply()
    machine.configure("")
    machine.apply()
    machine.as_root("useradd -u 31726 -m zed")
    machine.configure(one)
    machine.apply()
    assert machine.uid_of("mcpw-github") == 31727
    refused = machine.as_root("nft list set inet mcpwrap wrapped").out
    assert ("31726" in refused, "31727" in refused) == (False, True)
    machine.as_user("alice", "mcpwrap-connect github </dev/null")


def test_an_account_that_took_a_servers_place_stops_it(boot: Callable[..., Machine]) -> None:
    machine = boot()
    machine.as_root("useradd -u 5000 mcpw-github")  # somebody made it, with a UID of their own
    machine.configure('[mcp_servers.github]\ncommand = "/usr/bin/python3"\n')
    err = machine.as_root("mcpwrap apply", status=1).err
    assert "mcpw-github" in err
    assert "5000" in err
    machine.as_user("alice", "mcpwrap-connect github", status=78)
    machine.as_root("userdel mcpw-github")
    machine.apply()  # the twin


def test_a_changed_server_is_restarted_and_others_are_not(boot: Callable[..., Machine]) -> None:
    machine = boot()
    machine.add_person("mallory")
    machine.configure(OLD)
    machine.apply()
    machine.as_root("systemctl start mcpwrap@kept mcpwrap@leaving")
    pids = [machine.show(f"mcpwrap@{n}", "MainPID") for n in ("kept", "leaving")]
    machine.configure(OLD.replace('["/opt/probe.py"]', '["/opt/probe.py", "new"]', 1))
    assert "restart kept if it runs" in machine.apply()
    now = [machine.show(f"mcpwrap@{n}", "MainPID") for n in ("kept", "leaving")]
    assert (now[0] != pids[0], now[1] == pids[1]) == (True, True)


def test_an_agent_that_is_taken_off_loses_its_open_session(boot: Callable[..., Machine]) -> None:
    machine = boot()
    machine.add_person("mallory")
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
    before = machine.read("/etc/mcpwrap/config.toml")
    state = machine.as_root(
        "find /var/lib/mcpwrap /etc/systemd -type f | xargs stat -c '%n %Y'"
    ).out
    machine.configure(before + WRONG)
    err = machine.as_root("mcpwrap apply", status=2).err
    assert "6 problems; nothing was changed" in err
    for place in ("oops", "command", "args[0]", "inherits[0]", "agents", "egress[0]"):
        assert place in err
    assert err.count("fix: ") == 6
    assert machine.as_user("alice", "mcpwrap plan", status=2).err == err
    again = machine.as_root(
        "find /var/lib/mcpwrap /etc/systemd -type f | xargs stat -c '%n %Y'"
    ).out
    assert again == state
    machine.configure(before)
    assert machine.apply() == "nothing to do\n"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        ("chmod 666 {}", "others than root can write to it"),
        ("chown alice {}", "others than root can write to it"),
        ("mv {} /tmp/there && ln -s /tmp/there {}", "cannot be opened"),
    ],
)
def test_a_configuration_that_others_can_write_is_refused(
    machine: Machine, spoil: str, why: str
) -> None:
    file = "/etc/mcpwrap/config.toml"
    text = machine.read(file)
    machine.as_root(spoil.format(file, file))
    assert why in machine.as_root("mcpwrap apply", status=2).err
    machine.as_root(f"rm {file}")
    machine.configure(text)
    assert machine.apply() == "nothing to do\n"
