"""Machine with a server for each kind of egress client, and the fetch of a URL by each."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from tests.system.bed import installed
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import GUEST, Machine
from tests.system.bed.session import Session
from tests.system.support.egress_sessions import play
from tests.system.support.servers import DOWNLOADED_SERVERS

NODE_FILE = "/opt/mcp/npm/goes-out.mjs"  # beside node_modules, where it finds the SDK
CONFIG = f"""
[mcp_servers.fetch]
command = "/opt/mcp/pypi/bin/mcp-server-fetch"
args = ["--ignore-robots-txt"]
[mcp_servers.fetch.mcpwrap]
egress = ["api.good.test", "*.cdn.test"]
transparent = false  # its guard refuses a name that leads to a loopback address

[mcp_servers.fetch-no-proxy]
command = "/opt/mcp/pypi/bin/mcp-server-fetch"
args = ["--ignore-robots-txt", "--allow-private-ips"]
env = {{ HTTPS_PROXY = "", https_proxy = "", HTTP_PROXY = "", http_proxy = "" }}
[mcp_servers.fetch-no-proxy.mcpwrap]
egress = ["api.good.test"]

[mcp_servers.node]
command = "/usr/bin/node"
args = ["{NODE_FILE}"]
[mcp_servers.node.mcpwrap]
agents = ["alice"]
egress = ["api.good.test"]

[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
egress = ["api.good.test", "*.cdn.test", "h2.good.test:8443"]
direct = ["203.0.113.20:5432", "[2001:db8:2::20]:5432"]

[mcp_servers.opened]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.opened.mcpwrap]
egress = ["api.good.test"]
intercept = true

[mcp_servers.asker]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.asker.mcpwrap]
agents = ["alice"]
egress = ["internal.test", "api.good.test"]
workspace = ["/home/alice/project:ro"]
{DOWNLOADED_SERVERS}"""


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot a machine on an internet, with servers that have egress."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.as_user("alice", "mkdir project; touch diary")
        machine.write(NODE_FILE, (GUEST / "goes_out.mjs").read_text())
        machine.write("/etc/npmrc", "registry=https://npm.good.test/\n")
        machine.write("/etc/pip.conf", "[global]\nindex-url = https://pypi.good.test/simple/\n")
        with Internet(machine) as internet:
            machine.configure(CONFIG)
            machine.apply()
            yield Connected(machine, internet)


# ------------------------------------------------------------------ methods to fetch from a host
class Get(Protocol):
    """Function that gets /small of a host in an open session and returns the outcome."""

    def __call__(self, session: Session, host: str) -> str: ...


def text_of_tool(session: Session, tool: str, **arguments: str) -> str:
    """Call a tool in a session that is initialized; return its text."""
    call = session.request("tools/call", {"name": tool, "arguments": arguments})
    answer = session.answer_to(call)
    if "error" in answer:
        return str(answer["error"]["message"])
    return "\n".join(block["text"] for block in answer["result"]["content"])


def _by_tool(tool: str, key: str, value: str, session: Session, host: str) -> str:
    return text_of_tool(session, tool, **{key: value.format(host=host)})


def _by_probe(code: str, session: Session, host: str) -> str:
    return str(play(session, code.format(url=f"https://{host}/small")))


@contextmanager
def initialized(machine: Machine, server: str) -> Iterator[Session]:
    """Hold a session open whose handshake is done, where the server is not a probe."""
    with machine.session(server) as session:
        if server not in PROBES:
            session.initialize()
        yield session


PROBES = ("probe", "opened", "asker")
URL = "https://{host}/small"
# The server, and its method to fetch from a host.
CLIENTS: dict[str, tuple[str, Get]] = {
    "mcp-server-fetch": ("fetch", partial(_by_tool, "fetch", "url", URL)),
    "mcp-server-fetch, no proxy": ("fetch-no-proxy", partial(_by_tool, "fetch", "url", URL)),
    "node, fetch": ("node", partial(_by_tool, "fetch", "url", URL)),
    "node, sockets": ("node", partial(_by_tool, "socket", "host", "{host}")),
    "go": ("probe", partial(_by_probe, "by_go({url!r})")),
    "go, no proxy": ("probe", partial(_by_probe, "by_go({url!r}, knows_proxy=False)")),
    "python": ("probe", partial(_by_probe, "by_urllib({url!r})")),
    "python, no proxy": ("probe", partial(_by_probe, "by_urllib({url!r}, knows_proxy=False)")),
}
