"""HTTP listeners: each agent has an address of its own, and no other account connects to it.

A stand-in for our program answers there: it sends what it can reach as that account in that unit.
So this is about root's part: rules, sockets, units, addresses.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import Session
from tests.system.support.servers import NODE_MODULES
from tests.system.support.tiers import on_each_release, only_in_test_all

EVERYTHING = f"""
[mcp_servers.everything]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]
[mcp_servers.everything.mcpwrap]
agents = ["alice", "@team"]
expose = "http"
"""
REMOTE = """
[mcp_servers.everything]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "TOKEN"
[mcp_servers.everything.mcpwrap]
agents = ["alice"]
"""
PLAIN = EVERYTHING.replace('expose = "http"\n', "")

# In place of our program: a function of `guest/listeners.py`.
STAND_IN = """\
#!/usr/bin/python3 -I
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, "/opt/bed")
from tests.system.guest import listeners
listeners.{}()
"""
LISTENER = "/usr/libexec/mcpwrap/mcpwrap-http"
NO_WAY_S = 3.0  # for a connection that must not come about: no test waits for its end


@contextmanager
def with_listeners(suite: str) -> Iterator[Machine]:
    """Boot a machine with agents, and the stand-in for each one's listener."""
    with installed.booted(suite) as machine:
        machine.as_root("groupadd team; groupadd mates")
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("bob", groups="team,mcpwrap")
        machine.as_root("useradd -m -g team carol")
        machine.add_person("mallory")
        machine.write(LISTENER, STAND_IN.format("answer"), mode=0o755)
        machine.configure(EVERYTHING)
        machine.apply()
        yield machine


STAGE = with_listeners


def call(
    machine: Machine,
    account: str,
    address: str,
    *,
    port: int = 52100,
    source: str = "0.0.0.0",
    within_s: float = pace.WAIT_S,
) -> str:
    """Connect as this account; return the received line, or how it was refused."""
    line: str = machine.call("listeners", "call", account, address, port, source, within_s)
    return line


@contextmanager
def held(machine: Machine, user: str, address: str) -> Iterator[Session]:
    """Hold a connection open as this person, for the time of the block."""
    command = f"exec {machine.guest_command('listeners', 'hold', address)}"
    with machine.session("", user=user, command=command) as hold:
        assert hold.read_line() == "held"
        yield hold


def told(machine: Machine, account: str, address: str) -> dict[str, Any]:
    """Connect as this account, and return the received text."""
    line = call(machine, account, address)
    assert line.startswith("{"), line
    found: dict[str, Any] = json.loads(line)
    return found


def urls(machine: Machine) -> dict[str, str]:
    """Return the address of each agent, by name, as any account sees it."""
    [server] = json.loads(machine.as_user("alice", "mcpwrap status --json").out)
    assert all(each["is_open"] for each in server["http"])
    found = {each["agent"]: each["url"] for each in server["http"]}
    return {name: re.fullmatch(r"http://(.*):52100/", url)[1] for name, url in found.items()}  # type: ignore[index]


@on_each_release("sets of nftables and sockets of systemd decide who reaches a listener")
def test_each_agent_alone_reaches_its_listener(machine: Machine) -> None:
    found = urls(machine)
    assert found.keys() == {"alice", "bob", "carol"}  # listed, joined, and its own group
    text = machine.as_user("alice", "mcpwrap status").out
    assert f"http://{found['alice']}:52100/" in text
    nft = machine.look("nft -n list set inet mcpwrap listener_clients")
    for name, address in found.items():
        assert f"{machine.uid_of(name)} . {address}" in nft
    accounts = ["alice", "bob", "carol", "mallory", "root", "mcpw-everything", "mcpwrap-gate"]
    accounts += ["mcpwrap-http", "mcpwrap-web", "mcpwrap-proxy", "nobody"]
    owner_of = {address: name for name, address in found.items()}
    came = machine.call("listeners", "calls", accounts, list(found.values()), pace.WAIT_S)
    assert len(came) == len(accounts) * len(found)
    for account, address, line in came:
        if account == owner_of[address]:
            assert json.loads(line)["told"]["uid"] == machine.uid_of(account)
        else:
            assert line == "ECONNREFUSED", (account, owner_of[address])
    alice = found["alice"]
    assert call(machine, "alice", alice, port=52101) == "ECONNREFUSED"
    assert call(machine, "alice", alice, source=found["bob"]) == "ECONNREFUSED"
    assert machine.apply() == "nothing to do\n"


