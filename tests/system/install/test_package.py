"""The first day and the last: install, wrap, use, purge."""

import shutil
from collections.abc import Callable

from tests.system.bed import package
from tests.system.bed.machine import Machine
from tests.system.support.servers import THREE_SERVERS
from tests.system.support.tiers import on_each_release


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
    assert len(during) > len(before) + 100  # the twin: the snapshot sees what is there
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


def test_an_upgrade_restarts_wrappers_and_keeps_the_rules(boot: Callable[..., Machine]) -> None:
    machine = boot()
    shutil.copy2(package.build(machine.suite), machine.path("/root/mcpwrap.deb"))
    machine.configure(THREE_SERVERS)
    machine.apply()
    machine.as_root("systemctl start mcpwrap@everything")
    pid = machine.show("mcpwrap@everything", "MainPID")["MainPID"]
    rules = machine.look("nft list set inet mcpwrap wrapped")
    machine.as_root("apt-get install -y --reinstall /root/mcpwrap.deb")
    assert machine.look("nft list set inet mcpwrap wrapped") == rules
    assert machine.show("mcpwrap@everything", "MainPID")["MainPID"] != pid
    assert machine.apply() == "nothing to do\n"
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"
