"""Machine with remote servers and listeners for agents, and the steps that its stories share."""

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.shared import pace
from tests.system.bed import installed, internet_map
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import BED_AT, CLIENT, Machine
from tests.system.bed.session import Session
from tests.system.support.servers import NODE_MODULES

Json = dict[str, Any]
TOKEN = f"tok-{secrets.token_hex(16)}"
CODE = "/usr/lib/mcpwrap/mcpwrap"
PORT = 52100
LOOK_EVERY_S = 0.02


def a_url(name: str, url: str, more: str = 'bearer_token_env_var = "TOKEN"') -> str:
    """Return a remote server for alice, with a token."""
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
ELSEWHERE = (
    ODD_SERVER
    + a_url("old", f"{ODD}/old")
    + a_url("far", FAR)
    + a_url("keyed", ODD, 'headers = { X-Api-Key = "${TOKEN}", X-Of = "bed" }')
    + a_url("noport", "https://odd.good.test:9443/odd")
    + a_url("nowhere", "https://nothing.good.test/odd")
    + a_url("expired", "https://expired.good.test/odd")
    + a_url("wrongname", "https://wrongname.good.test/odd")
    + a_url("stranger", "https://badcert.good.test/odd")
    + a_url("inside", "https://internal.test/odd", "")
    + a_url("elsewhere", f"{ODD}/old-elsewhere", "")
)
OF_TWO_AGENTS = f"""
[mcp_servers.both]
url = "{ODD}"
bearer_token_env_var = "TOKEN"
[mcp_servers.both.mcpwrap]
agents = ["alice", "bob"]
shared = true
"""
HERE = f"""
[mcp_servers.everything]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]
[mcp_servers.everything.mcpwrap]
agents = ["alice"]
expose = "http"

[mcp_servers.time]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
[mcp_servers.time.mcpwrap]
agents = ["alice"]
expose = "http"

[mcp_servers.piped]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
[mcp_servers.piped.mcpwrap]
agents = ["alice"]
"""


@contextmanager
def connected(suite: str) -> Iterator[Connected]:
    """Boot a machine on an internet, with agents of alice and of bob; carol approves."""
    with installed.booted(suite) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.add_person("carol", groups="mcpwrap-approvers")
        machine.add_person("mallory")
        with Internet(machine) as internet:
            prepare(machine, ELSEWHERE + OF_TWO_AGENTS + HERE)
            yield Connected(machine, internet)


def prepare(machine: Machine, config: str) -> None:
    """Give a machine these servers, and a token to each that declares it."""
    machine.configure(config)
    machine.apply()
    machine.write("/root/token.env", f"TOKEN={TOKEN}\n", mode=0o600)
    machine.as_root("mcpwrap secret import /root/token.env; rm /root/token.env")


def set_secret(machine: Machine, name: str, key: str, value: str) -> None:
    """Set a secret, as an operator does."""
    machine.as_root(f"mcpwrap secret set {name} {key}", stdin=value)


def place(machine: Machine, name: str, user: str = "alice") -> tuple[str, int]:
    """Return the address of a server for this account."""
    uid = machine.uid_of(user)
    listener = json.loads(machine.read(f"/var/lib/mcpwrap/http/{name}.{uid}.json"))
    return listener["address"], PORT


def url(machine: Machine, name: str, user: str = "alice") -> str:
    """Return the same as a URL, as in an agent's configuration."""
    return "http://{}:{}/".format(*place(machine, name, user))


def steps(
    machine: Machine, name: str, *wanted: tuple[Any, ...], user: str = "alice", of: str = ""
) -> list[Any]:
    """Take steps of `guest/http_agent.py`, one after the other; return the result of each."""
    told = json.dumps(_plan(machine, name, wanted, of or user))
    command = machine.guest_command("http_agent", "take_steps")
    came: list[Any] = json.loads(machine.as_user(user, command, stdin=told).out.splitlines()[-1])
    return came


def step(machine: Machine, name: str, *wanted: Any, user: str = "alice", of: str = "") -> Any:
    """Take one of these."""
    return steps(machine, name, wanted, user=user, of=of)[0]


