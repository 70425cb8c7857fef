"""Debian's own firewall, which flushes all packet rules, beside a session with egress."""

import pytest

from tests.system.bed import internet_map as world
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.beside.neighbours import (
    change,
    expect_ours_alone,
    foreign_checks,
    has_egress,
    main_pids,
    trying_past_squid,
)
from tests.system.support.egress_recovery import booted, changed
from tests.system.support.tiers import only_in_test_all

STAGE = booted
STEPS = ("start", "reload", "restart", "stop")  # of nftables.service


def test_debians_firewall_comes_and_goes_beside_a_session(
    machine: Machine, internet: Internet
) -> None:
    """Its file begins with `flush ruleset`: our rules are back within a second, each time."""
    with machine.session("probe") as session:
        assert has_egress(session)
        pids = main_pids(machine)
        with trying_past_squid(session):
            for step in STEPS:
                change(machine, f"systemctl {step} nftables")
        assert has_egress(session)
        assert main_pids(machine) == pids
    expect_ours_alone(internet)


# The company's own table, as a file of nftables.service has it.
TABLE = """#!/usr/sbin/nft -f
flush ruleset
table inet corp {
    chain out {
        type filter hook output priority filter; policy accept;
        RULE
    }
}
"""
SQUID = 'meta skuid "mcpwrap-proxy" tcp dport 443 drop'
LOOPBACK = 'oifname "lo" ip daddr 127.77.0.0/16 reject'
FILE = "/etc/nftables.conf"


@pytest.mark.parametrize(
    ("rule", "trial", "remedy"),
    [
        (SQUID, "mcpwrap-proxy to public addresses, port 443", "meta skuid mcpwrap-proxy accept"),
        pytest.param(
            LOOPBACK,
            "the front to Squid",
            "oifname lo accept",
            marks=only_in_test_all("another way through the same check"),
        ),
    ],
)
def test_doctor_names_the_rule_that_drops_what_squid_sends(
    machine: Machine, internet: Internet, rule: str, trial: str, remedy: str
) -> None:
    if rule == LOOPBACK:  # Squid does not hear itself either, and its watchdog ends it
        machine.announce("mcpwrap-squid-")
    with changed(machine, FILE, TABLE.replace("RULE", rule)):
        change(machine, "systemctl restart nftables")
        before = machine.look("nft list table inet corp")
        found = foreign_checks(machine)[trial]
        assert found["state"] == "failed"
        assert "dropped by inet corp out handle " in found["found"]
        assert rule.rsplit(maxsplit=1)[-1] in found["found"]
        line = found["fix"].split("`")[1].removeprefix("sudo ")
        assert line == f"nft insert rule inet corp out {remedy}"
        assert machine.look("nft list table inet corp") == before  # doctor wrote nothing there
        assert {each.address for each in internet.packets()} <= {world.RESOLVER}
        machine.as_root(line)
        assert foreign_checks(machine)[""]["state"] == "good"  # the twin
    change(machine, "systemctl stop nftables")
    assert "mcpwrap-doctor" not in machine.look("nft list tables")
