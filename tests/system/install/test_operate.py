"""What an operator asks, and what a reboot leaves."""

import json

import pytest

from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.support import servers
from tests.system.support.tiers import on_each_release

STAGE = servers.wrapped


def test_status_shows_each_server(machine: Machine) -> None:
    machine.as_root("systemctl restart mcpwrap@probe")  # which ends sessions of earlier stories
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        # The wrapper's word of it may be still under way.
        counts = "mcpwrap status probe | grep -q 'ready: 1 of 16 sessions'"
        machine.as_user("alice", f"until {counts}; do :; done")
        rows = {
            row["name"]: row
            for row in json.loads(machine.as_user("alice", "mcpwrap status --json").out)
        }
    assert set(rows) == {"everything", "memory", "probe", "time"}
    row = rows["probe"]
    assert (row["uid"], row["account"]) == (machine.uid_of("mcpw-probe"), "mcpw-probe")
    assert (row["state"], row["sessions"]) == ("running", 1)
    assert row["memory_bytes"] > 1_000_000


def test_status_of_an_unknown_server_is_an_error(machine: Machine) -> None:
    assert "no server 'nosuch'" in machine.as_user("alice", "mcpwrap status nosuch", status=2).err


def test_status_tells_a_server_that_is_broken(machine: Machine) -> None:
    machine.as_root("systemctl stop mcpwrap@probe.socket mcpwrap@probe.service")
    done = machine.as_user("alice", "mcpwrap status probe", status=1)
    assert "stopped" in done.out
    assert "sudo mcpwrap restart probe" in done.out
    assert "listen for sessions of probe" in machine.apply()
    machine.as_user("alice", "mcpwrap status probe")


def test_status_tells_that_nobody_can_get_in(machine: Machine) -> None:
    machine.as_root("systemctl stop mcpwrap-gate.socket mcpwrap-gate.service")
    err = machine.as_user("alice", "mcpwrap status", status=1).err
    assert err == "the gate does not listen: `sudo systemctl start mcpwrap-gate.socket`\n"
    machine.as_root("systemctl start mcpwrap-gate.socket")
    machine.as_user("alice", "mcpwrap status")


def test_score_of_a_node_server_is_good(machine: Machine) -> None:
    rows = {row["name"]: row for row in json.loads(machine.as_root("mcpwrap score --json").out)}
    assert rows["everything"]["exposure"] <= 1.5
    assert (
        "SAFE" in machine.as_root("mcpwrap score everything").out
        or rows["everything"]["verdict"] == "OK"
    )


def test_systemctl_shows_what_a_wrapper_does(machine: Machine) -> None:
    machine.as_root("systemctl restart mcpwrap@everything")
    shown = machine.show("mcpwrap@everything", "ActiveState", "StatusText")
    assert shown["ActiveState"] == "active"
    assert shown["StatusText"].startswith("ready: 0 of 16 sessions")


def test_an_unknown_server_is_not_started(machine: Machine) -> None:
    machine.announce("mcpwrap(-check)?@nosuch")
    with pytest.raises(CommandFailedError, match=r"[Aa]ssert|dependency"):
        machine.as_root("systemctl start mcpwrap@nosuch")
    machine.as_root("systemctl start mcpwrap-check@nosuch", status=1)  # and so it has ended too


def test_apply_needs_root_and_plan_does_not(machine: Machine) -> None:
    assert "sudo mcpwrap apply" in machine.as_user("alice", "mcpwrap apply", status=2).err
    plan = json.loads(machine.as_user("alice", "mcpwrap plan --json").out)
    assert plan["steps"] == []
    assert "packet rules" in plan["not_seen"][0]
    assert json.loads(machine.as_root("mcpwrap plan --json").out) == {
        "steps": [],
        "not_seen": [],
        "notes": [],
    }


@on_each_release("systemd decides the order of units")
def test_after_a_reboot_the_rules_are_there_first(machine: Machine) -> None:
    machine.as_root("systemctl add-wants multi-user.target mcpwrap@everything.service")
    machine.reboot()
    times = {
        unit: int(
            machine.show(unit, "ActiveEnterTimestampMonotonic")["ActiveEnterTimestampMonotonic"]
        )
        for unit in (
            "mcpwrap-nft.service",
            "network-pre.target",
            "sockets.target",
            "mcpwrap@everything.service",
        )
    }
    assert (
        0
        < times["mcpwrap-nft.service"]
        < min(times["sockets.target"], times["mcpwrap@everything.service"])
    )
    assert times["mcpwrap-nft.service"] <= times["network-pre.target"]
    elements = machine.look("nft list set inet mcpwrap wrapped")
    for name in ("everything", "memory", "probe", "time"):
        assert str(machine.uid_of(f"mcpw-{name}")) in elements
    assert "nothing to do" in machine.apply()
    assert machine.call_tool("everything", "echo", {"message": "again"}) == "Echo: again"
    machine.as_root("rm /etc/systemd/system/multi-user.target.wants/mcpwrap@everything.service")


def test_a_reboot_without_the_rules_starts_no_wrapper(machine: Machine) -> None:
    machine.as_root("systemctl mask mcpwrap-nft.service")
    machine.reboot()
    machine.announce("mcpwrap")
    refused = machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=70)
    assert "does not start" in refused.err
    machine.as_root("systemctl unmask mcpwrap-nft.service")
    machine.apply()
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")  # the twin
