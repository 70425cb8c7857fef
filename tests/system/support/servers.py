"""Servers of the bed's machines, as an operator would list them."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.machine import Machine

NODE_MODULES = "/opt/mcp/npm/node_modules/@modelcontextprotocol"
MEMORY_SERVER = f"""
[mcp_servers.memory]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-memory/dist/index.js"]
env = {{ MEMORY_FILE_PATH = "/var/lib/mcpwrap/state/memory/memory.json" }}

[mcp_servers.memory.mcpwrap]
agents = ["alice"]
state = true
"""
THREE_SERVERS = f"""
[mcp_servers.everything]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]

# It lists other tools to a client with other capabilities, and these stories have many clients.
[mcp_servers.everything.mcpwrap]
pins = "off"
{MEMORY_SERVER}
[mcp_servers.time]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
"""
# Of packages that are downloaded at the first start, from the registries of the bed's internet.
DOWNLOADED_SERVERS = """
[mcp_servers.npx]
command = "/usr/local/bin/npx"
args = ["-y", "bed-echo"]
[mcp_servers.npx.mcpwrap]
agents = ["alice"]
egress = ["@npm"]
cache = true

[mcp_servers.uvx]
command = "/usr/local/bin/uvx"
args = ["bed-echo"]
env = { UV_PYTHON_DOWNLOADS = "never" }
[mcp_servers.uvx.mcpwrap]
agents = ["alice"]
egress = ["@pypi"]
cache = true
"""
SQLITE_SERVER = """
[mcp_servers.sqlite]
command = "/opt/mcp/sqlite/bin/mcp-server-sqlite"
args = ["--db-path", "/var/lib/mcpwrap/state/sqlite/sqlite.db"]

[mcp_servers.sqlite.mcpwrap]
agents = ["alice"]
state = true
"""
PROBE_SERVER = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
inherits = ["TZ"]
inherits_any = ["PROJECT"]
"""


def a_server(name: str, settings: str, *, args: str = "", top: str = "") -> str:
    """Return a probe under this name, with these settings, further `args`, and lines beside."""
    return f"""
[mcp_servers.{name}]
command = "/usr/bin/python3"
args = ["/opt/probe.py"{args}]
{top}
[mcp_servers.{name}.mcpwrap]
{settings}
"""


# For stories of egress: installed clients, and packages of the registries in bed/origins.
GO_GET = "/opt/mcp/go/get"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
NPM_ENV = {
    "NODE_EXTRA_CA_CERTS": CERTIFICATES,
    "npm_config_registry": "https://npm.good.test/",
    "npm_config_update_notifier": "false",
}
UV_ENV = {
    "SSL_CERT_FILE": CERTIFICATES,
    "UV_DEFAULT_INDEX": "https://pypi.good.test/simple/",
    "UV_PYTHON_DOWNLOADS": "never",
}


def _in_shell(environment: dict[str, str], command: str) -> str:
    words = " ".join(f"{name}={value}" for name, value in environment.items())
    return f"exec env {words} {command}"


FROM_NPM = _in_shell(NPM_ENV, "npx -y bed-echo")
FROM_PYPI = _in_shell(UV_ENV, "uvx bed-echo")


@contextmanager
def wrapped(suite: str) -> Iterator[Machine]:
    """Boot a machine with three real servers and the probe, and an agent called alice."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("mallory")
        machine.configure(THREE_SERVERS + PROBE_SERVER)
        machine.apply()
        yield machine
