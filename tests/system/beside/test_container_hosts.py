"""docker and libvirt, which write packet rules of their own, installed and removed beside us."""

import ipaddress
import json
from typing import Any

import pytest

from mcpwrap.core.names import FIRST_UID, LAST_UID, OUR_PREFIXES
from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.beside import neighbours
from tests.system.beside.neighbours import (
    PAST_SQUID,
    change,
    expect_ours_alone,
    foreign_checks,
    has_egress,
    main_pids,
)
from tests.system.support.egress_recovery import own_address
from tests.system.support.egress_sessions import play
from tests.system.support.tiers import on_release, only_in_test_all

STAGE = neighbours.booted
pytestmark = [
    on_release("trixie"),
    only_in_test_all("installs docker and libvirt; that of nftables.service is in make test"),
]
OURS = [ipaddress.ip_network(f"127.{number}.0.0/16") for number in (77, 78, 79)]
STEPS = {
    "docker": ("systemctl restart docker", "docker network create one", "dpkg -r docker.io"),
    "libvirt": (
        "virsh -c network:///system net-start default",
        "systemctl restart libvirtd",
        "virsh -c network:///system net-destroy default",
        "dpkg -r libvirt-daemon-config-network libvirt-daemon-driver-network",
    ),
}
TABLES = {"docker": ["ip filter", "ip nat"], "libvirt": ["ip filter", "ip nat", "ip mangle"]}


def verdicts(machine: Machine, session: Session) -> dict[str, Any]:
    """Return what our rules decide: of the server, of its neighbour's address, of root."""
    other = own_address(machine, "neighbour")
    root = ("reached", [[own_address(machine, "probe"), 3128]], pace.promised(0.5))
    return {
        "egress": has_egress(session),
        "past Squid": play(session, f"reached({PAST_SQUID}, 0.5)"),
        "as another": play(session, f"reached([['{other}', 3128]], 0.5)"),
        "root as the server": machine.call("outgoing", *root),
    }


@pytest.mark.parametrize("name", STEPS)
def test_it_changes_no_verdict(machine: Machine, internet: Internet, name: str) -> None:
    accounts = set(machine.look("getent passwd; getent group").splitlines())
    with machine.session("probe") as session:
        before = verdicts(machine, session)
        pids = main_pids(machine)
        assert before == {
            "egress": True, "past Squid": [], "as another": [], "root as the server": [],
        }  # fmt: skip
        installed.add_neighbour(machine, name)
        assert verdicts(machine, session) == before
        for step in STEPS[name]:
            change(machine, step)
            assert verdicts(machine, session) == before, step
            if step == STEPS[name][0]:
                tables = machine.look("nft list tables")  # the twin: its own rules are there
                assert all(f"table {table}\n" in tables for table in TABLES[name])
                assert [each["state"] for each in foreign_checks(machine).values()] == ["good"]
                expect_apart(machine, accounts)
        assert main_pids(machine) == pids
    expect_ours_alone(internet)


def expect_apart(machine: Machine, before: set[str]) -> None:
    """Check that neither its networks nor its accounts are among ours."""
    links = json.loads(machine.look("ip -j address"))
    for each in (address for link in links for address in link["addr_info"]):
        network = ipaddress.ip_interface(f"{each['local']}/{each['prefixlen']}").network
        is_ours = each["local"] == "127.0.0.1"  # of lo, in whose network our addresses are
        assert is_ours or not any(network.overlaps(ours) for ours in OURS if network.version == 4)
    routes = machine.look("ip route show table all | grep -v ' dev lo ' || true").split()
    assert not [word for word in routes if word.startswith(("127.77.", "127.78.", "127.79."))]
    lines = set(machine.look("getent passwd; getent group").splitlines()) - before
    for line in lines:
        account, _, number, *_ = line.split(":")
        assert not account.startswith(OUR_PREFIXES)
        assert not FIRST_UID <= int(number) <= LAST_UID
