"""Debian's own Squid: off where mcpwrap brought it, on where it was installed before."""

from collections.abc import Callable

from tests.system.bed.machine import Machine
from tests.system.support.tiers import only_in_test_all

APT = "apt-get -y -o Dir::Etc::sourcelist=/root/repo.list -o Dir::Etc::sourceparts=-"
STATE = "systemctl is-active squid.service || true"
# After a kill of Squid there is no need to wait for it; but on cgroup v1 systemd 252 does not
# always notice that its children end.
IN_FIVE_S = "[Service]\nTimeoutStopSec=5\n"
DROP_IN = "/etc/systemd/system/squid.service.d/bed.conf"
LISTENS = "ss -Hltn sport = 3128"


def without_squid(machine: Machine) -> None:
    """Remove Squid, and make a source from which apt can install it."""
    names = " ".join(machine.call("squid_packages", "repack"))
    machine.as_root(f"apt-get purge -y {names} && {APT} update")
    machine.as_root("test ! -e /usr/sbin/squid")


def test_squid_that_came_along_stays_off(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    without_squid(machine)
    done = machine.as_root(f"{APT} install /root/mcpwrap.deb").out
    assert "Setting up squid-openssl" in done  # not named: it is recommended
    assert machine.look("systemctl is-enabled squid.service") == "enabled\n"
    assert machine.look(STATE) == "inactive\n"
    machine.as_root("systemctl restart squid.service")  # an unmet condition is not a failure
    assert machine.look(STATE) == "inactive\n"
    machine.reboot()
    assert machine.look(STATE) == "inactive\n"
    assert machine.look(LISTENS) == ""
    # The twin, and the manual page's instructions for an administrator who wants it.
    machine.as_root("rm /var/lib/mcpwrap/stock-squid-stays-off; systemctl start squid.service")
    assert machine.look(STATE) == "active\n"


def test_squid_that_was_there_stays_on(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    machine.write(DROP_IN, IN_FIVE_S)
    machine.as_root("systemctl daemon-reload; systemctl enable --now squid.service")
    pid = machine.show("squid.service", "MainPID")
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    assert machine.show("squid.service", "MainPID") == pid
    # Killed, because a stop takes half a minute, for clients that do not exist.
    machine.as_root("systemctl kill --signal=KILL squid.service; systemctl stop squid.service")
    machine.as_root("systemctl start squid.service")
    assert machine.look(STATE) == "active\n"
    assert "*:3128" in machine.look(LISTENS)


@only_in_test_all("second-order: the story above has one that somebody asked for")
def test_squid_that_something_else_brought_stays_on(boot: Callable[..., Machine]) -> None:
    """For apt it is installed automatically, like the packages that came with mcpwrap."""
    machine = boot(package=False)
    machine.as_root("apt-mark auto squid squid-openssl || apt-mark auto squid-openssl")
    machine.write(DROP_IN, IN_FIVE_S)
    machine.as_root("systemctl daemon-reload; systemctl enable --now squid.service")
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    assert machine.look(STATE) == "active\n"
    machine.as_root("test ! -e /var/lib/mcpwrap/stock-squid-stays-off")
    machine.as_root("systemctl kill --signal=KILL squid.service")  # or the end takes half a minute


@only_in_test_all("second-order: the first story has one that came along")
def test_squid_that_found_use_while_mcpwrap_was_away_stays_on(boot: Callable[..., Machine]) -> None:
    """It had come along; the twin is one that was not started."""
    machine = boot(package=False)
    without_squid(machine)
    machine.as_root(f"{APT} install /root/mcpwrap.deb")
    machine.as_root("apt-get remove -y mcpwrap; apt-get install -y /root/mcpwrap.deb")
    machine.as_root("systemctl restart squid.service")
    assert machine.look(STATE) == "inactive\n"
    machine.as_root("apt-get remove -y mcpwrap")
    machine.write(DROP_IN, IN_FIVE_S)
    machine.as_root("systemctl daemon-reload; systemctl start squid.service")
    assert machine.look(STATE) == "active\n"
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    machine.as_root("systemctl kill --signal=KILL squid.service; systemctl stop squid.service")
    machine.as_root("systemctl start squid.service")
    assert machine.look(STATE) == "active\n"
    machine.as_root("systemctl kill --signal=KILL squid.service")  # or the end takes half a minute
