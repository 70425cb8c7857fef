"""An egress address says who asks: nobody asks from another's, or answers in its name."""

from collections.abc import Iterator

import pytest

from tests.system.attacker import RELOAD, RULES, Battlefield, Listener, battlefield, met
from tests.system.bed import internet_map as world


@pytest.fixture(scope="module")
def ground(suite: str) -> Iterator[Battlefield]:
    with battlefield(suite) as made:
        yield made


@pytest.fixture
def field(ground: Battlefield) -> Iterator[Battlefield]:
    """Lend the module's machine to one test, with an internet that has seen nothing."""
    ground.seen()
    yield ground
    assert ground.machine.unannounced() == []


STOP, START = "systemctl stop mcpwrap-squid-proxy@1", "systemctl start mcpwrap-squid-proxy@1"
USE = "result = [connect('{1}', to='{0}'), tcp('{0}', 443), tcp('{0}', 53), udp('{0}', 53)]"


def test_a_server_does_not_pass_for_another(field: Battlefield) -> None:
    a, b = field.address_of("a"), field.address_of("b")
    refused = [*["ECONNREFUSED"] * 3, "EPERM"]
    assert field.as_server("a", USE.format(b, "other.test:443")) == refused
    assert field.as_server("b", USE.format(a, "api.good.test:443")) == refused
    assert field.seen().is_nothing()
    assert field.as_server("a", USE.format(a, "api.good.test:443")) == [
        "200", "connected", "connected", "sent"
    ]  # fmt: skip
    assert field.as_server("b", USE.format(b, "other.test:443"))[0] == "200"


@pytest.mark.parametrize("user", ["root", "alice", "mallory", "mcpwrap-gate", "mcpw-none"])
def test_nobody_passes_for_a_server(field: Battlefield, user: str) -> None:
    """An address in the range that no server has is no door either."""
    for address in (field.address_of("a"), field.address_of("look"), "127.77.255.254"):
        told = field.as_account(user, USE.format(address, "api.good.test:443"))
        assert told == [*["ECONNREFUSED"] * 3, "EPERM"], address
    assert field.seen().is_nothing()
    own = USE.format(field.address_of("look"), "api.good.test:443")
    assert field.as_server("look", own) == ["200", "connected", "connected", "sent"]  # the twin


def test_while_squid_is_down_nobody_takes_its_place(field: Battlefield) -> None:
    """That the listener would be reached is shown at the end, without the rule."""
    address = f"::ffff:{field.address_of('a')}"
    field.machine.as_root(STOP)
    for user in ("alice", "mallory", "root"):
        with Listener(field, user=user, address=address, tcp=[3128]) as squatter:
            assert field.as_server("a", "result = tcp(OWN, 3128, wait_s=1)") != "connected"
        assert squatter.came == []
    field.machine.as_root(START)
    assert field.as_server("a", "result = connect('api.good.test:443')") == "200"


FROM_EGRESS = """
with socket.socket() as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.settimeout(1.5)
    try:
        s.bind(("{0}", 3128)); s.connect(("127.0.0.1", 9999)); result = s.recv(99).decode()
    except OSError as error: result = name_of(error)
"""


def test_nor_does_anybody_call_from_its_address(field: Battlefield) -> None:
    """To a server that listens: its answer would go to an address that it may reach."""
    code = FROM_EGRESS.format(field.address_of("a"))
    field.machine.as_root(STOP)
    try:
        told = met(field, "a", lambda: field.as_account("mallory", code))
    finally:
        field.machine.as_root(START)
    assert told != "a secret"


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_resolver_on_all_addresses_hears_nothing_of_a_server(
    field: Battlefield, name: str
) -> None:
    """dnsmasq(8) is one. `b` has no front; that of `a` is not running."""
    field.machine.as_root("systemctl stop mcpwrap-front")
    try:
        with Listener(field, udp=[53]) as resolver:
            field.as_server(name, "result = udp(OWN, 53, b'a secret')")
            assert field.as_account("root", "result = udp('127.0.0.1', 53, b'mine')") == "sent"
    finally:
        field.machine.as_root("systemctl start mcpwrap-front")
    assert resolver.came == [["udp", 53, "mine"]]


