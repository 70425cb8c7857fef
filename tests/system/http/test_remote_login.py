"""OAuth login to a remote server: its agents use it, and only its wrapper has a token."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine

CONFIG = """
[mcp_servers.far]
url = "https://members.good.test/mcp"
[mcp_servers.far.mcpwrap]
agents = ["alice"]
oauth = true
"""
EGRESS = 'egress = ["login.good.test"]\n'


@contextmanager
def with_members(suite: str) -> Iterator[Connected]:
    """Boot a machine on an internet, with a remote server that requires a login."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.as_root("groupadd -f mcpwrap-approvers")
        machine.add_person("bob", groups="mcpwrap-approvers")
        with Internet(machine) as internet:
            machine.configure(CONFIG)
            machine.apply()
            yield Connected(machine, internet)


STAGE = with_members


def call(machine: Machine) -> str:
    """Return the outcome of one call."""
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
    machine.announce("mcpwrap")  # an account without the right is in the journal
    said = machine.as_user("alice", "mcpwrap login far --no-browser", status=1).err
    assert "may not use" in said  # she would log in as any account

    log_in = machine.guest_command("login", "log_in", "far", pace.WAIT_S)
    said = machine.as_user("bob", log_in).out
    assert "far: logged in, for tools:read tools:write" in said
    assert "You can close this page" in said
    assert call(machine) == "from afar"
    assert "MCPWRAP_OAUTH_KEY" in machine.as_user("alice", "mcpwrap secret list").out

    machine.as_root("mcpwrap restart far")
    assert call(machine) == "from afar"
    machine.as_root("mcpwrap secret rekey")
    machine.as_root("mcpwrap restart far")
    assert call(machine) == "from afar"

    stat = machine.look("stat -c '%U %a' /var/lib/mcpwrap/state/far/oauth.sealed")
    assert stat == "mcpw-far 600\n"
    machine.as_user("alice", "ls /var/lib/mcpwrap/state/far", status=2)
    written = machine.look("journalctl --no-pager; find /var/log/mcpwrap -type f -exec cat {} +")
    assert "members.good.test" in written
    assert not re.search(r"(access|refresh)-[A-Za-z0-9_-]{20}", written)  # as the tokens are

    assert "revoked and deleted" in machine.as_root("mcpwrap logout far").out
    assert "not logged in" in call(machine)
    assert "far: logged in" in machine.as_root(log_in).out  # root, without sudo
    assert call(machine) == "from afar"
