"""Machine on an internet, with Python servers whose runs have packages of the bed's index."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.shared import pace
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import GUEST, Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.origins import python_packages
from tests.system.bed.session import Session
from tests.system.support.egress_sessions import machine_with_internet
from tests.system.support.python_servers import PYTHON_SERVER, RunResult, run_python

CACHES = "/var/cache/mcpwrap"
UV_PROGRAM = "as_python/packages/uv_program"
# As an operator of a company index has it: `@pypi` is that index then.
PIP_CONF = "[global]\nindex-url = https://pypi.good.test/simple/\n"
# For the code of a call, before the expression that is its value.
FUNCTIONS = (GUEST / "packages_of_run.py").read_text()
_RUNS = 'runs = { seconds = 10, memory = "256M", tasks = 64 }'
SERVERS = f"""{PYTHON_SERVER}
egress = ["@pypi"]

[mcp_servers.ready]
python = "/usr/bin/python3"
[mcp_servers.ready.mcpwrap]
egress = ["@pypi"]
packages = ["bed-needs"]
{_RUNS}

# Of its cache, 64 MiB are for files of runs; half of the rest is for packages.
[mcp_servers.small]
python = "/usr/bin/python3"
[mcp_servers.small.mcpwrap]
egress = ["@pypi"]
limits = {{ cache = "96M" }}
{_RUNS}

[mcp_servers.plain]
python = "/usr/bin/python3"
[mcp_servers.plain.mcpwrap]
{_RUNS}
"""


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot it, and remove it from the host at the end."""
    with machine_with_internet(suite, Profile.LIMITS, "") as connected:
        machine, _ = connected
        machine.write("/etc/pip.conf", PIP_CONF)
        machine.configure(SERVERS)
        machine.apply()
        yield connected


@contextmanager
def unplugged(machine: Machine, internet: Internet) -> Iterator[None]:
    """Take the network away, for the time of the block; return when it is reached again."""
    internet.unplug()
    try:
        yield
    finally:
        internet.plug()
        # Squid remembers for a moment that the name was not resolved.
        pace.until(lambda: not run_python(machine, "1", packages=["bed-many"]).is_error)


@contextmanager
def python_session(machine: Machine, server: str = "python") -> Iterator[Session]:
    """Hold a session of a Python server open, whose handshake is done."""
    with machine.session(server) as session:
        session.initialize()
        yield session


def ask(session: Session, code: str, *packages: str) -> int:
    """Send a call of `run_python` that reports progress; return its id."""
    arguments = {"code": code, "packages": packages}
    params = {"name": "run_python", "arguments": arguments, "_meta": {"progressToken": "t"}}
    return session.request("tools/call", params)


def await_progress(session: Session, text: str) -> None:
    """Wait until the progress of a call has this text."""
    while text not in session.receive().get("params", {}).get("message", ""):
        pass


def result_of(session: Session, call: int) -> RunResult:
    """Wait for the result of a call."""
    result: dict[str, Any] = session.answer_to(call)["result"]
    return RunResult(
        is_error=result["isError"],
        text=result["content"][0]["text"],
        content=result["content"],
        structured=result.get("structuredContent", {}),
    )


def tool_of(machine: Machine, server: str) -> dict[str, Any]:
    """Return the definition of the tool."""
    with python_session(machine, server) as session:
        answer = session.answer_to(session.request("tools/list"))
    tool: dict[str, Any] = answer["result"]["tools"][0]
    return tool


def downloaded(internet: Internet) -> list[str]:
    """Return the names of the wheels that were requested from the index."""
    paths = [request.path for request in internet.requests()]
    return [path.rpartition("/")[2] for path in paths if path.endswith(".whl")]


def await_download(internet: Internet) -> None:
    """Wait until a wheel was requested."""
    pace.until(lambda: bool(downloaded(internet)))


def names_in(machine: Machine, server: str, folder: str) -> list[str]:
    """Return the names in a folder of the server's cache."""
    return sorted(machine.look(f"ls {CACHES}/{server}/{folder}").split())


def empty_cache(machine: Machine, server: str) -> None:
    """Remove all that a server without sessions has downloaded.

    The folder `environments` stays: run slots that were started in advance have it mounted.
    """
    machine.await_end_of(server)
    folder = f"{CACHES}/{server}"
    machine.as_root(f"rm -rf {folder}/environments/* {folder}/resolutions/* {folder}/uv")


def publish_in_folder(machine: Machine, folder: str, projects: set[str]) -> None:
    """Copy the files of these projects into a folder of the machine, which root owns."""
    machine.as_root(f"mkdir -p {folder}")
    for file in python_packages.all_files():
        if file.project in projects:
            path = machine.path(f"{folder}/{file.name}")
            path.write_bytes(file.content)
            path.chmod(0o644)