def test_squid_and_the_front_reach_no_more_than_they_need(field: Battlefield) -> None:
    """Should one be taken over, or be led by a name that changes between check and use."""
    code = f"""
result = [tcp(address, 443) for address in {(*world.PRIVATE, "127.0.0.1")}]
result += [tcp("198.51.100.10", 22), udp("198.51.100.10", 53), udp("198.51.100.10", 443)]
"""
    for account in ("mcpwrap-proxy", "mcpwrap-intercept", "mcpwrap-front"):
        assert field.as_account(account, code) == [*["ECONNREFUSED"] * 8, "EPERM", "EPERM"]
    assert field.seen().is_nothing()
    twin = "result = [tcp('198.51.100.10', 443), tcp('2001:db8:2::10', 443)]"
    assert field.as_account("mcpwrap-proxy", twin) == ["connected"] * 2
    assert field.as_account("mcpwrap-front", twin) == ["ECONNREFUSED"] * 2


WRAPPER = "meta skuid @wrapped goto wrapper"
OWN = "meta skuid . ip saddr @own meta skuid . ip daddr @own tcp dport 3128 accept"
SYN = "ip daddr 127.77.0.0/16 tcp flags & (syn | ack) == syn goto refuse"
DATAGRAM = "ip daddr 127.77.0.0/16 meta l4proto udp goto refuse"
SYN_ACK = "ip saddr 127.77.0.0/16 tcp flags & (syn | ack) == (syn | ack) goto refuse"
# While the wrapper runs, a caller of its address gets it for its own: these refuse the same then.
SYN_FROM = SYN.replace("ip daddr", "ip saddr")
DATAGRAM_FROM = DATAGRAM.replace("ip daddr", "ip saddr")
ANY = "ip daddr 127.77.0.0/16 tcp dport 3128 accept"
MUTATIONS = [
    ({WRAPPER: ""}, "a", "result = tcp('198.51.100.10', 443)", "connected"),
    ({WRAPPER: ""}, "a", "result = udp('2001:db8:2::10', 443)", "sent"),
    ({OWN: ANY}, "a", "result = connect('other.test:443', to='{b}')", "200"),
    (
        {SYN: "", SYN_FROM: ""},
        "mallory",
        "result = connect('api.good.test:443', to='{a}')",
        "200",
    ),
    ({DATAGRAM: "", DATAGRAM_FROM: ""}, "mallory", "result = udp('{a}', 53)", "sent"),
    (
        {"ip daddr @private4 goto refuse": ""},
        "mcpwrap-proxy",
        "result = tcp('10.0.0.5', 443)",
        "connected",
    ),
    (
        {"ip6 daddr @private6 goto refuse": ""},
        "mcpwrap-proxy",
        "result = tcp('fd00:ec2::254', 443)",
        "connected",
    ),
]


@pytest.mark.parametrize(("edits", "who", "code", "success"), MUTATIONS)
def test_a_rule_is_what_refuses(
    field: Battlefield, edits: dict[str, str], who: str, code: str, success: str
) -> None:
    code = code.format(a=field.address_of("a"), b=field.address_of("b"))
    assert field.run(who, code) != success
    with field.edited(RULES, list(edits.items()), RELOAD):
        assert field.run(who, code) == success
    assert field.run(who, code) != success


def test_the_rule_on_answers_is_what_keeps_squatters_out(field: Battlefield) -> None:
    address = f"::ffff:{field.address_of('a')}"
    field.machine.as_root(STOP)
    with (
        field.edited(RULES, [(SYN_ACK, "")], RELOAD),
        Listener(field, user="mallory", address=address, tcp=[3128]) as squatter,
    ):
        assert field.as_server("a", "result = tcp(OWN, 3128)") == "connected"
    assert squatter.came == [["tcp", 3128, "attack"]]
    field.machine.as_root(START)
