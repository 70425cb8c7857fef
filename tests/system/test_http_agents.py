"""An agent that speaks HTTP uses a server of this machine as one that speaks over pipes does."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system import over_http, remote
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE
from tests.system.releases import ON_ONE_RELEASE
from tests.system.servers import NODE_MODULES

pytestmark = ON_ONE_RELEASE

CONFIG = f"""
[mcp_servers.everything]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]
[mcp_servers.everything.mcpwrap]
expose = "http"

[mcp_servers.time]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
[mcp_servers.time.mcpwrap]
expose = "http"

[mcp_servers.piped]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
"""
ECHO: tuple[Any, ...] = (("begin", {}), ("use", "echo", {"message": "hi"}, {}), ("end", {}))
HIDING = "version: 1\nrules: [{name: hidden, tool: echo, action: hide}]\n"


@pytest.fixture(scope="module")
def local(suite: str) -> Iterator[Machine]:
    machine = installed.installed_machine(suite)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("mallory")
        machine.write("/opt/probe.py", PROBE)
        machine.write("/opt/over_http.py", remote.source(over_http))
        machine.configure(CONFIG)
        machine.apply()
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def machine(local: Machine) -> Iterator[Machine]:
    yield local
    assert local.unannounced() == []


def test_all_of_the_handshake_era_is_there(machine: Machine) -> None:
    """Progress, sampling, elicitation and roots: what goes both ways."""
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
    units = machine.as_root("systemctl list-units --all --plain 'mcpwrap-http@*'").out
    assert "mcpwrap-http@time." in units
    assert "mcpwrap-http@piped." not in units


def test_the_policy_is_the_same_gates(machine: Machine) -> None:
    machine.write("/etc/mcpwrap/policy.yaml", HIDING)
    machine.as_root("systemctl reload mcpwrap-gate")
    try:
        seen = remote.steps(
            machine,
            "everything",
            ("begin", {}),
            ("use", "echo", {"message": "hi"}, {}),
            ("end", {}),
        )
        assert "error" in seen[1]["messages"][-1]
    finally:
        machine.as_root("rm /etc/mcpwrap/policy.yaml && systemctl reload mcpwrap-gate")
    seen = remote.steps(machine, "everything", *ECHO)
    assert remote.text_of(seen[1]) == "Echo: hi"


def test_after_a_restart_an_agent_finds_it_where_it_was(machine: Machine) -> None:
    before = remote.url(machine, "time")
    machine.reboot()
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
