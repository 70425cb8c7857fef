"""Life cycle of the .rpm, by rpm itself: install, use, upgrade, erase, install again, purge."""

import json
import shutil
from collections.abc import Iterator

import pytest

from tests.system.bed import installed, package
from tests.system.bed.machine import GATE_IS_UP, Machine
from tests.system.support import purged, upgrades
from tests.system.support.servers import THREE_SERVERS, a_server
from tests.system.support.tiers import only_in_test_all

pytestmark = [
    only_in_test_all("needs Debian testing; the .deb has the same in make test"),
    pytest.mark.timeout(1800),  # with the roots and the packages
]
OTHER_WAYS = a_server("out", 'egress = ["api.good.test"]') + a_server(
    "by-http", 'expose = "http"\nagents = ["alice"]'
)
ACTIVE = (
    "mcpwrap-nft.service", "mcpwrap-watch.service", "mcpwrap-gate.socket", "mcpwrap-gate.service",
    "mcpwrap-resolvers.path", "mcpwrap-audit-prune.timer",
)  # fmt: skip
LISTENS = "ss -Hlx | grep -o '/run/mcpwrap/[^ ]*' || true"
TABLE = "nft -j list tables"  # with their handles: a table that is replaced has another
TARGETS = [each for each in package.targets() if each.row["format"] == "rpm"]
SODIUM = "/usr/lib/mcpwrap/site/nacl/_sodium.abi3.so"
# systemd 262, where a host has cgroup v1.
NO_CONTROLLERS = "Failed to read pids.max for control group"


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Boot a machine with the packages in /root; it must end without an unannounced line."""
    with installed.rpm_machine() as machine:
        machine.add_person("alice")
        machine.announce(NO_CONTROLLERS)
        yield machine
        assert machine.unannounced() == []


def install(machine: Machine, servers: str = THREE_SERVERS) -> None:
    """Install release 1 and apply a configuration."""
    machine.as_root("rpm -i /root/mcpwrap-1.rpm")
    machine.as_root("usermod -aG mcpwrap alice")
    machine.configure(servers)
    machine.apply()


def test_from_rpm_install_to_a_session(machine: Machine) -> None:
    machine.as_root("rpm -i /root/mcpwrap-1.rpm")
    for unit in ACTIVE:  # Fedora's presets would enable none of them
        assert machine.look(f"systemctl is-active {unit}") == "active\n", unit
    assert "wrapped" in machine.look("nft list table inet mcpwrap")
    assert machine.look("systemctl is-enabled mcpwrap-web.socket || true") == "disabled\n"
    assert machine.look("systemctl is-active squid.service || true") == "inactive\n"
    assert machine.as_root("rpm -V mcpwrap").out == ""
    assert "/licenses/mcpwrap/sdnotify\n" in machine.look("rpm -qL mcpwrap")
    machine.as_root("usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS)
    assert machine.apply().endswith("done\n")
    assert machine.apply() == "nothing to do\n"
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"
    assert machine.as_root("rpm -V mcpwrap").out == ""
    written = "find /usr/lib/mcpwrap /usr/libexec/mcpwrap -print0 | xargs -0 rpm -qf | sort -u"
    assert machine.look(written).split() == machine.look("rpm -q mcpwrap").split()


def test_an_upgrade_breaks_each_session_once(machine: Machine) -> None:
    install(machine, THREE_SERVERS + upgrades.RECONNECTED)
    machine.as_root("systemctl stop mcpwrap@time.socket mcpwrap@time.service")
    machine.as_root("systemctl start mcpwrap@everything")
    pid = machine.show("mcpwrap@everything", "MainPID")["MainPID"]
    table, rules = machine.look(TABLE), machine.look("nft list table inet mcpwrap")
    upgrades.breaks_each_session_once(machine, f"{GATE_IS_UP}; rpm -U /root/mcpwrap-2.rpm")
    assert f"mcpwrap-{package.version()}-2." in machine.look("rpm -q mcpwrap")
    assert machine.look(TABLE) != table  # loaded anew, and the same
    assert machine.look("nft list table inet mcpwrap") == rules
    assert machine.show("mcpwrap@everything", "MainPID")["MainPID"] not in {pid, "0"}
    states = {each["name"]: each["state"] for each in status_of(machine, status=1)}
    assert [name for name, state in states.items() if state == "stopped"] == ["time"]
    machine.as_root("systemctl start mcpwrap@time.socket")
    assert machine.apply() == "nothing to do\n"
    assert machine.as_root("rpm -V mcpwrap").out == ""


def status_of(machine: Machine, *, status: int = 0) -> list[dict[str, str]]:
    """Return what `mcpwrap status --json` prints."""
    found: list[dict[str, str]] = json.loads(
        machine.as_root("mcpwrap status --json", status=status).out
    )
    return found


def test_erased_it_listens_nowhere_and_installed_again_it_serves_again(machine: Machine) -> None:
    install(machine, THREE_SERVERS + OTHER_WAYS)
    before = machine.call_tool("everything", "echo", {"message": "hello"})
    accounts = machine.look("getent passwd | grep mcp")
    assert "/run/mcpwrap/sock/everything.sock" in machine.look(LISTENS)
    with machine.session("everything") as session:
        session.initialize()
        machine.as_root(f"{GATE_IS_UP}; rpm -e mcpwrap")
        session.close()
    assert machine.look(LISTENS) == ""
    assert machine.look("pgrep -u mcpw-everything,mcpwrap-http,mcpwrap-proxy || true") == ""
    assert machine.look("ls -d /usr/lib/mcpwrap /usr/libexec/mcpwrap 2> /dev/null || true") == ""
    assert "everything" in machine.read("/etc/mcpwrap/config.toml")
    assert machine.look("ls /var/log/mcpwrap/audit/*")
    assert machine.look("getent passwd | grep mcp") == accounts
    assert "wrapped" in machine.look("nft list table inet mcpwrap")  # nothing was opened
    machine.as_root("rpm -i /root/mcpwrap-1.rpm")
    assert {each["state"] for each in status_of(machine)} == {"ready"}
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == before
    assert machine.apply() == "nothing to do\n"  # Squid runs, and the listener is open


def test_purge_and_rpm_e_leave_the_root_as_it_was(machine: Machine) -> None:
    before = purged.snapshot(machine)
    install(machine, THREE_SERVERS + OTHER_WAYS)
    machine.call_tool("memory", "read_graph")
    assert len(purged.snapshot(machine)) > len(before) + 100  # the twin: it notices differences
    # Units that are killed along with the command, or whose files are gone when it was.
    machine.announce("mcpwrap-http@|mcpwrap-gate.service")
    with machine.session("everything") as session:
        session.initialize()
        assert purged.purge_killed_on_the_way(machine) > 5
        session.close()
    machine.as_root("rpm -e mcpwrap")
    assert purged.changed(before, purged.snapshot(machine)) == set()


NOT_BOOTED = """set -eu
rm /usr/sbin/nft
rpm -i /root/mcpwrap-1.rpm
mcpwrap --version
getent passwd mcpwrap-gate
test -L /etc/systemd/system/sysinit.target.wants/mcpwrap-nft.service
# Without a Python that could make it, the byte code of the former version is gone.
find /usr/lib/mcpwrap -name 'errors.*.pyc' | grep .
chmod a-x /usr/bin/python3
rpm -U /root/mcpwrap-2.rpm
chmod a+x /usr/bin/python3
test -z "$(find /usr/lib/mcpwrap -name '*.pyc')"
mcpwrap purge --yes
rpm -e mcpwrap
# No `!`, whose commands may fail without ending a script.
test -z "$(find /etc /var/lib /usr -name '*mcpwrap*')"
test -z "$(getent passwd mcpwrap-gate)"
"""


def test_without_systemd_and_nft_no_scriptlet_fails(machine: Machine) -> None:
    """As in a chroot, or in a container image that is being built."""
    machine.write("/root/not-booted", NOT_BOOTED)
    empty = "mount -t tmpfs tmpfs /run"
    done = machine.as_root(f"unshare -m sh -c '{empty}; sh -e /root/not-booted' 2>&1")
    assert "scriptlet failed" not in done.out


@pytest.mark.parametrize("target", TARGETS, ids=lambda each: f"{each.name}-{each.arch}")
def test_the_package_of_each_distribution_has_libraries_for_its_python(
    machine: Machine, target: package.Target
) -> None:
    built = package.build_for(target)
    arch, python = package.MACHINES[target.arch], target.row["python"]
    assert built.name == f"mcpwrap-{package.version()}-1.{target.name}.{arch}.rpm"
    inside = f"/root/{built.name}"
    shutil.copy2(built, machine.path(inside))
    requires = machine.look(f"rpm -qp --requires {inside}").splitlines()
    assert f"python(abi) = {python}" in requires
    assert set(target.row["requires"].split()) <= set(requires)
    files = machine.look(f"rpm -qpl {inside}").splitlines()
    compiled = {name for name in files if name.endswith(".so")} - {SODIUM}
    assert SODIUM in files
    assert len(compiled) > 10
    ending = f".cpython-{python.replace('.', '')}-{arch}-linux-gnu.so"
    assert {name.endswith(ending) for name in compiled} == {True}