def test_what_answers_has_no_network_and_one_door(machine: Machine) -> None:
    address = urls(machine)["alice"]
    found = told(machine, "alice", address)
    uid = machine.uid_of("alice")
    assert found["told"] == {
        "server": "everything",
        "uid": uid,
        "address": address,
        "is_remote": False,
        "url_name": "",
    }
    assert found["argv"] == [f"everything.{uid}"]
    assert found["uid"] == machine.uid_of("mcpwrap-http")
    assert found["gate"] == "worked"
    assert {found["approve"], found["wrapper"]} <= {"EACCES", "EPERM", "ENOENT"}
    assert found["out"] != "worked"
    assert "worked" not in found["files"] + found["writes"]


def test_a_listener_that_was_taken_over_asks_for_its_own_agent_alone(machine: Machine) -> None:
    """All have one account, so the gate checks which of them it is."""
    address, alice, bob = urls(machine)["alice"], machine.uid_of("alice"), machine.uid_of("bob")
    machine.configure(EVERYTHING + EVERYTHING.replace("everything]", "other]", 1).replace(
        "everything.mcpwrap", "other.mcpwrap"
    ))  # fmt: skip
    machine.apply()
    machine.write(LISTENER, STAND_IN.format("ask_for"), mode=0o755)
    claims = [("everything", alice), ("everything", bob), ("other", alice), ("other", bob)]
    machine.write("/opt/claims.json", json.dumps(claims))
    machine.as_root(f"systemctl restart mcpwrap-http@everything.{alice}.service")
    machine.announce("only the listener of an agent")
    found = json.loads(call(machine, "alice", address))
    assert found[0] == "S"
    why = "only the listener of an agent may open a session for it"
    assert all(why in said for said in found[1:])
    machine.write(LISTENER, STAND_IN.format("answer"), mode=0o755)
    machine.as_root(f"systemctl restart mcpwrap-http@everything.{alice}.service")
    machine.configure(EVERYTHING)
    machine.apply()


def test_nobody_else_answers_where_an_agent_calls(machine: Machine) -> None:
    address, uid = urls(machine)["alice"], machine.uid_of("alice")
    squat = machine.guest_command("listeners", "squat")
    with pytest.raises(CommandFailedError, match="Address already in use"):
        machine.as_user("mallory", squat)
    machine.as_root(f"systemctl stop mcpwrap-http@everything.{uid}.socket")
    for other in ("bob", "carol"):
        machine.as_root(f"systemctl stop mcpwrap-http@everything.{machine.uid_of(other)}.socket")
    assert call(machine, "alice", address) == "ECONNREFUSED"
    with machine.session("", user="mallory", command=f"exec {squat}") as squatter:
        assert squatter.read_line() == "up"
        assert call(machine, "alice", address, within_s=NO_WAY_S) == "timeout"
        # The twin: it does answer elsewhere.
        assert call(machine, "alice", "127.0.0.1") == "evil\n"
        assert squatter.read_line() == "called"
    assert "listen at" in machine.apply()
    told(machine, "alice", address)


def test_who_leaves_is_heard_no_more_and_others_go_on(machine: Machine) -> None:
    before = urls(machine)
    with ExitStack() as stack:
        hold_of = {
            name: stack.enter_context(held(machine, name, address))
            for name, address in before.items()
        }
        machine.as_root("gpasswd -d bob team; gpasswd -a mallory team")
        plan = machine.as_user("alice", "mcpwrap plan", status=10).out
        assert f"close the listener everything.{machine.uid_of('bob')}; its sessions end" in plan
        assert "restart everything" not in plan
        machine.apply()
        for name, hold in hold_of.items():
            hold.send({})
            assert hold.read_line() == ("ended" if name == "bob" else "answered")
    after = urls(machine)
    assert after.keys() == {"alice", "carol", "mallory"}
    assert {name: after[name] for name in ("alice", "carol")} == {
        name: before[name] for name in ("alice", "carol")
    }
    assert after["mallory"] not in before.values()  # bob's is reserved for bob
    assert call(machine, "bob", before["bob"]) == "ECONNREFUSED"
    told(machine, "mallory", after["mallory"])
    machine.as_root("gpasswd -a bob team")
    machine.apply()
    assert urls(machine)["bob"] == before["bob"]
    machine.configure(PLAIN)
    machine.apply()
    left = "ls /var/lib/mcpwrap/http /etc/systemd/system | grep -F -e http@ -e json || true"
    assert machine.look(left) == ""
    assert "mcpwrap-http@" not in machine.look("systemctl list-units --all")
    assert "elements" not in machine.look("nft list set inet mcpwrap listener_clients")
    machine.configure(EVERYTHING)
    machine.apply()
    assert urls(machine) == {**before, **after}
    machine.as_root("gpasswd -d mallory team")
    machine.apply()