@contextmanager
def beside(
    machine: Machine, name: str, *wanted: tuple[Any, ...], user: str = "alice"
) -> Iterator[Session]:
    """Take the same during the block, which may read the line with the results; then end them."""
    command = f"exec {machine.guest_command('http_agent', 'take_steps_until_closed')}"
    with machine.session("", user=user, command=command) as session:
        session.send(_plan(machine, name, wanted, user))
        yield session


def _plan(machine: Machine, name: str, wanted: tuple[tuple[Any, ...], ...], user: str) -> Json:
    return {"at": place(machine, name, user), "within_s": pace.WAIT_S, "steps": wanted}


# ------------------------------------------------------------------------------- form of requests
SPEC = "io.modelcontextprotocol/"
META = {SPEC + "protocolVersion": "2026-07-28", SPEC + "clientCapabilities": {}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
BODY = json.dumps(LIST)
PLAIN = {
    "Host": "{host}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/list",
    "Content-Length": str(len(BODY)),
}


def request(
    *more: str, line: str = "POST / HTTP/1.1", body: str = BODY, **instead: str | None
) -> str:
    """Return a request that is valid but for the given parts. Underscores are hyphens."""
    changed = {name.replace("_", "-").lower(): value for name, value in instead.items()}
    head = [line]
    for name, value in PLAIN.items():
        wanted = changed.pop(name.lower(), value)
        if wanted is not None:
            head.append(f"{name}: {wanted}")
    head += [f"{name}: {value}" for name, value in changed.items()]
    return "\r\n".join([*head, *more, "", body])


def sent(machine: Machine, *data: str, how: str = "raw") -> list[Any]:
    """Send each on its own connection, with the listener's address in place of a placeholder."""
    address, port = place(machine, "odd")
    host = f"{address}:{port}"
    ready = [text.replace("{host}", host).replace("{address}", address) for text in data]
    return steps(machine, "odd", *[(how, text) for text in ready])


SDK_SERVER = [CLIENT, "-W", "ignore", "-m", "tests.system.guest.conformance.sdk_server"]
# Each of our durations on the path, by file, with its length.
CLOCKS = {
    "as_http/state": "still_here_every_s: float = 15.0",
    "as_http/gate/session_pool": "IDLE_S = 60.0",
    "session/remote/timeouts": "HEAD_S = 300.0",
}
SQUID = "/var/lib/mcpwrap/squid/proxy-1.conf"
PERIOD = re.compile(r"^(\w+) (\d+) (second|minute|hour|day)s?$", re.MULTILINE)
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@contextmanager
def faster(machine: Machine, times: float) -> Iterator[None]:
    """Shorten durations of an hour by this factor, for the time of the block."""

    def shorter(found: re.Match[str]) -> str:
        return f"{found[1]} {max(1, int(int(found[2]) * SECONDS[found[3]] / times))} seconds"

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
    """Return the text of the last message of an answer: a tool's text, or an error."""
    message = answer["messages"][-1]
    if "error" in message:
        return str(message["error"]["message"])
    return "\n".join(block["text"] for block in message["result"]["content"])


def values_of(internet: Internet, header: str) -> list[list[str]]:
    """Return the value of this header for each request to an odd server."""
    return [[value for name, value in call.headers if name == header] for call in internet.calls()]


@contextmanager
def far_server(
    machine: Machine,
    internet: Internet,
    token: str = TOKEN,
    changes: dict[str, Json] | None = None,
) -> Iterator[None]:
    """Serve by the official library on the internet, for any client with the token.

    `changes` are of definitions of tools, by their names.
    """
    argv = [*SDK_SERVER, str(internet_map.MCP_PORT), internet_map.MCP, token]
    argv.append(json.dumps(changes or {}))
    process = internet.start(argv, {"PYTHONPATH": BED_AT})
    try:
        await_answer(machine, FAR)
        yield
    finally:
        process.kill()
        process.wait()


def await_answer(machine: Machine, url: str) -> None:
    """Wait until a server answers there, whatever the answer."""
    look = f"curl -s -o /dev/null {url} && echo there || true"
    pace.until(lambda: machine.look(look) == "there\n")
