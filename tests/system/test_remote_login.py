"""A person logs in to a remote server; its agents use it, and its wrapper alone has a token."""

import re
from collections.abc import Iterator

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.outgoing import machine_with_internet

CONFIG = """
[mcp_servers.far]
url = "https://members.good.test/mcp"
[mcp_servers.far.mcpwrap]
agents = ["alice"]
oauth = true
"""
EGRESS = 'egress = ["login.good.test"]\n'
# Who types `mcpwrap login`, and opens what it shows; the browser ends where the command listens.
PERSON = """
import subprocess, sys, urllib.request
argv = ["mcpwrap", "login", "far", "--no-browser"]
login = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
for line in login.stdout:
    print(line, end="")
    if line.strip().startswith("https://"):
        print(urllib.request.urlopen(line.strip()).read().decode())
sys.exit(login.wait())
"""


@pytest.fixture
def machine(suite: str) -> Iterator[Machine]:
    with machine_with_internet(suite, Profile.LIMITS, CONFIG) as (machine, _):
        machine.as_root("groupadd -f mcpwrap-approvers")
        machine.add_person("bob", groups="mcpwrap-approvers")
        machine.write("/opt/person.py", PERSON)
        yield machine
        assert machine.unannounced() == []


def call(machine: Machine) -> str:
    """Return what one call comes to."""
    with machine.session("far") as session:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}
        hello["clientInfo"] = {"name": "bed", "version": "1"}
        answer = session.answer_to(session.request("initialize", hello))
        if "error" in answer:
            return str(answer["error"]["message"])
        session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = session.answer_to(session.request("tools/call", {"name": "say"}))
        return str(answer["result"]["content"][0]["text"])


def test_a_login_is_used_by_agents_and_held_by_the_wrapper(machine: Machine) -> None:
    said = machine.as_root("mcpwrap login far --no-browser", status=1).err
    assert "login.good.test is not on the allowlist: add 'login.good.test' to `egress`" in said

    machine.configure(CONFIG + EGRESS)
    machine.apply()
    assert "not logged in: `mcpwrap login far`" in call(machine)
    machine.announce("mcpwrap")  # who may not is in the journal
    said = machine.as_user("alice", "mcpwrap login far --no-browser", status=1).err
    assert "may not use" in said  # she would log in as whom she likes

    said = machine.as_user("bob", "python3 /opt/person.py").out
    assert "far: logged in, for tools:read tools:write" in said
    assert "You can close this page" in said
    assert call(machine) == "from afar"
    assert "MCPWRAP_OAUTH_KEY" in machine.as_user("alice", "mcpwrap secret list").out

    machine.as_root("mcpwrap restart far")
    assert call(machine) == "from afar"
    machine.as_root("mcpwrap secret rekey")
    machine.as_root("mcpwrap restart far")
    assert call(machine) == "from afar"

    stat = machine.as_root("stat -c '%U %a' /var/lib/mcpwrap/state/far/oauth.sealed").out
    assert stat == "mcpw-far 600\n"
    machine.as_user("alice", "ls /var/lib/mcpwrap/state/far", status=2)
    written = machine.as_root(
        "journalctl --no-pager; find /var/log/mcpwrap -type f -exec cat {} +"
    ).out
    assert "members.good.test" in written
    assert not re.search(r"(access|refresh)-[A-Za-z0-9_-]{20}", written)  # as the tokens are

    assert "revoked and forgotten" in machine.as_root("mcpwrap logout far").out
    assert "not logged in" in call(machine)
    assert "far: logged in" in machine.as_root("python3 /opt/person.py").out  # root, without sudo
    assert call(machine) == "from afar"
