"""Machine whose interpreter has numpy, pandas and matplotlib of Debian, with a Python server."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.machine import Machine

SERVER = '[mcp_servers.python]\npython = "/usr/bin/python3"\n'


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot it, with an agent of alice. Runs have the limits that apply without a setting."""
    with installed.science_machine(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.configure(SERVER)
        machine.apply()
        yield machine
