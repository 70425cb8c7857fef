"""Machine with a Python server, and calls of its tool `run_python` by the official client."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.system.bed import installed
from tests.system.bed.machine import Machine

PYTHON_SERVER = """
[mcp_servers.python]
python = "/usr/bin/python3"
[mcp_servers.python.mcpwrap]
runs = { seconds = 10, memory = "256M", tasks = 64 }
"""
# For runs that take all processes that their UID may have: the kernel counts them over all machines
# of the host, whose servers called `python` have the same UIDs.
LIMITED = "limited"
LIMITED_SERVER = PYTHON_SERVER.replace("mcp_servers.python", f"mcp_servers.{LIMITED}")


@dataclass(frozen=True)
class RunResult:
    """Result of a call: the structured content, and the content blocks as JSON objects."""

    is_error: bool
    text: str  # of the first block
    content: list[dict[str, Any]]
    structured: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return a field of the structured result, such as `stdout`."""
        try:
            return self.structured[name]
        except KeyError:
            raise AttributeError(f"{name} of {self}") from None


def run_python(
    machine: Machine, code: str, *, user: str = "alice", server: str = "python", **arguments: Any
) -> RunResult:
    """Execute code in a new session; return the result."""
    [result] = run_all(machine, [{"code": code, **arguments}], user=user, server=server)
    return result


def run_all(
    machine: Machine, calls: list[dict[str, Any]], *, user: str = "alice", server: str = "python"
) -> list[RunResult]:
    """Make these calls one after the other in one session."""
    found = machine.agent("run_python_calls", user=user, server=server, calls=calls)
    return [RunResult(**each) for each in found]


@contextmanager
def with_python(suite: str) -> Iterator[Machine]:
    """Boot a machine with two Python servers, and an agent called alice."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("mallory")
        machine.configure(PYTHON_SERVER + LIMITED_SERVER)
        machine.apply()
        yield machine
