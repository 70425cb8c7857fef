"""Upgrade from an earlier release to this one, by apt."""

import shutil
from collections.abc import Callable

from tests.system.bed import package
from tests.system.bed.machine import Machine
from tests.system.support import upgrades
from tests.system.support.servers import THREE_SERVERS
from tests.system.support.tiers import only_in_test_all

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
    return machine


@only_in_test_all("builds the package of 0.1.0 too; an upgrade to the same version is in make test")
def test_an_upgrade_from_0_1_0_keeps_what_is_there(boot: Callable[..., Machine]) -> None:
    machine = with_0_1_0(boot)
    machine.configure(THREE_SERVERS)
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
