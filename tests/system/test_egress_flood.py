"""One hostile server opens connections without end, and the others do not notice."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.system.attacker import RELOAD, RULES, TOOLS, Battlefield, battlefield, reread
from tests.system.bed.machine import CommandFailedError
from tests.system.bed.session import Session

COMMON = "/usr/lib/mcpwrap/squid/common.conf"
CAP = "client_ip_max_connections 1024"
MOST = 1025  # Squid's own count begins with the one that it is about to take
AT_ONCE_S = 2.0  # what takes a few milliseconds on a machine that does nothing else
SESSIONS = 5
# Squid is left this many descriptors, a quarter of what it has, so that less of a flood shows it.
DESCRIPTORS = 4096
EACH = 1000  # 5000 together
FEW = 200  # of the front, which has a count of its own: 256 for each server
# Connections that say nothing; those that Squid keeps are counted once it has refused the rest.
FLOOD = """
import resource
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
held = time.held = []
try:
    while len(held) < EACH: held.append(socket.create_connection((OWN, PORT), 5))
except OSError: pass
result = len(held)
"""
HELD = """
poll = select.poll()
for s in time.held: poll.register(s, select.POLLIN)
ended = {fd for fd, _ in poll.poll(0)}
result = len(time.held) - len(ended)
"""
LET_GO = "import time\nfor s in time.held: s.close()"
# As TLS begins, so that Squid goes on to the host, which does not answer; then without a goodbye.
ABANDON = """
to_send = ssl.MemoryBIO()
said = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), to_send, server_hostname=HOST)
try: said.do_handshake()
except ssl.SSLWantReadError: hello = to_send.read()
result = 0
for _ in range(8):
    left = []
    for _ in range(500):
        s = socket.create_connection((OWN, 3128), 5)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        left.append(s)
        try:
            s.sendall(f"CONNECT {HOST}:443 HTTP/1.1\\r\\n\\r\\n".encode())
            if not s.recv(99): continue
            s.sendall(hello)
            result += 1
        except OSError: pass
    # Squid has read the last hello once it answers somebody who came after it.
    connect("api.good.test:443")
    for s in left: s.close()
"""
ASK = """
began = time.monotonic()
answer = inside("other.test:443", "other.test", GET)
result = [answer, time.monotonic() - began]
"""


@pytest.fixture(scope="module")
def ground(suite: str) -> Iterator[Battlefield]:
    with battlefield(suite) as made:
        pid = "$(systemctl show -P MainPID mcpwrap-squid-proxy@1)"
        itself = "setpriv --reuid mcpwrap-proxy --regid mcpwrap-proxy --clear-groups"
        limit = f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"
        made.machine.as_root(f"{itself} prlimit --pid {pid} {limit}")
        yield made


@pytest.fixture
def field(ground: Battlefield) -> Iterator[Battlefield]:
    """Lend the module's machine to one test, with an internet that has seen nothing."""
    ground.seen()
    yield ground
    assert ground.machine.unannounced() == []


@pytest.fixture
def sessions(field: Battlefield) -> Iterator[list[Session]]:
    """Open all of a's sessions."""
    with ExitStack() as stack:
        yield [stack.enter_context(field.machine.session("a")) for _ in range(SESSIONS)]


def flood(sessions: list[Session], port: int, each: int) -> None:
    """Have all sessions open what they can."""
    for session in sessions:
        session.evaluate(f"{TOOLS}PORT, EACH = {port}, {each}\n{FLOOD}")


def left_of_it(sessions: list[Session]) -> int:
    """Return how many connections are left to them, once what is too many has been ended."""
    give_up_at = time.monotonic() + 20
    while (held := holds(sessions)) > MOST and time.monotonic() < give_up_at:
        pass
    return held


def holds(sessions: list[Session]) -> int:
    """Return how many connections nobody has ended."""
    return sum(session.evaluate(f"{TOOLS}{HELD}") for session in sessions)


def descriptors(field: Battlefield) -> int:
    """Return how many descriptors Squid has in use."""
    pid = "$(systemctl show -P MainPID mcpwrap-squid-proxy@1)"
    return int(field.machine.as_root(f"ls /proc/{pid}/fd | wc -l").out)


