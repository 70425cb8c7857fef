"""Operator's view of egress: each refused request, the line that would allow it, broken parts."""

import json
import time
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import has_limits
from tests.system.egress.egress_clients import CONFIG, booted
from tests.system.support.egress_sessions import play

STAGE = booted
ASKS = (
    "https://api.good.test/small",
    "https://other.test/",
    "https://api.good.test:8443/",
    "http://api.good.test/",
    "https://internal.test/",
)


def notes(machine: Machine) -> list[dict[str, Any]]:
    """Return the requests of the server `asker`."""
    rows: list[dict[str, Any]] = json.loads(machine.as_root("mcpwrap egress asker --json").out)
    return rows


def await_rules(machine: Machine, rules: dict[str, str]) -> None:
    """Wait until the rules by destination are these: Squid writes a line after its answer."""
    give_up_at = time.monotonic() + pace.WAIT_S
    while (found := {row["destination"]: row["rule"] for row in notes(machine)}) != rules:
        assert time.monotonic() < give_up_at, found


def test_every_refusal_is_explained_with_the_line_that_would_allow_it(machine: Machine) -> None:
    with machine.session("asker") as session:
        for url in ASKS:
            play(session, f"by_urllib({url!r})")
        assert "OSError" in play(session, "greeted('203.0.113.66', 22)")
    await_rules(
        machine,
        {
            "api.good.test:443": "allowed",
            "other.test:443": "host-not-allowed",
            "api.good.test:8443": "port-not-allowed",
            "api.good.test:80": "plain-http",
            "internal.test:443": "private-address",
            "203.0.113.66:22/tcp": "past-squid",
        },
    )
    assert machine.as_root("mcpwrap egress asker --suggest").out.splitlines()[2:] == [
        'direct = ["203.0.113.66:22"]',
        'egress = ["other.test", "api.good.test:8443"]',
    ]
    [seen_by_root] = json.loads(machine.as_root("mcpwrap status asker --json").out)
    [seen_by_alice] = json.loads(machine.as_user("alice", "mcpwrap status asker --json").out)
    assert seen_by_root["refused"] > 0
    assert seen_by_alice["refused"] is None
    table = machine.as_root("mcpwrap egress asker").out
    assert "the host is not in `egress`" in table
    assert "\x1b" not in table
    assert "needs root" in machine.as_user("alice", "mcpwrap egress asker", status=2).err


def test_a_program_that_refuses_loopback_addresses_is_told_of(machine: Machine) -> None:
    with machine.session("asker") as session:
        session.evaluate("import socket; socket.getaddrinfo('asked.good.test', 443)")
    asked = [row for row in notes(machine) if row["destination"].startswith("asked.good.test")]
    assert [row["rule"] for row in asked] == ["asked"]
    assert "`transparent = false`" in asked[0]["fix"]


def test_the_doctor_finds_a_machine_that_is_well(machine: Machine) -> None:
    found = json.loads(machine.as_root("mcpwrap doctor node --json").out)
    worse = [check["what"] for check in found if check["state"] != "good"]
    assert worse == ([] if has_limits(machine.suite) else ["cgroup controllers"])
    what = {check["what"]: check["found"] for check in found}
    assert what["node: a session of alice"] == "2 tools"
    assert what["node: reach api.good.test:443"].startswith("HTTP/1.1 200")
    assert what["node: reach a host that is not listed"].startswith("refused")
    assert what["node: reach an address past Squid"].startswith("refused")


def test_the_doctor_finds_what_is_broken_and_what_is_open(machine: Machine) -> None:
    machine.as_root("systemctl start mcpwrap@node")  # its own start would bring Squid back
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


def test_apply_refuses_an_allowlist_where_there_is_no_squid(machine: Machine) -> None:
    machine.as_root("mv /usr/sbin/squid /usr/sbin/squid.away")
    machine.configure(CONFIG.replace('egress = ["api.good.test"]', 'egress = ["other.test"]'))
    said = machine.as_root("mcpwrap apply", status=2).err
    assert "needs /usr/sbin/squid, which does not exist; nothing was changed" in said
    assert "`sudo apt install squid-openssl`" in said
    machine.as_root("mv /usr/sbin/squid.away /usr/sbin/squid")
    machine.configure(CONFIG)
    assert machine.apply() == "nothing to do\n"
