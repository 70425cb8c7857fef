"""Configurations between which tests change a machine; each differs from others in one thing."""

import pytest

NOTHING = ""
GIT = "[mcp_servers.git]\ncommand = '/usr/bin/git-mcp'\n"
GIT_AND_TIME = f"{GIT}[mcp_servers.time]\ncommand = '/usr/bin/time-mcp'\n"
CHANGED = GIT_AND_TIME.replace("git-mcp'", "git-mcp'\nargs = ['--all']")
STATE = f"{GIT}[mcp_servers.git.mcpwrap]\nagents = ['alice']\nstate = true\n"
OTHER_AGENT = STATE.replace("alice", "bob")
# these two want the same UID
FIRST_OF_TWO = STATE.replace("git]", "git-b]").replace("git.", "git-b.")
SECOND_OF_TWO = FIRST_OF_TWO.replace("git-b", "postgres-ci")
CONFIGS = {
    "nothing": NOTHING,
    "git": GIT,
    "git-and-time": GIT_AND_TIME,
    "changed": CHANGED,
    "state": STATE,
    "other-agent": OTHER_AGENT,
    "first-of-two": FIRST_OF_TWO,
    "second-of-two": SECOND_OF_TWO,
}
from_each = pytest.mark.parametrize("before", CONFIGS.values(), ids=CONFIGS)
to_each = pytest.mark.parametrize("text", CONFIGS.values(), ids=CONFIGS)
