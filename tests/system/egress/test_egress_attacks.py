"""Attacks of a hostile server on the packet rules, judged by arrivals, not by answers."""

from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import internet_map as world
from tests.system.bed.nspawn import Profile
from tests.system.egress import battlefield
from tests.system.egress.battlefield import Battlefield, Listener, listening, quiet_s
from tests.system.guest import attacks, proxy_attacks
from tests.system.support.tiers import on_each_release, only_in_test_all

STAGE = battlefield.booted

LOCAL = ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "192.0.2.2", "2001:db8:1::2")
LOCAL_PORTS = (22, 25, 631, 3128, 5432, 6379, 8000)
AWAY = ("198.51.100.10", "2001:db8:2::10", "::ffff:198.51.100.10", *world.PRIVATE)


def attack_everywhere(field: Battlefield, who: str) -> tuple[dict[str, str], list[list[Any]], Any]:
    ports = tuple(port for port in LOCAL_PORTS if port != 3128)
    with Listener(field.machine, tcp=ports, udp=(5300,)) as listener:
        told = field.run(who, attacks.everywhere, LOCAL, LOCAL_PORTS, AWAY)
    return told, listener.came, field.seen()


@on_each_release("each release loads the rules with its own nft")
def test_the_attacks_arrive_when_nothing_refuses_them(field: Battlefield) -> None:
    """The twin of the next test: alice, who is not a server."""
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


@on_each_release("each release loads the rules with its own nft")
@pytest.mark.parametrize("name", ["a", "b", "look", "direct"])
def test_a_server_reaches_nothing_but_its_own_address(field: Battlefield, name: str) -> None:
    told, came, seen = attack_everywhere(field, name)
    assert came == []
    assert seen.is_nothing()
    tcp = [answer for attack, answer in told.items() if attack.startswith("tcp")]
    assert set(field.refusals(tcp)) == {"refused"}  # at once, and not by a time-out
    del told["icmp6"]  # the kernel reports that it was sent
    assert set(told.values()) - set(tcp) == {"EPERM"}


def test_a_port_that_was_refused_elsewhere_is_refused_at_once(field: Battlefield) -> None:
    """The kernel soon assigns a port again, and a retry is answered by an ICMP error."""
    away = ["198.51.100.10", "10.0.0.5", "2001:db8:2::10", "fd00:ec2::254"]
    told = field.run("a", attacks.from_one_port, away)
    again = field.run("a", attacks.from_one_port, away)  # from and to the same places
    if field.has_filters:
        assert told == again == ["EPERM"] * 4  # a server takes no port
        return
    assert told == ["ECONNREFUSED"] * 4
    assert again == ["EHOSTUNREACH", "EHOSTUNREACH", "EACCES", "EACCES"]


def test_a_server_without_an_allowlist_has_no_network(field: Battlefield) -> None:
    targets = [(address, 443) for address in ("198.51.100.10", "2001:db8:2::10", "192.0.2.2")]
    assert field.run("none", attacks.tcp_to, targets) == ["ENETUNREACH"] * 3
    assert field.run("none", attacks.interfaces) == ["lo"]
    assert field.seen().is_nothing()
    assert field.run("alice", attacks.tcp_to, targets)[:2] == ["connected"] * 2  # the twin


def test_direct_is_one_address_and_one_port(field: Battlefield) -> None:
    attack = ("10.0.0.5", (5432, 22, 443), (5432,))
    refused = ["refused", "refused", "EPERM"]
    told = field.run("direct", attacks.tcp_and_udp_to, *attack)
    assert field.refusals(told) == ["connected", *refused]
    assert field.seen().packets == {("tcp", "10.0.0.5", 5432)}
    told = field.run("a", attacks.tcp_and_udp_to, *attack)
    assert field.refusals(told) == ["refused", *refused]
    assert field.seen().is_nothing()


@pytest.mark.parametrize("name", ["a", "b"])
def test_only_three_kinds_of_sockets_can_be_made(field: Battlefield, name: str) -> None:
    """No vsock, which packet rules do not see, and no other family; nor by another call."""
    kinds, protocols, ring, why = field.run(name, attacks.kinds_of_sockets)
    inet, inet6, netlink = 2, 10, 16
    assert kinds == [[inet, 1], [inet, 2], [inet6, 1], [inet6, 2], [netlink, 2], [netlink, 3]]
    assert set(protocols) <= {1, 6, 17, 58, 136}  # ICMP, TCP, UDP, ICMPv6, UDP-Lite: no MPTCP
    assert (ring, why) == (-1, 1)  # io_uring makes sockets past seccomp: EPERM


def test_no_option_of_a_socket_leads_past_the_rules(field: Battlefield) -> None:
    told = field.run("a", attacks.with_options)
    for option in ("SO_MARK", "IP_TRANSPARENT", "TCP_REPAIR"):
        assert field.refusals(told[option]) == ["EPERM", "refused"]
    assert field.refusals(told["SO_BINDTODEVICE"]) == ["set", "refused"]  # since Linux 5.7
    assert "connected" not in field.run("a", attacks.by_source_routes, quiet_s())
    assert field.seen().is_nothing()
    told = field.run("root", attacks.with_options)  # the twin: root's arrive
    assert told["SO_BINDTODEVICE"] == ["set", "connected"]
    assert told["SO_MARK"] == ["set", "connected"]
    assert len(field.seen().connections) >= 5