def expect_an_answer_at_once(session: Session) -> None:
    """See that a server reaches what it may, as if nobody else were there."""
    answer, took_s = session.evaluate(f"{TOOLS}{ASK}")
    print(f"{answer} after {took_s:.3f} s")
    assert answer == "HTTP/1.1 200 OK"
    assert took_s < AT_ONCE_S


@pytest.mark.parametrize(("port", "each"), [(3128, EACH), (443, FEW), (53, FEW)])
def test_a_flood_of_connections_is_nobody_elses(
    field: Battlefield, sessions: list[Session], port: int, each: int
) -> None:
    with field.machine.session("b") as other:
        flood(sessions, port, each)
        held = left_of_it(sessions)
        print(f"port {port}: {held} of {SESSIONS * each} are held, and Squid has", end=" ")
        print(f"{descriptors(field)} descriptors")
        assert 0 < held <= MOST
        expect_an_answer_at_once(other)
        for session in sessions:
            session.evaluate(LET_GO)
        assert sessions[0].evaluate(f"{TOOLS}result = connect('api.good.test:443')") == "200"


def test_without_the_cap_it_is_everybodys(field: Battlefield, sessions: list[Session]) -> None:
    field.machine.announce("mcpwrap-squid-proxy@1.service")  # without a descriptor it ends, too
    with (
        field.edited(COMMON, [(CAP, "")], reread("proxy-1")),
        field.machine.session("b") as other,
    ):
        flood(sessions, 3128, EACH)
        assert holds(sessions) == SESSIONS * EACH
        answer, took_s = other.evaluate(f"{TOOLS}{ASK}")
        assert (answer, took_s > AT_ONCE_S) != ("HTTP/1.1 200 OK", False)


def test_what_a_server_has_abandoned_still_counts(
    field: Battlefield, sessions: list[Session]
) -> None:
    """By the kernel's count it is over; Squid has it until the host does not answer in time."""
    chain = "{ type filter hook output priority 9; ip daddr 198.51.100.11 drop; };"
    field.machine.as_root(f"nft 'table inet hole {{ chain output {chain} }};'")
    try:
        abandon = f"{TOOLS}HOST = 'a.cdn.test'\n{ABANDON}"
        with field.machine.session("b") as other:
            got_through = sum(session.evaluate(abandon) for session in sessions[:2])
            used = descriptors(field)
            print(f"{got_through} got through, and Squid has {used} descriptors")
            assert MOST <= got_through < 2 * MOST
            assert used < 2 * MOST + 100
            expect_an_answer_at_once(other)
    finally:
        field.machine.as_root("nft delete table inet hole")


# The rule, and what its absence lets a server do: be counted as somebody else.
SOURCE = "meta skuid . ip saddr @own meta skuid"


def test_a_server_cannot_choose_by_which_address_it_is_counted(field: Battlefield) -> None:
    attempt = """
with socket.socket() as s:
    s.settimeout(3)
    s.bind((BIND, 0))
    result = errno.errorcode.get(s.connect_ex((OWN, 3128)), "connected")
"""
    addresses = {a: f"BIND = {a!r}" for a in ("127.0.0.1", "127.9.9.9", field.address_of("b"))}
    for address, bind in addresses.items():
        assert field.as_server("a", f"{bind}\n{attempt}") == "ECONNREFUSED", address
    assert field.as_server("a", f"BIND = OWN\n{attempt}") == "connected"
    with field.machine.unwatched(), field.edited(RULES, [(SOURCE, "meta skuid")], RELOAD):
        assert field.as_server("a", f"{addresses['127.9.9.9']}\n{attempt}") == "connected"


def test_the_address_is_the_servers_own_again_at_each_start(field: Battlefield) -> None:
    own, machine = field.address_of("a"), field.machine
    fetch = "result = connect('api.good.test:443')"
    assert field.as_server("a", fetch) == "200"
    machine.as_root(f"ip route delete local {own} dev lo table local")
    assert field.as_server("a", fetch) == "ECONNREFUSED"
    machine.as_root("systemctl stop mcpwrap@a.service")
    assert field.as_server("a", fetch) == "200"
    with pytest.raises(CommandFailedError):
        machine.as_root(f"ip route get {own} | grep -q 'src 127.0.0.1'")
