"""Upgrade of the package while agents work, and the interruptions of each."""

import json
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import BED_AT, Machine

PORT = 52100
ODD = f"""command = "/usr/bin/python3"
args = ["-BP", "{BED_AT}/tests/system/guest/odd_server.py"]"""
RECONNECTED = f"""
[mcp_servers.one]
{ODD}
[mcp_servers.two]
{ODD}
[mcp_servers.two.mcpwrap]
agents = ["alice"]
expose = "http"
"""


def breaks_each_session_once(machine: Machine, command: str) -> None:
    """Run a command as root while agents of alice use the servers above, by stub and by HTTP.

    Each agent must end with a live session, after one that was broken, and without a refusal.
    """
    listener = f"/var/lib/mcpwrap/http/two.{machine.uid_of('alice')}.json"
    places = [[json.loads(machine.read(listener))["address"], PORT]]
    agents = machine.guest_command("reconnecting", "stay", ["one", "two"], places, pace.WAIT_S)
    with machine.session("", command=f"exec {agents}") as session:
        assert session.read_line() == "all have begun"
        machine.as_root(command)
        session.send({})
        met: dict[str, Any] = json.loads(session.read_line())
    assert len(met) == 3
    assert {name: len(each["broken"]) for name, each in met.items()} == dict.fromkeys(met, 1), met
    assert [each["refused"] for each in met.values()] == [[], [], []], met