@only_in_test_all("second-order variant: the rule is taken away by hand")
def test_a_connection_ends_with_the_rule_that_allowed_it(machine: Machine) -> None:
    address, uid = urls(machine)["alice"], machine.uid_of("alice")
    with held(machine, "alice", address) as hold, machine.unwatched():
        machine.as_root(
            f"nft delete element inet mcpwrap listener_clients '{{ {uid} . {address} }}'"
        )
        hold.send({})
        assert hold.read_line() == "ended"
    told(machine, "alice", address)


def test_without_its_rule_nobody_listens(machine: Machine) -> None:
    address, uid = urls(machine)["alice"], machine.uid_of("alice")
    unit = f"mcpwrap-http@everything.{uid}.socket"
    machine.announce(re.escape(unit))
    with machine.unwatched():
        machine.as_root(f"systemctl stop {unit}")
        machine.as_root(
            f"nft delete element inet mcpwrap listener_clients '{{ {uid} . {address} }}'"
        )
        machine.as_root(f"systemctl start {unit}", status=1)
    machine.as_root(f"systemctl reset-failed {unit}; systemctl start {unit}")
    told(machine, "alice", address)


def test_listeners_come_back_with_the_rules_and_after_a_boot(machine: Machine) -> None:
    address = urls(machine)["alice"]
    with machine.without_rules_unit():
        assert call(machine, "alice", address) == "ECONNREFUSED"
    machine.call("listeners", "await_listener", address, pace.WAIT_S)
    told(machine, "alice", address)
    machine.reboot()
    told(machine, "alice", address)
    assert machine.apply() == "nothing to do\n"


@only_in_test_all("test_remote.py shows that such a server has a listener and a way out")
def test_a_server_that_is_a_url_has_a_listener_and_a_way_out(machine: Machine) -> None:
    before = urls(machine)
    machine.configure(REMOTE)
    machine.announce("everything")  # its secret was not set
    assert "does not start before `sudo mcpwrap secret set everything TOKEN`" in machine.apply()
    found = urls(machine)
    assert found == {"alice": before["alice"]}
    assert told(machine, "alice", found["alice"])["told"]["is_remote"] is True
    uid = machine.uid_of("mcpw-everything")
    assert f"{uid} . 127.77." in machine.look("nft -n list set inet mcpwrap egress_addr")
    squid = machine.read("/var/lib/mcpwrap/squid/proxy-1.conf").replace("\\", "")
    assert "mcp.example.com" in squid
    spec = json.loads(machine.read("/var/lib/mcpwrap/servers/everything.json"))
    assert spec["command"] == "/usr/libexec/mcpwrap/mcpwrap-remote"
    assert spec["remote"]["headers"]["Authorization"] == ["Bearer ", {"secret": "TOKEN"}]
    assert machine.apply().startswith("nothing to do\n")
    machine.configure(EVERYTHING)
    machine.apply()


@only_in_test_all("a machine of its own: test_package.py shows that a purge leaves nothing of ours")
def test_a_purge_leaves_nothing(boot: Callable[..., Machine]) -> None:
    machine = boot()
    machine.configure(EVERYTHING.replace(', "@team"', ""))
    machine.apply()
    machine.as_root("DEBIAN_FRONTEND=noninteractive apt-get purge -y mcpwrap")
    left = "find /etc /run /var/lib -name '*mcpwrap-http*' -o -path '*mcpwrap*everything.*'"
    assert machine.look(left) == ""
    machine.as_root("getent passwd mcpwrap-http", status=2)
    assert "mcpwrap" not in machine.look("nft list ruleset")
