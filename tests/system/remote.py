"""A machine with servers elsewhere, and what the stories about them have in common."""

import json
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.system import conformance, over_http
from tests.system.bed import installed, internet_map, search
from tests.system.bed.internet import Internet
from tests.system.bed.machine import ENV, Machine
from tests.system.bed.session import PROBE

Json = dict[str, Any]
TOKEN = f"tok-{secrets.token_hex(16)}"
BED = "/opt/bed"
CODE = "/usr/lib/mcpwrap/mcpwrap"
PORT = 52100
PROGRAM = "/usr/bin/python3 /opt/over_http.py"
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
    machine.write("/opt/search.py", source(search))
    machine.write("/opt/over_http.py", source(over_http))
    for file in Path(str(conformance.__file__)).parent.glob("*.py"):
        machine.write(f"{BED}/tests/system/conformance/{file.name}", file.read_text())
    machine.configure(config)
    machine.apply()
    for name in names:
        set_secret(machine, name, "TOKEN", TOKEN)


def source(module: ModuleType) -> str:
    """Return the text of a module that runs in a machine."""
    return Path(str(module.__file__)).read_text()


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


def steps(
    machine: Machine, name: str, *wanted: tuple[Any, ...], user: str = "alice", of: str = ""
) -> list[Any]:
    """Do what `over_http.py` can, as an agent, one after the other; return what came of each."""
    told = json.dumps({"at": place(machine, name, of or user), "steps": wanted})
    came: list[Any] = json.loads(machine.as_user(user, PROGRAM, stdin=told).out)
    return came


def step(machine: Machine, name: str, *wanted: Any, user: str = "alice", of: str = "") -> Any:
    """Do one of these."""
    return steps(machine, name, wanted, user=user, of=of)[0]


@contextmanager
def beside(
    machine: Machine, name: str, *wanted: tuple[Any, ...], user: str = "alice"
) -> Iterator[subprocess.Popen[bytes]]:
    """Do the same beside the block, which reads what came if it wants to; then it is over."""
    told = json.dumps({"at": place(machine, name, user), "steps": wanted})
    process = subprocess.Popen(
        machine._container.enter(machine._argv(["sh", "-c", f"exec {PROGRAM}"], user)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV,
    )  # fmt: skip
    assert process.stdin
    process.stdin.write(told.encode())
    process.stdin.close()
    process.stdin = None  # so that nobody closes it again
    try:
        yield process
    finally:
        machine.as_user(user, f"pkill -u {user} -f '^{PROGRAM}' || true")
        process.communicate()


def until(is_so: Callable[[], bool], within_s: float = 15.0) -> None:
    """Look until something is so.

    Raises:
        AssertionError: it is not, after `within_s`.
    """
    give_up_at = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not come so far"


# Every length of time of ours on the way, by file: how long it is.
CLOCKS = {
    "as_http/state": "still_here_every_s: float = 15.0",
    "as_http/gates": "IDLE_S = 60.0",
    "as_wrapper/remote/patience": "HEAD_S = 300.0",
}
SQUID = "/var/lib/mcpwrap/squid/proxy-1.conf"
PERIOD = re.compile(r"^(\w+) (\d+) (second|minute|hour|day)s?$", re.MULTILINE)
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@contextmanager
def faster(machine: Machine, times: int) -> Iterator[None]:
    """Have what takes an hour take so many times less, for the time of the block."""

    def shorter(found: re.Match[str]) -> str:
        return f"{found[1]} {max(1, int(found[2]) * SECONDS[found[3]] // times)} seconds"

    texts = {file: machine.read(f"{CODE}/{file}.py") for file in CLOCKS}
    squid = machine.read(SQUID)
    restart = "systemctl restart mcpwrap-squid-proxy@1; systemctl stop 'mcpwrap@odd.service'"
    restart += f" 'mcpwrap-http@odd.{machine.uid_of('alice')}.service'"
    try:
        for file, line in CLOCKS.items():
            name, _, value = line.partition(" = ")
            assert texts[file].count(line) == 1, f"{file} has no {line}"
            quick = texts[file].replace(line, f"{name} = {float(value) / times}")
            machine.write(f"{CODE}/{file}.py", quick)
        machine.write(SQUID, PERIOD.sub(shorter, squid))
        machine.as_root(restart)
        yield
    finally:
        for file, text in texts.items():
            machine.write(f"{CODE}/{file}.py", text)
        machine.write(SQUID, squid)
        machine.as_root(restart)


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
