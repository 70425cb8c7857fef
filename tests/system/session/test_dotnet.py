"""A server written in .NET works: its runtime sets the processors of each of its threads."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.system.bed import installed
from tests.system.bed.machine import Machine

FABRIC = "/opt/dotnet/node_modules/@microsoft/fabric-mcp-linux-x64/dist/fabmcp"
ARGS = ["server", "start", "--mode", "all"]
SERVERS = f"""
[mcp_servers.fabric]
command = "{FABRIC}"
args = {json.dumps(ARGS)}
"""


@contextmanager
def with_dotnet(suite: str) -> Iterator[Machine]:
    """Boot a machine with that server, for an agent that can also run it itself."""
    with installed.dotnet_machine(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.configure(SERVERS)
        machine.apply()
        yield machine


STAGE = with_dotnet


def toured(machine: Machine, **how: Any) -> dict[str, Any]:
    """Return the agent's result from the server, with a tool that needs no network."""
    seen: dict[str, Any] = machine.agent("tool_tour", tool="docs_workloads", arguments={}, **how)
    return seen


def test_a_dotnet_server_works(machine: Machine) -> None:
    """In a wrapper and with `mcpwrap run` the result is the same as without either."""
    direct = toured(machine, command=FABRIC, args=ARGS)
    assert direct["version"] == "2025-11-25"
    assert {"docs_workloads", "docs_best-practices", "onelake_list_files"} <= set(direct["tools"])
    assert "lakehouse" in json.loads(direct["text"])["results"]["Workloads"]
    assert toured(machine, server="fabric") == direct
    assert toured(machine, command="mcpwrap", args=["run", "--", FABRIC, *ARGS]) == direct
