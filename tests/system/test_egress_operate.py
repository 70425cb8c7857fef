"""What an operator sees of the way out: what was asked for, what refused it, and what is broken."""

import json
from collections.abc import Iterator

import pytest

from tests.system.bed import installed
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE
from tests.system.clients import NODE_FILE, NODE_SERVER, PYTHON_GET

CONFIG = f"""
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
agents = ["alice"]
egress = ["internal.test", "api.good.test"]
workspace = ["/home/alice/project:ro"]
"""


@pytest.fixture(scope="module")
def watched(suite: str) -> Iterator[tuple[Machine, Internet]]:
    """Boot a machine on an internet, with a server that asks for this and that."""
    machine = installed.installed_machine(suite)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.as_user("alice", "mkdir project; touch diary")
        machine.write("/opt/probe.py", PROBE)
        machine.write(NODE_FILE, NODE_SERVER)
        with Internet(machine) as internet:
            machine.configure(CONFIG)
            machine.apply()
            yield machine, internet
    finally:
        machine.remove()


ASKS = {
    "https://api.good.test/small": "allowed",
    "https://other.test/": "host-not-allowed",
    "https://api.good.test:8443/": "port-not-allowed",
    "http://api.good.test/": "plain-http",
    "https://internal.test/": "private-address",
}


def test_every_refusal_is_explained_with_the_line_that_would_allow_it(
    watched: tuple[Machine, Internet],
) -> None:
    machine, _ = watched
    with machine.session("probe") as session:
        for url in ASKS:
            session.evaluate(PYTHON_GET.format(url=url, handlers="[]"))
        past = "import socket; socket.create_connection(('203.0.113.66', 22), 5)"
        assert "OSError" in session.evaluate(past)
    rows = json.loads(machine.as_root("mcpwrap egress probe --json").out)
    rules = {row["destination"]: row["rule"] for row in rows}
    assert rules == {
        "api.good.test:443": "allowed",
        "other.test:443": "host-not-allowed",
        "api.good.test:8443": "port-not-allowed",
        "api.good.test:80": "plain-http",
        "internal.test:443": "private-address",
        "203.0.113.66:22/tcp": "past-squid",
    }
    assert machine.as_root("mcpwrap egress probe --suggest").out.splitlines()[2:] == [
        'direct = ["203.0.113.66:22"]',
        'egress = ["other.test", "api.good.test:8443"]',
    ]
    [seen_by_root] = json.loads(machine.as_root("mcpwrap status probe --json").out)
    [seen_by_alice] = json.loads(machine.as_user("alice", "mcpwrap status probe --json").out)
    assert seen_by_root["refused"] > 0
    assert seen_by_alice["refused"] is None
    table = machine.as_root("mcpwrap egress probe").out
    assert "the host is not in `egress`" in table
    assert "\x1b" not in table
    assert "needs root" in machine.as_user("alice", "mcpwrap egress probe", status=2).err


def test_a_program_that_refuses_loopback_addresses_is_told_of(
    watched: tuple[Machine, Internet],
) -> None:
    machine, _ = watched
    with machine.session("probe") as session:
        session.evaluate("import socket; socket.getaddrinfo('asked.good.test', 443)")
    rows = json.loads(machine.as_root("mcpwrap egress probe --json").out)
    asked = [row for row in rows if row["destination"].startswith("asked.good.test")]
    assert [row["rule"] for row in asked] == ["asked"]
    assert "`transparent = false`" in asked[0]["fix"]


def test_the_doctor_finds_a_machine_that_is_well(watched: tuple[Machine, Internet]) -> None:
    machine, _ = watched
    found = json.loads(machine.as_root("mcpwrap doctor node --json").out)
    assert {check["state"] for check in found} == {"good"}
    what = {check["what"]: check["found"] for check in found}
    assert what["node: a session of alice"] == "2 tools"
    assert what["node: reach api.good.test:443"].startswith("HTTP/1.1 200")
    assert what["node: reach a host that is not listed"].startswith("refused")
    assert what["node: reach an address past Squid"].startswith("refused")


def test_the_doctor_finds_what_is_broken_and_what_is_open(
    watched: tuple[Machine, Internet],
) -> None:
    machine, _ = watched
    machine.as_root("systemctl stop mcpwrap-watch 'mcpwrap-squid-proxy@1'")
    machine.as_root("nft flush table inet mcpwrap && useradd -u 20005 intruder")
    found = json.loads(machine.as_root("mcpwrap doctor node --json", status=1).out)
    bad = {check["what"]: check["state"] for check in found if check["state"] != "good"}
    assert bad["mcpwrap-watch.service"] == bad["mcpwrap-squid-proxy@1.service"] == "failed"
    assert bad["node: reach api.good.test:443"] == "failed"
    assert bad["accounts"] == "warning"
    assert all(check["fix"] for check in found if check["state"] != "good")
    machine.as_root("userdel intruder")
    machine.as_root("systemctl start mcpwrap-watch 'mcpwrap-squid-proxy@1'")
    machine.as_root("mcpwrap doctor node")


def test_apply_refuses_an_allowlist_where_there_is_no_squid(
    watched: tuple[Machine, Internet],
) -> None:
    machine, _ = watched
    machine.as_root("mv /usr/sbin/squid /usr/sbin/squid.away")
    machine.configure(CONFIG.replace('egress = ["api.good.test"]', 'egress = ["other.test"]'))
    said = machine.as_root("mcpwrap apply", status=2).err
    assert "needs /usr/sbin/squid, which is not there; nothing was changed" in said
    assert "`apt install squid-openssl`" in said
    machine.as_root("mv /usr/sbin/squid.away /usr/sbin/squid")
    machine.configure(CONFIG)
    assert machine.apply() == "nothing to do\n"
