"""firewalld and ufw beside a session with egress, and what doctor says where they drop it."""

import pytest

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed import internet_map as world
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.beside import neighbours
from tests.system.beside.neighbours import (
    change,
    expect_ours_alone,
    foreign_checks,
    has_egress,
    main_pids,
    mend,
    trying_past_squid,
)
from tests.system.support.egress_sessions import play
from tests.system.support.tiers import on_release, only_in_test_all

STAGE = neighbours.booted
pytestmark = [
    on_release("trixie"),
    only_in_test_all("installs firewalls; that of nftables.service is in make test"),
]
PANIC = "firewall-cmd --panic-on"
DIRECT = "--direct --add-rule ipv4 filter OUTPUT 0"
STEPS = {
    "firewalld": (
        "systemctl start firewalld",
        "firewall-cmd --reload",
        "firewall-cmd --complete-reload",
        f"firewall-cmd {DIRECT} -d 203.0.113.5 -j DROP",
        "firewall-cmd --reload",
        PANIC,
        "firewall-cmd --panic-off",
        "systemctl restart firewalld",
        "systemctl stop firewalld",
    ),
    "ufw": (
        "ufw --force enable",
        "ufw reload",
        "ufw default deny incoming",
        "systemctl restart ufw",
        "rm -f /etc/ufw/*.rules.*_*; ufw --force reset",
        "ufw --force enable",
        "ufw disable",
    ),
}
OFF = {
    "firewalld": "systemctl disable -q --now firewalld; rm -f /etc/firewalld/direct.xml",
    # It keeps the rules, with the second in the file's name, and refuses when there is such a file.
    "ufw": "ufw disable; rm -f /etc/ufw/*.rules.*_*; ufw --force reset",
}
SQUID_IS_REACHED = "reached([[own(), 3128]], 1) != []"


def install(machine: Machine, name: str) -> None:
    """Install a firewall, and switch it off."""
    if not machine.path(f"/usr/share/doc/{name}").exists():
        installed.add_neighbour(machine, name)
    switch_off(machine, name)


def switch_off(machine: Machine, name: str) -> None:
    """Switch a firewall off, and remove what it leaves in the kernel."""
    machine.as_root(OFF[name])
    machine.as_root("for t in 'ip filter' 'ip6 filter'; do nft delete table $t || true; done")


@pytest.mark.parametrize("name", STEPS)
def test_a_firewall_comes_and_goes_beside_a_session(
    machine: Machine, internet: Internet, name: str
) -> None:
    install(machine, name)
    internet.forget()
    with machine.session("probe") as session:
        assert has_egress(session)
        pids = main_pids(machine)
        with trying_past_squid(session):
            for step in STEPS[name]:
                change(machine, step)
                # The session's call is answered each time; panic drops all packets, also on lo.
                assert play(session, SQUID_IS_REACHED) is (step != PANIC), step
                assert step == PANIC or has_egress(session), step
        assert main_pids(machine) == pids
    expect_ours_alone(internet)
    switch_off(machine, name)


POLICY = "firewall-cmd --permanent --policy out"
DROPPED = {
    "ufw denies outgoing": ("ufw", "ufw default deny outgoing && ufw --force enable", "ufw"),
    "a rule of ufw": ("ufw", "ufw deny out 443/tcp && ufw --force enable", "ufw"),
    "a policy of firewalld": (
        "firewalld",
        (
            "systemctl start firewalld && firewall-cmd --permanent --new-policy out &&"
            f"{POLICY} --add-ingress-zone HOST && {POLICY} --add-egress-zone ANY &&"
            f"{POLICY} --set-target DROP && firewall-cmd --reload"
        ),
        "firewall-cmd --permanent --policy out --add-rich-rule",
    ),
    "a direct rule of firewalld": (
        "firewalld",
        (
            f"systemctl start firewalld && firewall-cmd --permanent {DIRECT} -p tcp --dport 443"
            " -j DROP && firewall-cmd --reload"
        ),
        "firewall-cmd --permanent --direct --add-rule ipv4 filter OUTPUT -1",
    ),
    "panic of firewalld": (
        "firewalld",
        f"systemctl start firewalld && {PANIC}",
        "firewall-cmd --panic-off",
    ),
}


@pytest.mark.parametrize("case", DROPPED)
def test_what_doctor_says_lets_squid_out(machine: Machine, internet: Internet, case: str) -> None:
    name, deny, line = DROPPED[case]
    install(machine, name)
    if "panic" in case:  # Squid's health check gets no answer: systemd restarts it after 10 s
        machine.announce("mcpwrap-(squid-|front)")
    with machine.session("probe") as session:
        assert has_egress(session)
        machine.as_root(deny)
        internet.forget()
        foreign = machine.look("nft list tables")
        found = foreign_checks(machine)
        assert found["mcpwrap-proxy to public addresses, port 443"]["state"] == "failed"
        assert machine.look("nft list tables") == foreign
        assert {each.address for each in internet.packets()} <= {world.RESOLVER}
        for each in found.values():
            assert "dropped by" in each["found"]
            assert line in each["fix"]
        for fix in {each["fix"] for each in found.values()}:
            mend(machine, fix)
        assert [each["state"] for each in foreign_checks(machine).values()] == ["good"]
        pace.until(lambda: has_egress(session))  # of a Squid that was restarted, too
    if "policy" in case:
        machine.as_root("firewall-cmd --permanent --delete-policy out")
    switch_off(machine, name)