def visit_by(field: Battlefield, who: str, source: tuple[str, int], wait_s: float) -> str:
    """Have `who` listen; return the text that a visitor from this internet address receives."""
    with listening(field, who):
        return field.from_outside(attacks.visit, source, ("192.0.2.2", 9999), wait_s)


@pytest.mark.parametrize("name", ["a", "direct"])
def test_nobody_outside_reaches_a_server_that_listens(field: Battlefield, name: str) -> None:
    visitor = (world.ATTACKER, 0)
    # The packet rules drop what comes; with SocketBindDeny= nothing listens there at all.
    outcome = "ECONNREFUSED" if field.has_filters else "TimeoutError"
    assert visit_by(field, name, visitor, quiet_s()) == outcome
    assert visit_by(field, "alice", visitor, pace.WAIT_S) == "a secret"  # the twin


def test_nor_does_the_host_that_it_may_reach(field: Battlefield) -> None:
    assert visit_by(field, "direct", ("10.0.0.5", 9), quiet_s()) != "a secret"


def test_what_comes_by_udp_is_not_answered(field: Battlefield) -> None:
    attackers = [("a", "EPERM"), ("alice", "answered")]
    if field.has_filters:
        assert field.run("a", attacks.take_datagrams, 9998) == "OSError 1"  # EPERM, of bind(2)
        del attackers[0]
    for who, expected in attackers:
        field.run(who, attacks.take_datagrams, 9998)
        assert field.from_outside(attacks.udp, "192.0.2.2", 9998) == "sent"
        assert field.run(who, attacks.answer_datagram) == expected
        if who == "a":
            assert field.seen().packets == set()
    field.await_packet("udp")  # alice's


def test_names_are_asked_of_nobody(field: Battlefield) -> None:
    names = ["api.good.test", evil := "secret.evil.test"]
    own = field.address_of("a")
    assert field.run("a", attacks.resolve, names) == [[own], [own]]  # the front's answers
    assert field.run("a", attacks.resolve_by_node, evil) == f"[ '{own}' ]\n"
    assert field.run("b", attacks.resolve, names)[0] == "EAI -3"
    assert own not in field.run("b", attacks.resolve_by_node, evil)
    assert field.seen().is_nothing()
    twin = field.run("alice", attacks.resolve, names)[0]
    assert twin == ["198.51.100.10", "2001:db8:2::10"]


DIRECTLY = ["--noproxy", "*"]
REFUSED_BY_CURL = [
    (["https://evil.test/"], {"NO_PROXY": "*", "no_proxy": "*"}),
    (["https://203.0.113.66/"], {"NO_PROXY": "*", "no_proxy": "*"}),
    (["--proxy", "socks5h://203.0.113.66:443", "https://evil.test/"], {}),
    (["--proxy", "http://127.0.0.1:3128", "https://evil.test/"], {}),
    ([*DIRECTLY, "--connect-to", "::203.0.113.66:443", "https://api.good.test/"], {}),
    ([*DIRECTLY, "--resolve", "evil.test:443:203.0.113.66", "https://evil.test/"], {}),
    ([*DIRECTLY, "--interface", "eth0", "https://203.0.113.66/"], {}),
    ([*DIRECTLY, "--doh-url", "https://203.0.113.66/", "https://evil.test/"], {}),
    (["https://evil.test/"], {}),
]


def test_no_variable_and_no_option_of_curl_leads_around_squid(field: Battlefield) -> None:
    for words, variables in REFUSED_BY_CURL:
        assert field.run("a", attacks.curl, pace.WAIT_S / 2, words, variables) == "000", words
    for words in (["https://api.good.test/"], [*DIRECTLY, "https://api.good.test/"]):
        # The twins: through Squid, and through the front.
        assert field.run("a", attacks.curl, pace.WAIT_S / 2, words, {}) == "200", words
    seen = field.seen()
    assert seen.hosts() == {"api.good.test"}
    assert len(seen.requests) == 2
    assert seen.names <= {"api.good.test"}


# The default mask of icmp(7) without the bit of destination unreachable.
UNREACHABLE_UNLIMITED = 0x1818 & ~(1 << 3)


@only_in_test_all("the time that a refusal takes under another profile, on a machine of its own")
def test_a_refusal_takes_a_second_where_both_refuse(suite: str) -> None:
    """Where IPAddressDeny= acts as well, the reset is kept from the server: see the rules.

    It takes one more where the kernel sends no ICMP error at the second packet. So the rules are
    not loaded meanwhile, which would clear the set of refused connections, and no error counts
    against icmp_msgs_per_sec: while one processor refills that budget, another finds it empty.
    """
    with battlefield.booted(suite, Profile.BPF) as field:
        field.machine.as_root(f"sysctl -qw net.ipv4.icmp_ratemask={UNREACHABLE_UNLIMITED}")
        field.seen()

        def time_of_refusals() -> float:
            told = field.run("a", attacks.timed, (*LOCAL, *AWAY))
            assert {answer for answer, _ in told} <= {"EHOSTUNREACH", "EACCES", "ECONNREFUSED"}
            return max(took_s for _, took_s in told)

        bound_s = pace.promised(1.5)
        with field.machine.unwatched():
            assert pace.best(time_of_refusals, bound_s) < bound_s
        assert field.run("a", proxy_attacks.connect, "api.good.test:443") == "200"
        assert {a for _, a, _ in field.seen().packets} <= {"198.51.100.10", "2001:db8:2::10"}
        field.end_sessions()
        assert field.machine.unannounced() == []
