"""A machine with servers elsewhere, and what the stories about them have in common."""

import json
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system import conformance, over_http
from tests.system.bed import installed, internet_map, search
from tests.system.bed.internet import Internet
from tests.system.bed.machine import ENV, Machine
from tests.system.bed.session import PROBE

Json = dict[str, Any]
TOKEN = f"tok-{secrets.token_hex(16)}"
BED = "/opt/bed"
PORT = 52100
CLIENT = "/opt/mcp/client/bin/python"


def a_url(name: str, url: str, more: str = 'bearer_token_env_var = "TOKEN"') -> str:
    """Return a server elsewhere for alice, with a token."""
    return f"""
[mcp_servers.{name}]
url = "{url}"
{more}
[mcp_servers.{name}.mcpwrap]
agents = ["alice"]
"""


ODD = f"https://{internet_map.ODD}/odd"
FAR = f"https://{internet_map.MCP}/mcp"
ODD_SERVER = a_url("odd", ODD)


@contextmanager
def booted(suite: str, config: str, names: tuple[str, ...]) -> Iterator[tuple[Machine, Internet]]:
    """Boot a machine on an internet, with servers of which these have a token."""
    machine = installed.installed_machine(suite)
    try:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        with Internet(machine) as internet:
            prepare(machine, config, names)
            yield machine, internet
    finally:
        machine.remove()


def prepare(machine: Machine, config: str, names: tuple[str, ...]) -> None:
    """Give a machine these servers, of which some have a token."""
    machine.write("/opt/probe.py", PROBE)
    machine.write("/opt/search.py", Path(search.__file__).read_text())
    machine.write("/opt/over_http.py", Path(over_http.__file__).read_text())
    for file in Path(str(conformance.__file__)).parent.glob("*.py"):
        machine.write(f"{BED}/tests/system/conformance/{file.name}", file.read_text())
    machine.configure(config)
    machine.apply()
    for name in names:
        set_secret(machine, name, "TOKEN", TOKEN)


def set_secret(machine: Machine, name: str, key: str, value: str) -> None:
    """Set a secret, as an operator does."""
    machine.as_root(f"mcpwrap secret set {name} {key}", stdin=value)


def place(machine: Machine, name: str, user: str = "alice") -> tuple[str, int]:
    """Return where this account finds a server."""
    uid = machine.uid_of(user)
    listener = json.loads(machine.read(f"/var/lib/mcpwrap/http/{name}.{uid}.json"))
    return listener["address"], PORT


def url(machine: Machine, name: str, user: str = "alice") -> str:
    """Return the same as a URL, as in an agent's configuration."""
    return "http://{}:{}/".format(*place(machine, name, user))


def program(machine: Machine, name: str, steps: tuple[Any, ...], of: str) -> str:
    """Return the command that does these steps at the listener of an account."""
    told = json.dumps({"at": place(machine, name, of), "steps": steps})
    return shlex.join(["/usr/bin/python3", "/opt/over_http.py", told])


def steps(
    machine: Machine, name: str, *wanted: tuple[Any, ...], user: str = "alice", of: str = ""
) -> list[Any]:
    """Do what `over_http.py` can, as an agent, one after the other; return what came of each."""
    command = program(machine, name, wanted, of or user)
    came: list[Any] = json.loads(machine.as_user(user, command).out)
    return came


def step(machine: Machine, name: str, *wanted: Any, user: str = "alice", of: str = "") -> Any:
    """Do one of these."""
    return steps(machine, name, wanted, user=user, of=of)[0]


@contextmanager
def beside(
    machine: Machine, name: str, *wanted: tuple[Any, ...]
) -> Iterator[subprocess.Popen[bytes]]:
    """Do the same beside the block, as alice. Its end is waited for, and its status is 0."""
    argv = machine._argv(["sh", "-c", f"exec {program(machine, name, wanted, 'alice')}"], "alice")
    process = subprocess.Popen(
        machine._container.enter(argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    )
    try:
        yield process
    finally:
        if process.poll() is None and process.stdout and not process.stdout.closed:
            process.kill()
        process.wait()


def text_of(answer: Json) -> str:
    """Return what the last message of an answer says: a tool's text, or an error."""
    message = answer["messages"][-1]
    if "error" in message:
        return str(message["error"]["message"])
    return "\n".join(block["text"] for block in message["result"]["content"])


def values_of(internet: Internet, header: str) -> list[list[str]]:
    """Return for each request to an odd server what it had in this header."""
    return [[value for name, value in call.headers if name == header] for call in internet.calls()]


@contextmanager
def far_server(machine: Machine, internet: Internet, token: str = TOKEN) -> Iterator[None]:
    """Have the server of the official library answer on the internet, to whoever has the token."""
    module = "tests.system.conformance.sdk_server"
    argv = [CLIENT, "-W", "ignore", "-m", module, str(internet_map.MCP_PORT), internet_map.MCP]
    process = internet.start([*argv, token], {"PYTHONPATH": BED})
    try:
        look = f"until curl -s -o /dev/null https://{internet_map.MCP}/mcp; do sleep 0.1; done"
        machine.as_root(look)
        yield
    finally:
        process.kill()
        process.wait()
