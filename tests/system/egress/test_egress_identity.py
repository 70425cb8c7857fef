"""Egress address as identity: no account sends from a server's address, or listens in its place."""

from collections.abc import Callable
from typing import Any

import pytest

from mcpwrap.core.names import health_address
from tests.system.bed import internet_map as world
from tests.system.egress import battlefield
from tests.system.egress.battlefield import (
    RELOAD,
    RULES,
    Battlefield,
    Listener,
    listening,
    quiet_s,
)
from tests.system.guest import attacks, proxy_attacks
from tests.system.support.tiers import only_in_test_all

STAGE = battlefield.booted

STOP, START = "systemctl stop mcpwrap-squid-proxy@1", "systemctl start mcpwrap-squid-proxy@1"


HEALTH = [health_address(instance) for instance in ("proxy-1", "intercept-1")]


def test_a_server_does_not_pass_for_another(field: Battlefield) -> None:
    a, b = field.address_of("a"), field.address_of("b")
    refused = [*["refused"] * 3, "EPERM"]
    assert field.refusals(field.run("a", proxy_attacks.use, b, "other.test:443")) == refused
    assert field.refusals(field.run("b", proxy_attacks.use, a, "api.good.test:443")) == refused
    assert field.seen().is_nothing()
    assert field.run("a", proxy_attacks.use, a, "api.good.test:443") == [
        "200", "connected", "connected", "sent"
    ]  # fmt: skip
    assert field.run("b", proxy_attacks.use, b, "other.test:443")[0] == "200"


@pytest.mark.parametrize("user", ["root", "alice", "mallory", "mcpwrap-gate", "mcpw-none"])
def test_nobody_passes_for_a_server(field: Battlefield, user: str) -> None:
    """An address in the range that no server has is not open either."""
    for address in (field.address_of("a"), field.address_of("look"), "127.77.255.254", *HEALTH):
        told = field.run(user, proxy_attacks.use, address, "api.good.test:443")
        assert told == [*["ECONNREFUSED"] * 3, "EPERM"], address
    assert field.seen().is_nothing()
    own = field.address_of("look")
    twin = field.run("look", proxy_attacks.use, own, "api.good.test:443")
    assert twin == ["200", "connected", "connected", "sent"]


def test_while_squid_is_down_nobody_takes_its_place(field: Battlefield) -> None:
    """That the listener would be reached is shown at the end, without the rule."""
    own = field.address_of("a")
    field.machine.as_root(STOP)
    try:
        for user in ("alice", "mallory", "root"):
            with Listener(
                field.machine, user=user, address=f"::ffff:{own}", tcp=(3128,)
            ) as squatter:
                assert field.run("a", attacks.tcp, own, 3128, wait_s=quiet_s()) != "connected"
            assert squatter.came == []
    finally:
        field.machine.as_root(START)
    assert field.run("a", proxy_attacks.connect, "api.good.test:443") == "200"


def test_nor_does_anybody_call_from_its_address(field: Battlefield) -> None:
    """To a server that listens: its answer would go to an address that it may reach."""
    source = (field.address_of("a"), 3128)
    field.machine.as_root(STOP)
    try:
        with listening(field, "a") as told:
            assert told == ("EPERM" if field.has_filters else "listening")
            visit = field.run("mallory", attacks.visit, source, ("127.0.0.1", 9999), quiet_s())
    finally:
        field.machine.as_root(START)
    assert visit != "a secret"


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_resolver_on_all_addresses_hears_nothing_of_a_server(
    field: Battlefield, name: str
) -> None:
    """dnsmasq(8) is one. `b` has no front; that of `a` is not running."""
    field.machine.as_root("systemctl stop mcpwrap-front")
    try:
        with Listener(field.machine, udp=(53,)) as resolver:
            field.run(name, attacks.udp, field.address_of(name), 53, "a secret")
            assert field.run("root", attacks.udp, "127.0.0.1", 53, "mine") == "sent"
    finally:
        field.machine.as_root("systemctl start mcpwrap-front")
    assert resolver.came == [["udp", 53, "mine"]]


def test_squid_and_the_front_reach_no_more_than_they_need(field: Battlefield) -> None:
    """Should one be taken over, or be led by a name that changes between check and use."""
    private = [(address, 443) for address in (*world.PRIVATE, "127.0.0.1")]
    public = "198.51.100.10"
    for account in ("mcpwrap-proxy", "mcpwrap-intercept", "mcpwrap-front"):
        refused = field.run(account, attacks.tcp_to, private)
        assert refused == ["ECONNREFUSED"] * 7
        told = field.run(account, attacks.tcp_and_udp_to, public, (22,), (53, 443))
        assert told == ["ECONNREFUSED", "EPERM", "EPERM"]
    assert field.seen().is_nothing()
    # Each kind checks its own health, and gets the answer that everything is refused there.
    for account, own in zip(("mcpwrap-proxy", "mcpwrap-intercept"), HEALTH, strict=True):
        told = field.run(account, attacks.tcp_to, [(address, 3128) for address in HEALTH])
        assert told == ["connected" if address == own else "ECONNREFUSED" for address in HEALTH]
        assert field.run(account, proxy_attacks.connect, "api.good.test:443", own) == "403"
    twin = [(public, 443), ("2001:db8:2::10", 443)]
    assert field.run("mcpwrap-proxy", attacks.tcp_to, twin) == ["connected"] * 2
    assert field.run("mcpwrap-front", attacks.tcp_to, twin) == ["ECONNREFUSED"] * 2


