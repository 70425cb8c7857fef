"""Machine with a Python server that has a URL too, an approver, and a policy of the story's own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.machine import Machine

SERVER = """
[mcp_servers.python]
python = "/usr/bin/python3"
[mcp_servers.python.mcpwrap]
agents = ["alice"]
expose = "http"
runs = { seconds = 10 }
"""
_PORT = 52100


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot it, with an agent of alice; bob may approve."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("bob", groups="mcpwrap-approvers")
        machine.configure(SERVER)
        machine.apply()
        yield machine


def url(machine: Machine) -> str:
    """Return the URL of the server for alice's agent."""
    uid = machine.uid_of("alice")
    listener = json.loads(machine.read(f"/var/lib/mcpwrap/http/python.{uid}.json"))
    return f"http://{listener['address']}:{_PORT}/"
