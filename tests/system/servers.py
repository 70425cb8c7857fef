"""The servers that machines of the bed have, as an operator would list them."""

NODE_MODULES = "/opt/mcp/npm/node_modules/@modelcontextprotocol"
THREE_SERVERS = f"""
[mcp_servers.everything]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]

[mcp_servers.memory]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-memory/dist/index.js"]
env = {{ MEMORY_FILE_PATH = "/var/lib/mcpwrap/state/memory/memory.json" }}

[mcp_servers.memory.mcpwrap]
agents = ["alice"]
state = true

[mcp_servers.time]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
"""
PROBE_SERVER = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
inherits = ["TZ", "PROJECT"]
"""
