"""Module that proxied-mcp-servers.json names: `python -m my_mcp_server`. Runs inside."""

import sys

sys.path.insert(0, "/opt/bed")
sys.argv[1:] = ["my-server"]

from tests.system.guest.hub.member import main  # noqa: E402 - it is found by the line above

main()
