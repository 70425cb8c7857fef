"""Self-test of the bed's internet: everything that egress stories use is there, and is recorded.

From machines without mcpwrap, so that a refusal elsewhere is significant.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shared import pace
from tests.system.bed import installed, internet_map
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine
from tests.system.bed.origins.record import Packet, Query
from tests.system.support.servers import FROM_NPM, FROM_PYPI, GO_GET, NODE_MODULES
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = [ON_ONE_RELEASE, only_in_test_all("tests the bed: stories that need it would fail")]

FETCH = "fetch(process.argv[1]).then(a => a.json()).then(a => console.log(a.host))"


@contextmanager
def plugged(suite: str) -> Iterator[Connected]:
    """Boot a machine without mcpwrap and plug it in."""
    with installed.bare_machine(suite) as machine:
        machine.add_person("alice")
        with Internet(machine) as internet:
            yield Connected(machine, internet)


STAGE = plugged


@pytest.mark.parametrize(
    ("option", "address", "source", "kind"),
    [("-4", "198.51.100.10", "192.0.2.2", "A"), ("-6", "2001:db8:2::10", "2001:db8:1::2", "AAAA")],
)
def test_a_name_leads_to_an_origin(
    machine: Machine, internet: Internet, option: str, address: str, source: str, kind: str
) -> None:
    told = json.loads(machine.as_root(f"curl -sS {option} https://api.good.test/echo").out)
    assert (told["host"], told["address"], told["port"]) == ("api.good.test", address, 443)
    assert Query("api.good.test", kind, "192.0.2.2") in internet.queries()
    (connection,) = internet.connections()
    assert (connection.address, connection.port) == (address, 443)
    assert (connection.source, connection.sni) == (source, "api.good.test")
    (request,) = internet.requests()
    assert (request.method, request.path, request.version) == ("GET", "/echo", "1.1")
    assert Packet("tcp", source, address, 443) in internet.packets()
    internet.forget()
    assert not internet.connections() + internet.queries() + internet.packets()


def test_one_host_speaks_http2(machine: Machine, internet: Internet) -> None:
    out = machine.as_root(f"curl -sS -w '%{{http_version}}' https://{internet_map.H2}/x").out
    assert out.endswith("2")
    assert [(r.path, r.version) for r in internet.requests()] == [("/x", "2")]


def test_events_and_messages_come_while_they_are_sent(machine: Machine, internet: Internet) -> None:
    came = machine.call("internet_client", "events", 3, pace.promised(0.3))
    assert came[0][1] < came[-1][0]  # the first had arrived before the last was sent
    assert machine.call("internet_client", "websocket") == ["101", "hello"]
    assert [request.path for request in internet.requests()][-1] == "/ws"


def test_a_body_is_as_long_as_asked_for(machine: Machine) -> None:
    out = machine.as_root("curl -sS https://api.good.test/bytes/50000001 | wc -c").out
    assert int(out) == 50_000_001


@pytest.mark.parametrize(
    "host", [internet_map.BAD_AUTHORITY, internet_map.WRONG_NAME, internet_map.EXPIRED]
)
def test_a_bad_certificate_is_refused(machine: Machine, host: str) -> None:
    machine.as_root(f"curl -sS https://{host}/small", status=60)
    machine.as_root(f"curl -sS --insecure https://{host}/small")  # the twin


@pytest.mark.parametrize("address", internet_map.PRIVATE)
def test_private_addresses_answer(machine: Machine, internet: Internet, address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    machine.as_root(f"curl -sS http://{host}/ && curl -sS https://{host}/")
    banner = machine.call("internet_client", "banner", address, 5432)
    assert banner == f"bed {address} 5432\n"
    seen = {(connection.address, connection.port) for connection in internet.connections()}
    assert seen == {(address, 80), (address, 443), (address, 5432)}


def test_a_packet_to_nobody_is_seen(machine: Machine, internet: Internet) -> None:
    machine.call("internet_client", "strays")
    machine.as_root("ping -c1 1.2.3.4")
    assert set(internet.packets()) == {
        Packet("udp", "192.0.2.2", "8.8.8.8", 5353),
        Packet("tcp", "192.0.2.2", "8.8.8.8", 4444),
        Packet("udp", "2001:db8:1::2", "2001:db8:9::9", 5353),
        Packet("tcp", "2001:db8:1::2", "2001:db8:9::9", 4444),
        Packet("icmp", "192.0.2.2", "1.2.3.4", 0),
    }


def test_names_that_attackers_have(machine: Machine, internet: Internet) -> None:
    def addresses(name: str, before: str = "") -> set[str]:
        out = machine.as_root(f"{before} getent ahosts {name}").out
        return {line.split()[0] for line in out.splitlines()}

    assert addresses("secret.of.evil.test") == {internet_map.ATTACKER, internet_map.ATTACKER_V6}
    assert addresses("alias.good.test") == {"10.0.0.5"}
    assert addresses("multi.test") == {"198.51.100.21", "10.0.0.5"}
    assert addresses("multi.test", before="RES_OPTIONS=use-vc") == addresses("multi.test")  # TCP
    assert addresses("rebind.test") == {"198.51.100.22"}
    assert addresses("rebind.test") == {"10.0.0.5"}
    assert "api.good.test" in machine.as_root(f"getent hosts {internet_map.ATTACKER}").out
    machine.as_root("getent hosts new.test", status=2)
    internet.add_name("new.test", "198.51.100.99")
    assert addresses("new.test") == {"198.51.100.99"}
    asked = {query.name for query in internet.queries()}
    assert {"secret.of.evil.test", "rebind.test", "66.113.0.203.in-addr.arpa"} <= asked


def test_the_resolver_has_an_address_of_either_family(machine: Machine, internet: Internet) -> None:
    usual = machine.read("/etc/resolv.conf")
    machine.write("/etc/resolv.conf", f"nameserver {internet_map.RESOLVER_V6}\n")
    machine.as_root("getent ahostsv4 a.cdn.test")
    machine.write("/etc/resolv.conf", usual)
    machine.as_root("getent ahostsv4 a.cdn.test")
    # Once each: a query that is not answered at once may be repeated.
    assert list(dict.fromkeys(internet.queries())) == [
        Query("a.cdn.test", "A", "2001:db8:1::2"),
        Query("a.cdn.test", "A", "192.0.2.2"),
    ]


@pytest.mark.parametrize("command", [FROM_NPM, FROM_PYPI])
def test_a_server_comes_from_a_registry(machine: Machine, internet: Internet, command: str) -> None:
    with machine.session("", user="alice", command=command) as session:
        session.initialize()
        call = {"name": "echo", "arguments": {"text": "hello"}}
        answer = session.answer_to(session.request("tools/call", call))
        assert answer["result"]["content"][0]["text"] == "hello"
    assert internet.hosts() <= {internet_map.NPM, internet_map.PYPI}
    assert internet.connections()


@pytest.mark.parametrize(
    "command",
    [
        f"exec node {NODE_MODULES}/server-filesystem/dist/index.js .",
        "exec /opt/mcp/pypi/bin/mcp-server-fetch",
    ],
)
def test_servers_of_others_start(machine: Machine, command: str) -> None:
    with machine.session("", user="alice", command=command) as session:
        session.initialize()
        assert session.answer_to(session.request("tools/list"))["result"]["tools"]


def test_clients_in_other_languages_get_there(machine: Machine, internet: Internet) -> None:
    url = "https://api.good.test/small"
    assert "200 OK" in machine.as_root(f"{GO_GET} {url}").out
    certificates = "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"
    out = machine.as_root(f"{certificates} node -e '{FETCH}' {url}").out
    assert out == "api.good.test\n"
    assert [request.path for request in internet.requests()] == ["/small", "/small"]


def test_squid_is_there_and_switched_off(machine: Machine) -> None:
    states = machine.as_root("systemctl is-enabled squid; systemctl is-active squid", status=3)
    assert states.out.split() == ["disabled", "inactive"]


def test_nothing_is_left_of_an_internet(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    with Internet(machine) as internet:
        machine.reboot()
        internet.plug()
        machine.as_root("curl -sS https://api.good.test/small")
        process = Path(f"/proc/{internet.pid}")
        assert process.exists()
    assert not process.exists()
    assert "eth0" not in machine.as_root("ip -o link").out
