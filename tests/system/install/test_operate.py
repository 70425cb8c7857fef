"""Operation: `status` and `doctor` describe each server, and rules precede wrappers at boot."""

import json

import pytest

from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.support import servers
from tests.system.support.tiers import PRINCIPALS, needs_limits, on_each_release

STAGE = servers.wrapped


def test_status_shows_each_server(machine: Machine) -> None:
    machine.as_root("systemctl restart mcpwrap@probe")  # which ends sessions of earlier stories
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        # The wrapper's message about it may still be under way.
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


@needs_limits("the controller of memory counts it", PRINCIPALS)
def test_status_has_the_memory_of_a_running_server(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        [row] = json.loads(machine.as_user("alice", "mcpwrap status probe --json").out)
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


UNSET = """
[mcp_servers.unset]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
env = { TOKEN = "${TOKEN}" }
[mcp_servers.unset.mcpwrap]
agents = ["alice"]
"""
READ = "unset: read /home/alice/.a"
OPEN = "/run/systemd/system/mcpwrap@unset.service.d/open.conf"


def doctor_of_unset(machine: Machine, status: int) -> dict[str, str]:
    """Return the doctor's findings for the server, by check."""
    found = json.loads(machine.as_root("mcpwrap doctor unset --json", status=status).out)
    return {c["what"]: c["state"] for c in found if c["what"].startswith("unset: ")}


def test_the_doctor_judges_nothing_of_a_server_that_does_not_run(machine: Machine) -> None:
    before = machine.read("/etc/mcpwrap/config.toml")
    machine.as_root("chmod 755 /home/alice; install -o alice -m 644 /dev/null /home/alice/.a")
    machine.configure(before + UNSET)
    machine.apply()
    for _ in range(3):
        machine.announce("unset")
        found = doctor_of_unset(machine, status=1)
        assert found.pop("unset: a session of alice") == "failed"
        assert found.pop("unset: program") == "good"  # which is visible without a wrapper
        assert READ in found
        assert {w: s for w, s in found.items() if "sealed" not in w and s != "unknown"} == {}
    machine.as_root("mcpwrap secret set unset TOKEN", stdin="longer-than-eight")
    machine.await_admission("unset")
    assert set(doctor_of_unset(machine, status=0).values()) == {"good"}
    # The twin: an open path is found, from inside.
    machine.write(OPEN, "[Service]\nProtectHome=no\n")
    machine.as_root("systemctl daemon-reload; systemctl restart mcpwrap@unset")
    found = doctor_of_unset(machine, status=1)
    assert [what for what, state in found.items() if state == "failed"] == [READ]
    machine.as_root(f"rm {OPEN}; systemctl daemon-reload; mcpwrap secret remove unset TOKEN")
    machine.as_root("chmod 700 /home/alice; rm /home/alice/.a")
    machine.configure(before)
    machine.apply()


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
    seen = json.loads(machine.as_root("mcpwrap plan --json").out)
    (note,) = [each for each in seen.pop("notes") if "cgroup controllers" not in each]
    assert note.startswith("WIDENED by [mcp_servers.probe] inherits_any: ")
    assert seen == {"steps": [], "not_seen": []}


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
