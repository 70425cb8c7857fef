"""Configurations between which tests change a machine; each differs from others in one thing."""

import pytest

NOTHING = ""
GIT = "[mcp_servers.git]\ncommand = '/usr/bin/git-mcp'\n"
TIME = "[mcp_servers.time]\ncommand = '/usr/bin/time-mcp'\n"
GIT_AND_TIME = f"{GIT}{TIME}"
CHANGED = GIT_AND_TIME.replace("git-mcp'", "git-mcp'\nargs = ['--all']")
STATE = f"{GIT}[mcp_servers.git.mcpwrap]\nagents = ['alice']\nstate = true\n"
OTHER_AGENT = STATE.replace("alice", "bob")
SECRET = (
    f"{GIT}env = {{ A = 'Bearer ${{TOKEN}}' }}\n[mcp_servers.git.mcpwrap]\nagents = ['alice']\n"
)
# these two prefer the same UID
FIRST_OF_TWO = STATE.replace("git]", "git-b]").replace("git.", "git-b.")
SECOND_OF_TWO = FIRST_OF_TWO.replace("git-b", "postgres-ci")
EGRESS = f"{GIT}[mcp_servers.git.mcpwrap]\negress = ['api.example.com', '*.example.org:8443']\n"
LESS_EGRESS = EGRESS.replace(", '*.example.org:8443'", "")
INTERCEPT = f"{EGRESS}intercept = true\nrequests = ['GET api.example.com/v1/*']\n"
DIRECT = f"{GIT}[mcp_servers.git.mcpwrap]\ndirect = ['10.0.0.5:5432']\n"
CACHE = (
    f"{GIT}[mcp_servers.git.mcpwrap]\nagents = ['alice']\negress = ['@npm']\n"
    "transparent = false\ncache = true\n"
)
# one in each Squid instance, and then the reverse
ONE_OPENED = f"{INTERCEPT}{TIME}[mcp_servers.time.mcpwrap]\negress = ['time.example.com']\n"
OTHER_OPENED = f"{EGRESS}{TIME}[mcp_servers.time.mcpwrap]\negress = ['@pypi']\nintercept = true\n"
PARENT = f"[egress]\nparent = '10.0.0.1:3128'\n{EGRESS}"
APPROVALS = f"[approvals]\nsame_uid = true\nwebhook = 'https://hook.example/a'\n{GIT}"
HTTP = f"{GIT}[mcp_servers.git.mcpwrap]\nagents = ['alice']\nexpose = 'http'\n"
HTTP_OF_MORE = HTTP.replace("['alice']", "['@mcpwrap', 'bob']")
URL = (
    "[mcp_servers.git]\nurl = 'https://mcp.example.com/git'\nbearer_token_env_var = 'TOKEN'\n"
    "[mcp_servers.git.mcpwrap]\nagents = ['alice']\n"
)
PYTHON = "[mcp_servers.py]\npython = '/usr/bin/python3'\n"
# fewer slots with another limit, packages, and slots for other machines
LISTENING = (
    f"{PYTHON}[mcp_servers.py.mcpwrap]\negress = ['@pypi']\npackages = ['numpy']\n"
    "runs = { at_once = 1, memory = '1G' }\n"
    "[worker]\nlisten = '10.0.0.5:9443'\ncertificate = '/etc/a.pem'\nkey = '/etc/a.key'\n"
)
HUB = (
    f"{GIT_AND_TIME}inherits = ['TZ']\n"
    "[mcp_servers.tools.members.git]\n[mcp_servers.tools.members.time]\n"
)
SMALLER_HUB = HUB.replace("[mcp_servers.tools.members.git]\n", "")
CONFIGS = {
    "nothing": NOTHING,
    "git": GIT,
    "git-and-time": GIT_AND_TIME,
    "changed": CHANGED,
    "state": STATE,
    "other-agent": OTHER_AGENT,
    "secret": SECRET,
    "first-of-two": FIRST_OF_TWO,
    "second-of-two": SECOND_OF_TWO,
    "egress": EGRESS,
    "less-egress": LESS_EGRESS,
    "intercept": INTERCEPT,
    "direct": DIRECT,
    "cache": CACHE,
    "one-opened": ONE_OPENED,
    "other-opened": OTHER_OPENED,
    "parent": PARENT,
    "approvals": APPROVALS,
    "http": HTTP,
    "http-of-more": HTTP_OF_MORE,
    "url": URL,
    "python": PYTHON,
    "listening": LISTENING,
    "hub": HUB,
    "smaller-hub": SMALLER_HUB,
}
from_each = pytest.mark.parametrize("before", CONFIGS.values(), ids=CONFIGS)
to_each = pytest.mark.parametrize("text", CONFIGS.values(), ids=CONFIGS)
