"""Life cycle of the package: install, wrap, use, purge."""

import json
import shutil
from collections.abc import Callable

from tests.system.bed import package
from tests.system.bed.machine import GATE_IS_UP, Machine
from tests.system.support import upgrades
from tests.system.support.servers import THREE_SERVERS, a_server
from tests.system.support.tiers import on_each_release, only_in_test_all


@on_each_release("the package of each release is built and installed by its own tools")
def test_from_apt_install_to_a_second_apply(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    machine.as_root("usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS)
    assert "step" in machine.as_root("mcpwrap plan", status=10).out
    assert machine.apply().endswith("done\n")
    assert machine.apply() == "nothing to do\n"
    machine.as_root("systemctl start mcpwrap@everything")
    status = machine.look("systemctl status mcpwrap@everything")
    assert "Active: active (running)" in status
    assert 'Status: "ready: 0 of 16 sessions' in status
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"


@on_each_release("dpkg and its hooks decide what is left")
def test_purge_leaves_the_root_as_it_was(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    before = machine.look_by("root_files", "snapshot")
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    machine.as_root("usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS)
    machine.apply()
    machine.call_tool("memory", "read_graph")
    machine.as_root("systemctl start mcpwrap@everything")
    during = machine.look_by("root_files", "snapshot")
    assert len(during) > len(before) + 100  # the twin: the snapshot notices differences
    machine.as_root("apt-get purge -y mcpwrap")
    after = machine.look_by("root_files", "snapshot")
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == set()
    assert machine.look("getent passwd | grep -c mcpw || true") == "0\n"


def test_removing_keeps_the_configuration_and_shuts_everything(
    boot: Callable[..., Machine],
) -> None:
    machine = boot()
    machine.configure(THREE_SERVERS)
    machine.apply()
    with machine.session("everything") as session:
        session.initialize()
        machine.as_root("apt-get remove -y mcpwrap")
        session.close()
    assert machine.look("pgrep -u mcpw-everything || true") == ""
    assert "everything" in machine.read("/etc/mcpwrap/config.toml")
    assert "wrapped" in machine.look("nft list table inet mcpwrap")  # nothing was opened


EVERY_WAY_IN_AND_OUT = a_server("goes-out", 'egress = ["api.good.test"]') + a_server(
    "by-http", 'expose = "http"\nagents = ["alice"]'
)


def test_installed_again_after_its_removal_it_serves_again(boot: Callable[..., Machine]) -> None:
    machine = boot()
    shutil.copy2(package.build(machine.suite), machine.path("/root/mcpwrap.deb"))
    machine.configure(THREE_SERVERS + EVERY_WAY_IN_AND_OUT)
    machine.apply()
    before = machine.call_tool("everything", "echo", {"message": "hello"})
    # A unit that queries the gate during the installation starts it, and is then stopped with it.
    machine.announce("mcpwrap-gate.service: (Control process exited|Failed with result 'signal')")
    machine.as_root(f"{GATE_IS_UP}; dpkg -r mcpwrap")
    machine.as_user("alice", "mcpwrap-connect everything", status=127)
    machine.as_root("dpkg -i /root/mcpwrap.deb")
    states = {each["name"]: each["state"] for each in json.loads(status_of(machine))}
    assert set(states.values()) == {"ready"}, states
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == before
    assert machine.apply() == "nothing to do\n"  # Squid runs, and the listener is open
    # The twin: a unit that root has stopped is not started by an upgrade.
    machine.as_root("systemctl stop mcpwrap@time.socket mcpwrap@time.service")
    machine.as_root(f"{GATE_IS_UP}; dpkg -i /root/mcpwrap.deb")
    states = {each["name"]: each["state"] for each in json.loads(status_of(machine, status=1))}
    assert [name for name, state in states.items() if state == "stopped"] == ["time"]


@only_in_test_all("an administrator's policy-rc.d; what is started without one is in make test")
def test_installed_again_but_not_started_it_says_what_to_do(boot: Callable[..., Machine]) -> None:
    machine = boot()
    shutil.copy2(package.build(machine.suite), machine.path("/root/mcpwrap.deb"))
    machine.configure(THREE_SERVERS + EVERY_WAY_IN_AND_OUT)
    machine.apply()
    machine.as_root(f"{GATE_IS_UP}; dpkg -r mcpwrap")
    machine.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", mode=0o755)
    machine.as_root("dpkg -i /root/mcpwrap.deb")
    said = machine.as_root("mcpwrap status", status=1)
    assert said.out.count("its socket does not listen") == 5
    assert said.out.count("for all `sudo mcpwrap apply`") == 5
    assert "`sudo systemctl start mcpwrap-gate.socket`" in said.err
    machine.as_root("systemctl start mcpwrap-gate.socket; mcpwrap apply")
    states = {each["name"]: each["state"] for each in json.loads(status_of(machine))}
    assert set(states.values()) == {"ready"}, states
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"


def status_of(machine: Machine, *, status: int = 0) -> str:
    """Return the output of `mcpwrap status --json`."""
    return machine.as_root("mcpwrap status --json", status=status).out


def test_an_upgrade_restarts_wrappers_and_keeps_the_rules(boot: Callable[..., Machine]) -> None:
    machine = boot()
    shutil.copy2(package.build(machine.suite), machine.path("/root/mcpwrap.deb"))
    machine.configure(THREE_SERVERS + upgrades.RECONNECTED)
    machine.apply()
    machine.as_root("systemctl start mcpwrap@everything")
    pid = machine.show("mcpwrap@everything", "MainPID")["MainPID"]
    rules = machine.look("nft list set inet mcpwrap wrapped")
    again = f"{GATE_IS_UP}; apt-get install -y --reinstall /root/mcpwrap.deb"
    upgrades.breaks_each_session_once(machine, again)
    assert machine.look("nft list set inet mcpwrap wrapped") == rules
    assert machine.show("mcpwrap@everything", "MainPID")["MainPID"] not in {pid, "0"}
    assert machine.apply() == "nothing to do\n"
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"