WRAPPER = "meta skuid @wrapped goto wrapper"
OWN = "meta skuid . ip saddr @egress_addr meta skuid . ip daddr @egress_addr tcp dport 3128 accept"
SYN = "ip daddr 127.77.0.0/16 tcp flags & (syn | ack) == syn goto refuse"
DATAGRAM = "ip daddr 127.77.0.0/16 meta l4proto udp goto refuse"
SYN_ACK = "ip saddr 127.77.0.0/16 tcp flags & (syn | ack) == (syn | ack) goto refuse"
# While the wrapper runs, a client of its address has that address too: these refuse the same then.
SYN_FROM = SYN.replace("ip daddr", "ip saddr")
DATAGRAM_FROM = DATAGRAM.replace("ip daddr", "ip saddr")
ANY = "ip daddr 127.77.0.0/16 tcp dport 3128 accept"
Attack = Callable[[Battlefield], Any]


def squid_at(field: Battlefield, who: str, server: str, target: str) -> str:
    """Request a tunnel of Squid at the address of a server."""
    return field.run(who, proxy_attacks.connect, target, field.address_of(server))


# Edits of the rules, an attacker, an attack, and its outcome without the rule.
MUTATIONS = [
    pytest.param(
        {WRAPPER: ""},
        lambda field: field.run("a", attacks.tcp, "198.51.100.10", 443),
        "connected",
        id="edits0-a-result = tcp('198.51.100.10', 443)-connected",
    ),
    pytest.param(
        {WRAPPER: ""},
        lambda field: field.run("a", attacks.udp, "2001:db8:2::10", 443),
        "sent",
        id="edits1-a-result = udp('2001:db8:2::10', 443)-sent",
    ),
    pytest.param(
        {OWN: ANY},
        lambda field: squid_at(field, "a", "b", "other.test:443"),
        "200",
        id="edits2-a-result = connect('other.test:443', to='{b}')-200",
    ),
    pytest.param(
        {SYN: "", SYN_FROM: ""},
        lambda field: squid_at(field, "mallory", "a", "api.good.test:443"),
        "200",
        id="edits3-mallory-result = connect('api.good.test:443', to='{a}')-200",
    ),
    pytest.param(
        {DATAGRAM: "", DATAGRAM_FROM: ""},
        lambda field: field.run("mallory", attacks.udp, field.address_of("a"), 53),
        "sent",
        id="edits4-mallory-result = udp('{a}', 53)-sent",
    ),
    pytest.param(
        {"ip daddr @private4 goto refuse": ""},
        lambda field: field.run("mcpwrap-proxy", attacks.tcp, "10.0.0.5", 443),
        "connected",
        id="edits5-mcpwrap-proxy-result = tcp('10.0.0.5', 443)-connected",
    ),
    pytest.param(
        {"ip6 daddr @private6 goto refuse": ""},
        lambda field: field.run("mcpwrap-proxy", attacks.tcp, "fd00:ec2::254", 443),
        "connected",
        id="edits6-mcpwrap-proxy-result = tcp('fd00:ec2::254', 443)-connected",
    ),
]


@only_in_test_all("mutation twin: shows that the stories above notice a missing rule")
@pytest.mark.parametrize(("edits", "attack", "success"), MUTATIONS)
def test_a_rule_is_what_refuses(
    field: Battlefield, edits: dict[str, str], attack: Attack, success: str
) -> None:
    assert attack(field) != success
    with field.edited(RULES, list(edits.items()), RELOAD):
        assert attack(field) == success
    assert attack(field) != success


@only_in_test_all("mutation twin: shows that the squatter's story notices a missing rule")
def test_the_rule_on_answers_is_what_keeps_squatters_out(field: Battlefield) -> None:
    own = field.address_of("a")
    field.machine.as_root(STOP)
    with (
        field.edited(RULES, [(SYN_ACK, "")], RELOAD),
        Listener(field.machine, user="mallory", address=f"::ffff:{own}", tcp=(3128,)) as squatter,
    ):
        assert field.run("a", attacks.tcp, own, 3128) == "connected"
    assert squatter.came == [["tcp", 3128, "attack"]]
    field.machine.as_root(START)
