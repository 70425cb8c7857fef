"""Attacks of a hostile server on Squid and the front, by way of its own address."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import internet_map as world
from tests.system.bed.roots import TESTING
from tests.system.egress import battlefield
from tests.system.egress.battlefield import (
    RELOAD,
    RULES,
    Battlefield,
    Listener,
    call,
    quiet_s,
    reread,
)
from tests.system.guest import flood, proxy_attacks
from tests.system.guest.proxy_attacks import GET, connect_each, inside, inside_each
from tests.system.support.tiers import on_each_release, only_in_test_all

STAGE = battlefield.booted

# 400: Squid finds no request in it. 403: it does, and refuses.
TARGETS = {
    "other.test:443": "403",  # b's
    "secret.evil.test:443": "403",
    "api.good.test:22": "403",
    "api.good.test:80": "403",
    "api.good.test:8443": "403",
    "api.good.test:65979": "400",  # 443 + 65536
    "api.good.test:0": "400",
    # addresses, in every notation that some program understands
    "198.51.100.10:443": "403",  # that of a name on the list
    "203.0.113.66:443": "403",  # its PTR says api.good.test
    "[2001:db8:66::66]:443": "403",  # so does this
    "[2001:db8:2::10]:443": "403",
    "10.0.0.5:443": "403",
    "167772165:443": "403",
    "0x0a000005:443": "403",
    "012.0.0.5:443": "403",
    "127.1:443": "403",
    "0.0.0.0:443": "403",
    "[::1]:443": "403",
    "[::ffff:10.0.0.5]:443": "403",
    "[64:ff9b::a00:5]:443": "403",
    "169.254.169.254:443": "403",
    # names that look like one on the list
    "xapi.good.test:443": "403",
    "api.good.test.evil.test:443": "403",
    "sub.good.test:443": "403",  # the top of `*.sub.good.test`
    ".sub.good.test:443": "400",
    "a@api.good.test:443": "403",
    "api.good.test@evil.test:443": "403",
    "api.good.test\x00.evil.test:443": "400",
    "api.good.test%00.evil.test:443": "403",
    "api.good.test,evil.test:443": "403",
    "api.good.test/evil.test:443": "403",
    "evil.test/api.good.test:443": "403",
    "api.good.test#evil.test:443": "403",
    "api.good.test?evil.test:443": "403",
    "api.good.test\\evil.test:443": "403",
    "api\xef\xbc\x8egood.test:443": "403",  # a fullwidth dot
    "https://api.good.test:443/": "403",
    "//api.good.test:443": "403",
}
# To Squid 7 what has a character that no host has is no request.
NO_HOST_TO_SQUID_7 = ("@", ",", "/", "?", "\\", "\xef")


@pytest.mark.parametrize("name", ["a", "look"])
def test_what_is_not_on_the_list_is_neither_reached_nor_asked_for(
    field: Battlefield, name: str
) -> None:
    told = field.run(name, connect_each, list(TARGETS))
    expected = dict(TARGETS)
    if field.machine.suite == TESTING:
        odd = [target for target in TARGETS if any(part in target for part in NO_HOST_TO_SQUID_7)]
        expected |= dict.fromkeys(odd, "400")
    assert dict(zip(TARGETS, told, strict=True)) == expected
    assert field.seen().is_nothing()
    same = ["api.good.test:443", "API.Good.TEST:443", "api.good.test.:443", "a.cdn.test:443"]
    assert field.run(name, connect_each, same) == ["200"] * 4
    assert field.seen().names <= {"api.good.test", "a.cdn.test"}


def test_a_star_stands_for_what_is_below_a_name(field: Battlefield) -> None:
    host = "x.y.sub.good.test"
    field.internet.add_name(host, "198.51.100.30")
    assert field.run("a", inside, f"{host}:443", host) == "HTTP/1.1 200 OK"
    seen = field.seen()
    assert seen.connections == [("198.51.100.30", 443)]
    assert seen.names == {host}  # it was requested, so that a name that leaves would be recorded


def test_a_name_of_the_list_that_leads_to_a_private_address_is_refused(field: Battlefield) -> None:
    targets = ["internal.test:443", "multi.test:443", "ula.test:443"]
    assert field.run("a", connect_each, targets) == ["403"] * 3
    assert field.seen().connections == []


def test_a_name_that_changes_after_the_check_is_not_asked_for_again(field: Battlefield) -> None:
    targets, names = ["rebind.test:443"] * 3, ["rebind.test"] * 3
    assert field.run("a", inside_each, targets, names) == ["HTTP/1.1 200 OK"] * 3
    assert field.seen().connections == [("198.51.100.22", 443)] * 3  # not 10.0.0.5


def test_a_name_that_leads_back_to_the_machine_is_refused(field: Battlefield) -> None:
    """Whatever its address: a listener there may trust clients on the same machine."""
    field.internet.add_name("host.good.test", "192.0.2.2", "2001:db8:1::2")
    with Listener(field.machine, tcp=(443,), address="::ffff:192.0.2.2") as listener:
        field.run("a", inside, "host.good.test:443", "host.good.test")
    assert listener.came == []


# Squid's response to each, before any tunnel. No byte and no name may leave the machine.
REQUESTS = {
    "GET http://api.good.test/": 403,
    "GET https://api.good.test/": 403,
    "GET ftp://api.good.test:443/": 403,
    "GET whois://api.good.test/": 403,
    "GET wais://api.good.test/": 403,
    "GET urn:isbn:1": 403,
    "GET gopher://api.good.test/": 400,
    "GET cache_object://localhost/info": 403,
    "GET /squid-internal-mgr/config": 403,
    "GET http://mcpwrap:3128/squid-internal-mgr/config": 403,
    "GET /squid-internal-static/icons/SN.png": 403,
    "PURGE http://api.good.test/": 403,
    "TRACE http://api.good.test/": 403,
    "OPTIONS *": 501,
    "connect evil.test:443": 403,
}
EVIL = "CONNECT evil.test:443 HTTP/1.1\r\n"
GOOD = "CONNECT api.good.test:443 HTTP/1.1\r\n"
AFTER = f"{GOOD}\r\n"
SMUGGLED = {
    f"{EVIL}Host: api.good.test:443\r\n\r\n": 403,
    f"{EVIL}Host: api.good.test\r\nHost: evil.test\r\n\r\n": 403,
    f"{EVIL}Content-Length: 3\r\n\r\nabc{AFTER}": 403,
    f"{EVIL}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{AFTER}": 403,
    f"{EVIL}X-Forwarded-For: 127.77.0.1\r\nForwarded: for=127.77.0.1\r\n\r\n": 403,
    f"GET http://api.good.test/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc{EVIL}\r\n": 403,
    "CONNECT evil.test:443 HTTP/1.1\nHost: api.good.test:443\n\n": 403,
    "CONNECT\tevil.test:443\tHTTP/1.1\r\n\r\n": 403,
    "CONNECT evil.test:443 HTTP/1.0\r\n\r\n": 403,
    "CONNECT evil.test:443\r\n\r\n": 400,  # HTTP/0.9
    f"PROXY TCP4 127.77.0.1 127.77.0.1 1 3128\r\n{GOOD}\r\n": 400,
    f"{GOOD}X: {'a' * 70_000}\r\n\r\n": 431,
}


@on_each_release("Squid 5 and 6 parse requests differently")
@pytest.mark.parametrize("name", ["a", "look"])
def test_nothing_but_a_plain_connect_passes_the_door(field: Battlefield, name: str) -> None:
    lines = dict(REQUESTS)
    if field.machine.suite == TESTING:
        lines["GET cache_object://localhost/info"] = 400  # Squid 7 has no such scheme
    requests = {f"{line} HTTP/1.1\r\n\r\n": status for line, status in lines.items()} | SMUGGLED
    told = field.run(name, proxy_attacks.say_each, list(requests))
    status = {411: 403}  # Squid 5 requires a length where Squid 6 refuses at once
    codes = [int(line.split()[1]) for line in told]
    got = {line: status.get(code, code) for line, code in zip(requests, codes, strict=True)}
    assert got == requests
    assert field.seen().is_nothing()
    long = f"{GOOD}X: {'a' * 14_000}\r\n\r\n"  # the twin of the longest
    assert " 200 " in field.run(name, proxy_attacks.say, long)


@pytest.mark.parametrize("name", ["a", "look"])
def test_a_second_request_behind_a_tunnel_is_no_request(field: Battlefield, name: str) -> None:
    """Nor is any other traffic that is not TLS; it does not reach the host."""
    tunnel = f"{GOOD}\r\n"
    others = [
        "CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
        "GET /admin HTTP/1.1\r\n\r\n",
        "SSH-2.0-x\r\n",
        "\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10",  # a ClientHello of SSL 2
        "\x17\x03\x03\x00\x05hello",  # a record of TLS, but not a handshake
    ]
    told = field.run(name, proxy_attacks.say_after, tunnel, others, quiet_s())
    assert told == ["HTTP/1.1 200 Connection established"] * len(others)
    seen = field.seen()
    assert seen.connections == []
    assert "evil.test" not in seen.names


@pytest.mark.parametrize("name", ["a", "look"])
def test_the_name_within_tls_is_the_name_that_was_asked_for(field: Battlefield, name: str) -> None:
    # None: a ClientHello without SNI.
    names = ["evil.test", "a.cdn.test", "xapi.good.test", "api.good.test.evil.test", None]
    target = "api.good.test:443"
    told = field.run(name, inside_each, [target] * len(names), names)
    assert "HTTP/1.1 200 OK" not in told
    assert field.seen().connections == []
    assert field.run(name, inside, target, "api.good.test") == "HTTP/1.1 200 OK"  # the twin
    seen = field.seen()
    assert seen.hosts() == {"api.good.test"}
    assert len(seen.requests) == 1


def test_another_host_behind_the_same_address_is_seen_only_where_tls_is_opened(
    field: Battlefield,
) -> None:
    """Domain fronting: possible without `intercept`, as the threat model states."""
    attack = ("api.good.test:443", "api.good.test", GET.replace("api.", "evil."))
    assert field.run("a", inside, *attack) == "HTTP/1.1 200 OK"
    assert field.seen().requests == [("GET", "/v1/x", "evil.good.test")]
    assert "200" not in field.run("look", inside, *attack)
    assert field.seen().requests == []


def test_the_front_connects_to_no_host_but_those_of_the_list(field: Battlefield) -> None:
    names = ["evil.test", "other.test", "secret.evil.test", "internal.test", "10.0.0.5", None]
    refused = field.run("a", proxy_attacks.by_front, names)
    assert set(refused) <= {"TLSV1_ALERT_ACCESS_DENIED", "TLSV13_ALERT_MISSING_EXTENSION"}
    assert field.run("a", proxy_attacks.by_front, ["api.good.test"]) == ["HTTP/1.1 200 OK"]
    seen = field.seen()
    assert seen.hosts() == {"api.good.test"}
    assert len(seen.requests) == 1
    assert seen.names <= {"api.good.test", "internal.test"}


FOLDERS = ("/var/lib/mcpwrap/squid", "/var/lib/mcpwrap/ca", "/var/log/mcpwrap", "/etc/mcpwrap")


def test_no_server_reads_what_squid_knows(field: Battlefield) -> None:
    find = "find /var/lib/mcpwrap/squid* /var/lib/mcpwrap/ca* /var/log/mcpwrap -type f || true"
    files = field.machine.look(find).split()
    assert any("proxy-1.conf" in path for path in files)
    assert any("access" in path for path in files)
    assert any("key" in path for path in files)
    assert field.run("a", proxy_attacks.readable, files, FOLDERS) == []
    bundle = "/var/lib/mcpwrap/ca/look/bundle.pem"  # of certificates, with its own
    assert set(field.run("look", proxy_attacks.readable, files, FOLDERS)) <= {bundle}
    keys_and_logs = [p for p in files if "key" in p or "/log/" in p]
    for user in ("alice", "mcpw-none"):
        readable = field.run(user, proxy_attacks.readable, files, FOLDERS)
        assert [path for path in keys_and_logs if path in readable] == []
    twin = field.run("root", proxy_attacks.readable, files, FOLDERS)
    assert set(keys_and_logs) <= set(twin)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        pytest.param("CONNECT api.good.te", marks=only_in_test_all("repeats the row above")),
        pytest.param(f"{GOOD}\r\n", marks=only_in_test_all("a flood, as in test_egress_flood.py")),
    ],
)
def test_a_server_that_holds_a_thousand_connections_holds_up_no_other(
    field: Battlefield, sent: str
) -> None:
    bound_s = pace.promised(1.0)
    with field.session_of("a") as session:
        assert call(session, flood.hold, 1000, sent) == 1000
        for _ in range(3):
            line, took_s = field.run("b", proxy_attacks.timed_inside, "other.test", pace.WAIT_S / 2)
            assert line == "HTTP/1.1 200 OK"
            assert took_s < bound_s


BAD_ENTRIES = [
    "a.test\\ninclude /etc/passwd",
    "a.test b.test",
    ".*",
    "*",
    "*.*.test",
    "(.*)",
    "-n .test",
    "/etc/passwd",
    '\\"/etc/passwd\\"',
    "bücher.test",
    "a.test#",
    "127.0.0.1",
    "[::1]",
    "localhost",
    "a.test:0",
    "A.test",
]


def test_no_entry_of_an_allowlist_becomes_a_line_of_squids(field: Battlefield) -> None:
    machine = field.machine
    config = machine.read("/etc/mcpwrap/config.toml")
    conf = machine.read("/var/lib/mcpwrap/squid/proxy-1.conf")
    bad = ", ".join(f'"{entry}"' for entry in BAD_ENTRIES)
    machine.configure(config.replace('"other.test"', f'"other.test", {bad}'))
    refused = machine.as_root("mcpwrap apply", status=2)
    assert "nothing was changed" in refused.err
    assert refused.err.count("is not a host name") + refused.err.count("is not a port") == len(
        BAD_ENTRIES
    )
    assert machine.read("/var/lib/mcpwrap/squid/proxy-1.conf") == conf
    machine.configure(config)
    assert "nothing to do" in machine.apply()


PROXY = "/var/lib/mcpwrap/squid/proxy-1.conf"
COMMON = "/usr/lib/mcpwrap/squid/common.conf"
Attack = Callable[[Battlefield], Any]


def evil_within(name: str) -> Attack:
    """Return an attack by another name within TLS than the tunnel has."""
    return lambda field: field.run(name, inside, "api.good.test:443", "evil.test")


# An instance, edits of its file, an attack, and where that arrives without the line.
MUTATIONS = [
    pytest.param(
        "proxy-1",
        ("ssl_bump terminate s.a ", "ssl_bump splice s.a "),
        evil_within("a"),
        ("198.51.100.10", 443),
        id="proxy-1-edits0-a-result = inside('api.good.test:443', 'evil.test', GET)-reached0",
    ),
    pytest.param(
        "proxy-1",
        ("dstdomain -n", "dstdomain"),
        lambda field: field.run("a", inside, "203.0.113.66:443", "api.good.test"),
        (world.ATTACKER, 443),
        id="proxy-1-edits1-a-result = inside('203.0.113.66:443', 'api.good.test', GET)-reached1",
    ),
    pytest.param(
        "intercept-1",
        ("ssl_bump terminate s.look ", "ssl_bump splice s.look "),
        evil_within("look"),
        ("198.51.100.10", 443),
        id="intercept-1-edits2-look-result = "
        "inside('api.good.test:443', 'evil.test', GET)-reached2",
    ),
    *(
        pytest.param(
            instance,
            ("note_sni !without_sni ", ""),
            lambda field, name=name: field.run(name, inside, "api.good.test:443", None),
            ("198.51.100.10", 443),
            id=f"{instance}-without-sni",
        )
        for instance, name in (("proxy-1", "a"), ("intercept-1", "look"))
    ),
]


@only_in_test_all("mutation twin: shows that the stories above notice a missing line")
@pytest.mark.parametrize(("instance", "edit", "attack", "reached"), MUTATIONS)
def test_a_line_is_what_refuses(
    field: Battlefield,
    instance: str,
    edit: tuple[str, str],
    attack: Attack,
    reached: tuple[str, int],
) -> None:
    def is_reached() -> bool:
        attack(field)
        return reached in field.seen().connections

    assert not is_reached()
    file = f"/var/lib/mcpwrap/squid/{instance}.conf"
    with field.edited(file, [edit], reread(instance)):
        assert is_reached()
    assert not is_reached()


@only_in_test_all("mutation twin: shows that the order of two lines is noticed")
def test_the_order_of_the_rules_is_what_keeps_names_in(field: Battlefield) -> None:
    """If the address were checked first, each name would be resolved: a leak by DNS."""
    leak = ["secret.evil.test:443"]
    assert field.run("a", connect_each, leak) == ["403"]
    assert field.seen().is_nothing()
    named = "http_access deny s.a s.a.name"
    first = f"http_access deny to_private r.private-address\n{named}"
    with field.edited(PROXY, [(named, first)], reread("proxy-1")):
        assert field.run("a", connect_each, leak) != ["200"]
        assert field.seen().names == {"secret.evil.test"}


@only_in_test_all("mutation twin: shows that packet rules stand behind Squid's own check")
def test_the_packet_rules_hold_where_squid_does_not_look(field: Battlefield) -> None:
    def attack() -> None:
        field.run("a", inside, "internal.test:443", "internal.test")

    rule = "ip daddr @private4 goto refuse"
    line = "acl to_private dst 0.0.0.0/8 10.0.0.0/8"
    with field.edited(COMMON, [(line, "acl to_private dst 0.0.0.0/8")], reread("proxy-1")):
        attack()
        assert field.seen().packets == set()
        with field.edited(RULES, [(rule, "")], RELOAD):
            attack()
            assert field.seen().packets == {("tcp", "10.0.0.5", 443)}
