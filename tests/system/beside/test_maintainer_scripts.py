"""The package's maintainer scripts where tools are missing, nothing runs, or they are killed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.bed import package
from tests.system.bed.machine import GATE_IS_UP, Machine
from tests.system.beside import chroots
from tests.system.support.servers import THREE_SERVERS, a_server
from tests.system.support.tiers import only_in_test_all

NFT, SQUID, SYSTEMCTL = TOOLS = ("/usr/sbin/nft", "/usr/sbin/squid", "/usr/bin/systemctl")
DENIED = "printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d"
ALLOWED = "rm -f /usr/sbin/policy-rc.d"
# What is missing, and whether policy-rc.d lets nothing start.
CHROOTS = {
    "everything is missing, and nothing may start": (TOOLS, DENIED),
    "nothing is missing": ((), ALLOWED),
    "nothing may start": ((), DENIED),
    "nft is missing": ((NFT,), ALLOWED),
    "Squid is missing": ((SQUID,), ALLOWED),
    "systemctl is missing": ((SYSTEMCTL,), ALLOWED),
}
STATE = "dpkg-query -W -f '%${db:Status-Status}\n' mcpwrap"
LEFT = r"""
echo "rules: $(nft list tables)"
echo "routes: $(ip route show table local root 127.77.0.0/16)"
echo "policies: $(ip rule | grep -cv -e 'lookup local' -e 'lookup main' -e 'lookup default')"
echo "addresses: $(ip -o address show to 127.64.0.0/10)"
echo "accounts: $(getent passwd | grep -c mcpw)"
"""
UIDS = "ps -eo uid= | awk '$1 >= 20000 && $1 < 40000'"  # those of servers that run
NOTHING = ["rules: ", "routes: ", "policies: 0", "addresses: ", "accounts: 0"]
SCRIPT = f"""
ip link set lo up
take_away
dpkg -i /root/mcpwrap.deb
dpkg -i /root/mcpwrap.deb
{STATE}
cp /root/config.toml /etc/mcpwrap
mcpwrap doctor || [ $? = 1 ]
dpkg -r mcpwrap
{STATE}
dpkg -i /root/mcpwrap.deb
bring_back
# As a machine has them: the rules are loaded, and the address of a server has a route.
nft -f /usr/lib/mcpwrap/nftables/mcpwrap.nft
ip route replace local 127.77.0.5 dev lo src 127.77.0.5 table local
{LEFT}
take_away
[ ! -e {NFT}.away ] || mv {NFT}.away {NFT}
dpkg --purge mcpwrap
bring_back
{LEFT}
"""


def functions(missing: tuple[str, ...], policy: str) -> str:
    """Return the shell functions that take tools away, as where a package is missing."""
    away = [f"mv {tool} {tool}.away" for tool in missing]
    back = [f"[ ! -e {tool}.away ] || mv {tool}.away {tool}" for tool in missing]
    return "\n".join([
        "take_away() {", policy, *away, "}", "bring_back() {", ALLOWED, *back, "}",
    ])  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=only_in_test_all("one thing less is missing") if number else ())
        for number, case in enumerate(CHROOTS)
    ],
)
def test_dpkg_ends_well_where_nothing_runs(suite: str, tmp_path: Path, case: str) -> None:
    """Installed, installed again, removed, installed, purged: in a root that is not booted."""
    missing, policy = CHROOTS[case]
    with chroots.unbooted(suite, tmp_path) as root:
        (root / "root/config.toml").write_text(a_server("out", 'egress = ["api.example.com"]'))
        said = chroots.run(root, functions(missing, policy) + SCRIPT).splitlines()
    assert [line for line in said if line.startswith("%")] == ["%installed", "%config-files"]
    for tool in (NFT, SQUID):  # doctor says what is missing
        assert any(tool in line for line in said) == (tool in missing), said
    assert any("mcpwrap-gate.socket: could not be checked" in line for line in said)
    assert "rules: table inet mcpwrap" in said  # the twin: there was something to remove
    assert any(line.startswith("routes: local 127.77.0.5") for line in said)
    assert said[-len(NOTHING) :] == NOTHING


PURGED = f"""
ip link set lo up
dpkg -i /root/mcpwrap.deb
nft -f /usr/lib/mcpwrap/nftables/mcpwrap.nft
ip route replace local 127.77.0.5 dev lo src 127.77.0.5 table local
dpkg --purge mcpwrap
{LEFT}
"""


@only_in_test_all("the other kind of root is in make test")
@pytest.mark.parametrize(
    ("kind", "rules"), [((), "rules: table inet mcpwrap"), (chroots.CONTAINER, "rules: ")]
)
def test_purged_in_a_chroot_the_rules_of_the_machine_around_it_stay(
    suite: str, tmp_path: Path, kind: tuple[str, ...], rules: str
) -> None:
    """Its servers may be running. The twin: a container without systemd has rules of its own."""
    with chroots.unbooted(suite, tmp_path) as root:
        left = chroots.run(root, PURGED, kind).splitlines()[-len(NOTHING) :]
    assert left[0] == rules
    assert ("127.77.0.5" in left[1]) == (kind == ())
    assert left[-1] == "accounts: 0"


@only_in_test_all("on a machine that runs; the chroot above is in make test")
def test_an_installation_that_can_start_nothing_leaves_nothing(
    boot: Callable[..., Machine],
) -> None:
    machine = boot(package=False)
    machine.announce("mcpwrap-|Dependency failed")
    machine.as_root(f"mv {NFT} {NFT}.away; dpkg -i /root/mcpwrap.deb")
    assert machine.look("systemctl is-failed mcpwrap-nft") == "failed\n"
    left = machine.as_root(LEFT.replace("nft list", f"{NFT}.away list")).out.splitlines()
    assert left[: len(NOTHING) - 1] == NOTHING[:-1]
    # The twin: it is there again.
    machine.as_root(f"mv {NFT}.away {NFT}; dpkg -i /root/mcpwrap.deb; usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS)
    machine.apply()
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"
    assert "rules: table inet mcpwrap" in machine.as_root(LEFT).out


PRERM = "/var/lib/dpkg/info/mcpwrap.prerm"
STOPPED = "deb-systemd-invoke stop mcpwrap-gate.socket mcpwrap-gate.service || true\n"


@only_in_test_all("a kill at one moment; purge in a chroot is in make test")
def test_after_prerm_was_killed_purge_leaves_nothing(boot: Callable[..., Machine]) -> None:
    machine = boot()
    shutil.copy2(package.build(machine.suite), machine.path("/root/mcpwrap.deb"))
    machine.configure(THREE_SERVERS + a_server("out", 'egress = ["api.example.com"]'))
    machine.apply()
    with machine.session("out") as session:
        assert session.evaluate("result = 1") == 1
        script = machine.read(PRERM)
        assert script.count(STOPPED) == 1
        machine.replace(PRERM, script.replace(STOPPED, f"{STOPPED}kill -KILL $$\n"))
        killed = machine.as_root(f"{GATE_IS_UP}; dpkg -r mcpwrap", status=1)
        assert "killed by signal" in killed.err
        machine.replace(PRERM, script)
        session.close()
    before = machine.as_root(LEFT).out
    assert "rules: table inet mcpwrap" in before  # the twin: nothing was opened meanwhile
    assert "routes: local 127.77." in before
    machine.announce("mcpwrap")
    machine.as_root("dpkg --purge mcpwrap")
    assert machine.as_root(LEFT).out.splitlines() == NOTHING
    assert machine.look(UIDS) == ""


STATE_OF_ONE = "/var/lib/mcpwrap/state/memory"
SHARE = f"{STATE_OF_ONE}/share"


@only_in_test_all("an administrator's own mount; purge in a chroot is in make test")
def test_a_purge_that_may_stop_nothing_ends_servers_and_leaves_a_mount(
    boot: Callable[..., Machine],
) -> None:
    """prerm asks policy-rc.d, which forbids it to stop units; a share is mounted in a state."""
    machine = boot()
    machine.configure(THREE_SERVERS)
    machine.apply()
    machine.call_tool("memory", "read_graph")
    machine.as_root(f"mkdir {SHARE}; mount -t tmpfs tmpfs {SHARE}; echo mine > {SHARE}/file")
    machine.announce("mcpwrap")
    with machine.session("memory") as session:
        session.initialize()
        machine.as_root(f"{DENIED}; dpkg -r mcpwrap")
        assert machine.look(UIDS) != ""  # the twin: the removal stopped nothing
        failed = machine.as_root("dpkg --purge mcpwrap", status=1)
        session.close()
    assert SHARE in failed.err
    assert machine.read(f"{SHARE}/file") == "mine\n"
    assert machine.look(UIDS) == ""
    # No person gets the UID of what is left, and the rules hold.
    assert machine.look(f"stat -c %U {STATE_OF_ONE}") == "mcpw-memory\n"
    assert "rules: table inet mcpwrap" in machine.as_root(LEFT).out
    machine.as_root(f"umount {SHARE}; dpkg --purge mcpwrap; {ALLOWED}")
    assert machine.as_root(LEFT).out.splitlines() == NOTHING
    assert machine.look("ls -d /var/lib/mcpwrap 2>&1 || true").startswith("ls: cannot access")
