"""`mcpwrap purge`: before the package is removed, everything else is."""

from collections.abc import Callable

import pytest

from tests.system.bed.machine import Machine
from tests.system.support import purged
from tests.system.support.servers import THREE_SERVERS, a_server
from tests.system.support.tiers import only_in_test_all

OTHER_WAYS = a_server("out", 'egress = ["api.good.test"]') + a_server(
    "by-http", 'expose = "http"\nagents = ["alice"]'
)
CONFFILES = "/etc/logrotate.d/mcpwrap /etc/needrestart"
QUESTION = "Remove all of this"


def in_use(machine: Machine) -> purged.Snapshot:
    """Install the package and use servers of several kinds; return the state before."""
    before = purged.snapshot(machine)
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    machine.as_root("usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS + OTHER_WAYS)
    machine.apply()
    machine.call_tool("memory", "read_graph")
    return before


def test_purge_asks_and_then_nothing_is_left(boot: Callable[..., Machine]) -> None:
    """An open session ends, and after the package is removed too, the root is as it was."""
    machine = boot(package=False)
    before = in_use(machine)
    with machine.session("everything") as session:
        session.initialize()
        during = purged.snapshot(machine)
        status, shown = machine.typed("mcpwrap purge", [(QUESTION, "no", 0)], user="root")
        assert (status, "E-PURGE-NOT-CONFIRMED" in shown) == (1, True)
        for named in ("mcpw-memory", "mcpwrap-gate", "/var/log/mcpwrap", "the audit"):
            assert named in shown
        assert purged.changed(during, purged.snapshot(machine)) == set()
        refused = machine.as_root("mcpwrap purge < /dev/null", status=2)
        assert "E-USAGE-NO-TERMINAL" in refused.err
        status, shown = machine.typed("mcpwrap purge", [(QUESTION, "yes", 0)], user="root")
        assert (status, "now remove the package" in shown) == (0, True), shown
        session.close()
    assert machine.look("getent passwd | grep -c mcp || true") == "0\n"
    assert machine.look("nft list ruleset; ip route show table local 127.77.0.0/16") == ""
    machine.as_root("mcpwrap purge --yes")  # nothing is left, and it is no error
    machine.as_root("apt-get purge -y mcpwrap")
    assert purged.changed(before, purged.snapshot(machine)) == set()


@only_in_test_all("a purge that is not killed is in make test")
@pytest.mark.timeout(1200)
def test_killed_anywhere_purge_is_completed_by_the_same_command(
    boot: Callable[..., Machine],
) -> None:
    machine = boot(package=False)
    before = in_use(machine)
    # Units that are killed along with the command, or whose files are gone when it was.
    machine.announce("mcpwrap-http@|mcpwrap-gate.service")
    assert purged.purge_killed_on_the_way(machine) > 5
    machine.as_root(f"apt-get remove -y mcpwrap; rm -r {CONFFILES}")
    assert purged.changed(before, purged.snapshot(machine)) == set()
