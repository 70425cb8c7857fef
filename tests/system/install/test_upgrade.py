"""Upgrade from an earlier release to this one, by apt."""

import json
import shlex
import shutil
from collections.abc import Callable

from mcpwrap.core.names import egress_address
from tests.system.bed import package
from tests.system.bed.machine import Machine
from tests.system.support import upgrades
from tests.system.support.servers import MEMORY_SERVER, SQLITE_SERVER
from tests.system.support.tiers import only_in_test_all

EGRESS_AND_HTTP = """
[mcp_servers.out]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.out.mcpwrap]
agents = ["alice"]
expose = "http"
egress = ["api.example.com"]
"""
GRAPH = [{"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}]
UPGRADE = "apt-get install -y /root/mcpwrap.deb"


def with_0_1_0(boot: Callable[..., Machine]) -> Machine:
    """Boot a machine on which apt has installed that release, with an agent called alice."""
    machine = boot(package=False)
    old = package.build_release("0.1.0", machine.suite)
    shutil.copy2(old, machine.path("/root/old.deb"))
    machine.as_root("apt-get install -y /root/old.deb")
    assert "0.1.0" in machine.as_root("mcpwrap --version").out
    machine.as_root("usermod -aG mcpwrap alice")
    # Until postinst ends the sessions, PID 1 says that the gate's new socket is not there yet.
    machine.announce("mcpwrap-gate.socket: Socket unit configuration has changed")
    return machine


@only_in_test_all("builds the package of 0.1.0 too; an upgrade to the same version is in make test")
def test_an_upgrade_from_0_1_0_keeps_what_is_there(boot: Callable[..., Machine]) -> None:
    machine = with_0_1_0(boot)
    machine.configure(MEMORY_SERVER)
    machine.apply()
    machine.call_tool("memory", "create_entities", {"entities": GRAPH})
    uid = machine.uid_of("mcpw-memory")

    machine.as_root(UPGRADE)
    assert "0.1.0" not in machine.as_root("mcpwrap --version").out
    machine.apply()
    assert machine.uid_of("mcpw-memory") == uid
    assert "wrote the first program" in machine.call_tool("memory", "read_graph")


@only_in_test_all("builds the package of 0.1.0 too; an upgrade to the same version is in make test")
def test_an_upgrade_from_0_1_0_breaks_each_session_once(boot: Callable[..., Machine]) -> None:
    machine = with_0_1_0(boot)
    machine.configure(upgrades.RECONNECTED)
    machine.apply()
    upgrades.breaks_each_session_once(machine, UPGRADE)
    with machine.session("one") as session:  # the twin: an agent that comes later
        session.initialize()


POLICY = """# Of the operator, who has a rule of their own.
version: 1
rules:
  - {name: no-insights, server: sqlite, tool: append_insight, action: block}
"""
FILES = "cd /etc/mcpwrap && find . -type f -exec sha256sum {} + | sort"


@only_in_test_all("builds the package of 0.1.0 too; an upgrade to the same version is in make test")
def test_an_upgrade_from_0_1_0_brings_the_default_policy(boot: Callable[..., Machine]) -> None:
    """It says so, leaves the operator's files as they were, and holds from the first session on."""
    machine = with_0_1_0(boot)
    machine.configure(SQLITE_SERVER)
    machine.write("/etc/mcpwrap/policy.yaml", POLICY)
    machine.apply()
    create = {"query": "CREATE TABLE t (id INTEGER)"}
    machine.call_tool("sqlite", "create_table", create)
    everything = {"query": "SELECT * FROM t"}
    assert machine.call_tool("sqlite", "read_query", everything) == "[]"
    files = machine.look(FILES)

    told = machine.as_root(UPGRADE).out
    assert "default policy" in told
    assert "mcpwrap policy default show" in told
    assert "mcpwrap policy default disable" in told
    assert machine.look(FILES) == files
    refused = machine.call_tool("sqlite", "read_query", everything)
    assert "(rule default.unbounded-select)" in refused
    assert machine.call_tool("sqlite", "read_query", {"query": "SELECT * FROM t LIMIT 5"}) == "[]"
    explain = "mcpwrap policy explain sqlite read_query"
    arguments = shlex.quote(json.dumps(everything))
    explained = machine.as_root(f"{explain} {arguments}").out
    assert "since 0.2.0" in explained
    own = machine.call_tool("sqlite", "append_insight", {"insight": "none"})
    assert "(rule no-insights)" in own  # a rule of the operator's goes on

    machine.as_root("mcpwrap policy default disable")
    assert machine.call_tool("sqlite", "read_query", everything) == "[]"  # the twin
    new = set(machine.look(FILES).splitlines()) ^ set(files.splitlines())
    assert [line.split()[1] for line in new] == ["./policy.d/default-policy.yaml"]


def elements(machine: Machine, name: str) -> list[str]:
    """Return the elements of a set of the packet rules."""
    listed = machine.look(f"nft -nj list set inet mcpwrap {name}")
    (found,) = (each["set"] for each in json.loads(listed)["nftables"] if "set" in each)
    return [" ".join(map(str, each["concat"])) for each in found.get("elem", [])]


def is_answered(machine: Machine, account: str, address: str) -> bool:
    """Return whether an account may connect to a listener."""
    code = f"import socket; socket.create_connection(('{address}', {upgrades.PORT}), 5)"
    return machine.as_user(account, f'python3 -c "{code}" && echo yes || true').out == "yes\n"


@only_in_test_all("builds the package of 0.1.0 too; an upgrade to the same version is in make test")
def test_an_upgrade_from_0_1_0_takes_the_packet_rules_along(boot: Callable[..., Machine]) -> None:
    """Its sets have other names; servers with egress keep it without another `apply`."""
    machine = with_0_1_0(boot)
    machine.add_person("bob")
    machine.configure(EGRESS_AND_HTTP)
    machine.apply()
    before = [elements(machine, name) for name in ("own", "heard")]
    assert [len(each) for each in before] == [1, 1]
    listener = json.loads(machine.read(f"/var/lib/mcpwrap/http/out.{machine.uid_of('alice')}.json"))

    machine.as_root("dpkg --unpack /root/mcpwrap.deb")
    # As after a crash here. The new rules name accounts that postinst creates: the old ones stay.
    machine.announce("mcpwrap-nft.service: |Reload failed for mcpwrap-nft.service")
    machine.as_root("systemctl reload mcpwrap-nft", status=1)
    assert [elements(machine, name) for name in ("own", "heard")] == before
    machine.as_root(UPGRADE)
    for is_after_reboot in (False, True):
        if is_after_reboot:
            machine.reboot()
        now = [elements(machine, name) for name in ("egress_addr", "listener_clients")]
        assert now == before
        assert elements(machine, "own") == elements(machine, "heard") == []
        assert is_answered(machine, "alice", listener["address"])
        assert not is_answered(machine, "bob", listener["address"])
        with machine.session("out") as session:
            squid = egress_address(machine.uid_of("mcpw-out"))
            code = f"import socket; socket.create_connection(('{squid}', 3128), 5); result = 'open'"
            assert session.evaluate(code) == "open"
