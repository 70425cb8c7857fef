"""HTTP agents: they use a server of this machine as an agent over pipes does."""

from typing import Any

from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.http import remote
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = remote.connected
pytestmark = ON_ONE_RELEASE

ECHO: tuple[Any, ...] = (("begin", {}), ("use", "echo", {"message": "hi"}, {}), ("end", {}))
HIDING = "version: 1\nrules: [{name: hidden, tool: echo, action: hide}]\n"


def test_all_of_the_handshake_era_is_there(machine: Machine) -> None:
    """Progress, sampling, elicitation and roots: traffic in both directions."""
    by_http = machine.agent("handshake_tour", url=remote.url(machine, "everything"))
    by_pipes: dict[str, Any] = machine.agent("handshake_tour", server="everything")
    assert by_http == by_pipes
    assert by_http["sampled"]


def test_all_of_the_era_without_a_handshake_is_there(machine: Machine) -> None:
    by_http = machine.agent("stateless_tour", url=remote.url(machine, "time"))
    assert by_http == machine.agent("stateless_tour", server="time")


def test_nobody_else_gets_there(machine: Machine) -> None:
    for user in ("mallory", "root"):
        came = remote.step(machine, "everything", "reach", user=user, of="alice")
        assert came in {"ConnectionRefusedError", "PermissionError"}, user
    assert remote.step(machine, "everything", "reach") == "there"


def test_a_server_that_is_not_exposed_has_no_listener(machine: Machine) -> None:
    units = machine.look("systemctl list-units --all --plain 'mcpwrap-http@*'")
    assert "mcpwrap-http@time." in units
    assert "mcpwrap-http@piped." not in units


def test_the_policy_is_the_same_gates(machine: Machine) -> None:
    machine.write("/etc/mcpwrap/policy.yaml", HIDING)
    machine.as_root("systemctl reload mcpwrap-gate")
    try:
        seen = remote.steps(machine, "everything", *ECHO)
        assert "error" in seen[1]["messages"][-1]
    finally:
        machine.as_root("rm /etc/mcpwrap/policy.yaml && systemctl reload mcpwrap-gate")
    seen = remote.steps(machine, "everything", *ECHO)
    assert remote.text_of(seen[1]) == "Echo: hi"


@only_in_test_all("a second reboot: test_http_listeners.py shows that addresses outlive one")
def test_after_a_restart_an_agent_finds_it_where_it_was(
    machine: Machine, internet: Internet
) -> None:
    before = remote.url(machine, "time")
    machine.reboot()
    internet.plug()
    assert remote.url(machine, "time") == before
    assert machine.agent("stateless_tour", url=before)["noon"]


def test_a_session_ends_with_the_agent_and_leaves_nothing(machine: Machine) -> None:
    came = remote.steps(machine, "everything", ("begin", {}), ("use", "echo", {"message": "1"}, {}))
    session = came[0]["headers"]["mcp-session-id"]
    assert machine.pids("everything")
    assert remote.steps(machine, "everything", ("resume", session), ("end", {}))[1] == 200
    machine.await_end_of("everything", 4.0)
    gone = remote.steps(machine, "everything", ("resume", session), ("use", "echo", {}, {}))[1]
    assert gone["status"] == 404
