"""A wrapper reaches no address. Asserted at the listener, while the same probe as root arrives."""

import json
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.support import servers
from tests.system.support.tiers import on_each_release, only_in_test_all

STAGE = servers.wrapped

EVERYWHERE = {
    (protocol, address)
    for protocol in ("tcp", "udp")
    for address in ("127.0.0.1", "::1", "10.9.8.7", "fd00::7")
} | {("icmp", "127.0.0.1"), ("icmp", "::1")}


def arrivals(machine: Machine, *senders: str) -> tuple[set[tuple[str, ...]], dict[str, Any]]:
    """Have each account send to every listener; return the arrivals, and each outcome."""
    machine.as_root(
        "ip link set lo up; ip addr replace 10.9.8.7/32 dev lo;"
        "ip -6 addr replace fd00::7/128 dev lo nodad;"
        "sysctl -qw net.ipv4.ping_group_range='0 2147483647'"
    )
    told = {}
    listen = f"exec {machine.guest_command('network', 'listen')}"
    with machine.session("", user="root", command=listen) as listener:
        assert listener.read_line() == "listening"
        for account in senders:
            who = "root" if account == "root" else "wrapper"
            run = f"setpriv --reuid {account} --regid {account} --clear-groups"
            send = machine.guest_command("network", "send", who, pace.WAIT_S)
            told[account] = json.loads(machine.as_root(f"{run} {send}").out)
        listener.send({})
        came = json.loads(listener.read_line())
    return {tuple(entry) for entry in came}, told


@on_each_release("nftables decides it, with the kernel's interface that its release speaks")
@pytest.mark.parametrize(
    "account",
    [
        "mcpw-probe",
        pytest.param(
            "mcpw-everything", marks=only_in_test_all("in the same set of the rules as mcpw-probe")
        ),
        "mcpwrap-gate",
    ],
)
def test_no_packet_of_a_wrapper_arrives_anywhere(machine: Machine, account: str) -> None:
    came, told = arrivals(machine, "root", account)
    assert {entry[:2] for entry in came if entry[2] == "root"} == EVERYWHERE  # the probes work
    assert {entry for entry in came if entry[2] != "root"} == set()
    refused = {name: answer for name, answer in told[account].items() if "tcp" in name}
    assert set(refused.values()) == {"ECONNREFUSED"}  # at once, and not by a time-out


def test_the_rule_is_what_refuses(machine: Machine) -> None:
    file = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
    rules = machine.read(file)
    rule = "meta skuid @wrapped goto wrapper"
    assert rule in rules
    with machine.unwatched():  # which could load the rules last, as they were meanwhile
        machine.replace(file, rules.replace(rule, ""))
        machine.as_root("systemctl reload mcpwrap-nft")
        came, _ = arrivals(machine, "mcpw-probe")
        assert {entry[:2] for entry in came} == EVERYWHERE
        machine.replace(file, rules)
        machine.as_root("systemctl reload mcpwrap-nft")
    came, _ = arrivals(machine, "mcpw-probe")
    assert came == set()


def test_a_person_made_after_apply_has_their_network(machine: Machine) -> None:
    """useradd takes the next UID after the largest: one right after a wrapper's."""
    uid = machine.add_person("zed")
    assert (
        uid
        == max(machine.uid_of(f"mcpw-{n}") for n in ("everything", "memory", "time", "probe")) + 1
    )
    came, _ = arrivals(machine, "zed")
    assert {entry[:2] for entry in came} == EVERYWHERE


def test_a_server_has_no_network_at_all(machine: Machine) -> None:
    """Besides the packet rules: the service has no interface to send by."""
    with machine.session("probe") as session:
        links = session.evaluate("import socket; result = [n for _, n in socket.if_nameindex()]")
        assert links == ["lo"]
        code = "import socket; socket.create_connection(('10.9.8.7', 4000))"
        assert session.evaluate(code) == "OSError 101"  # ENETUNREACH
    assert "10.9.8.7" in machine.look("ip addr show lo")  # the twin: it exists outside


def test_without_the_rules_no_wrapper_starts(machine: Machine) -> None:
    machine.announce("mcpwrap-check@probe|Dependency failed|mcpwrap@probe")
    with machine.unwatched():
        machine.as_root("systemctl stop 'mcpwrap@probe.service'; nft delete table inet mcpwrap")
        with pytest.raises(CommandFailedError, match="dependency job"):
            machine.as_root("systemctl start mcpwrap@probe")
        refused = machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=70)
        assert "does not start" in refused.err
        machine.apply()
    machine.as_root("systemctl start mcpwrap@probe")  # the twin
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")


@only_in_test_all("second order: the same check with one element of the table missing")
def test_without_its_own_element_a_wrapper_does_not_start(machine: Machine) -> None:
    """The table is there, and an administrator has removed one account from its set."""
    machine.announce("mcpwrap-check@probe|Dependency failed|mcpwrap@probe")
    with machine.unwatched():
        machine.as_root("systemctl stop 'mcpwrap@probe.service'")
        machine.as_root("nft delete element inet mcpwrap wrapped { mcpw-probe }")
        with pytest.raises(CommandFailedError, match="dependency job"):
            machine.as_root("systemctl start mcpwrap@probe")
        machine.as_root("systemctl start mcpwrap@time")  # the twin: the others are as they were
        assert "load the packet rules" in machine.apply()
    machine.as_root("systemctl start mcpwrap@probe")


def test_stopping_the_rules_unit_opens_nothing(machine: Machine) -> None:
    with machine.without_rules_unit():
        came, _ = arrivals(machine, "mcpw-probe")
        assert came == set()
    assert "nothing to do" in machine.apply()


@only_in_test_all("second order: nft loads a file whole or not at all")
def test_a_mistake_in_the_rules_leaves_the_old_ones(machine: Machine) -> None:
    before = machine.look("nft list table inet mcpwrap")
    rules = machine.read("/usr/lib/mcpwrap/nftables/mcpwrap.nft")
    machine.replace("/usr/lib/mcpwrap/nftables/mcpwrap.nft", rules + "\nno such word\n")
    machine.announce("mcpwrap-nft")
    machine.as_root("systemctl reload mcpwrap-nft", status=1)
    assert machine.look("nft list table inet mcpwrap") == before
    machine.replace("/usr/lib/mcpwrap/nftables/mcpwrap.nft", rules)
    machine.as_root("systemctl reload mcpwrap-nft")
