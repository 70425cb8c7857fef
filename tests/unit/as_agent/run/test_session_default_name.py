"""Default name of a server without `--name`: from its program."""

import pytest

from mcpwrap.as_agent.run.session import default_server_name
from mcpwrap.core.names import is_server_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-everything", "server-everything"),
        ("npx -y @modelcontextprotocol/server-everything@2026.8.31 stdio", "server-everything"),
        ("npx -y some-server@latest", "some-server"),
        ("uvx mcp-server-time==1.0 --local-timezone UTC", "mcp-server-time"),
        ("uv tool run mcp-server-git", "mcp-server-git"),
        ("pnpm dlx a-server", "a-server"),
        ("python3 -m mcp_server_fetch", "mcp_server_fetch"),
        ("python3.11 /opt/probe.py", "probe"),
        ("node /srv/dist/index.js /home/alice", "index"),  # the file's name is all there is
        ("env -i LANG=C /usr/bin/node server.mjs", "server"),
        ("/opt/mcp/bin/mcp-server-time", "mcp-server-time"),
        ("./Weather Server.py", "weather-server"),
        ("npx", "npx"),
        ("node --inspect", "node"),
        ("a-server-with-a-name-that-goes-on-and-on", "a-server-with-a-name-that"),
        ("/opt/7zip", "zip"),  # a name begins with a letter
        ("./@@", "server"),
    ],
)
def test_its_name_is_from_its_command(command: str, name: str) -> None:
    words = ["./Weather Server.py"] if "Weather" in command else command.split()
    assert default_server_name(words) == name
    assert is_server_name(name)
