"""Sinkhole resolver of one server: UDP and TCP, hosts only, one log entry a minute."""

import socket
import struct

import pytest

from mcpwrap.core.wire.sni_front_log import FrontEvent
from tests.unit.as_front.world import DNS, PATIENCE_S, World, rest_of

A, AAAA = 1, 28


def query(name: str, kind: int = A, number: int = 7) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + struct.pack(">BHH", 0, kind, 1)


def udp(world: World, server: str) -> socket.socket:
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(PATIENCE_S)
    asking.connect((world.address_by_server[server], DNS))
    return asking


def ask(world: World, server: str, packet: bytes) -> bytes:
    with udp(world, server) as asking:
        asking.send(packet)
        return asking.recv(999)


def framed(packet: bytes) -> bytes:
    return struct.pack(">H", len(packet)) + packet


def test_each_server_gets_its_own_address(world: World) -> None:
    world.start("git", "web")
    for server, address in world.address_by_server.items():
        answer = ask(world, server, query("api.example.com"))
        assert answer.endswith(b"\0\4" + socket.inet_aton(address))


def test_there_is_no_address_of_another_kind(world: World) -> None:
    world.start("git")
    answer = ask(world, "git", query("api.example.com", AAAA))
    assert (
        answer
        == b"\0\7" + struct.pack(">5H", 0x8180, 1, 0, 0, 0) + query("api.example.com", AAAA)[12:]
    )


def test_an_invalid_query_is_not_answered_but_the_next_one_is(world: World) -> None:
    world.start("git")
    with udp(world, "git") as asking:
        for garbage in (b"", b"\xff", b"\xff" * 4096, b"\0" * 65_507):
            asking.send(garbage)
        asking.send(query("api.example.com"))
        assert asking.recv(999)[:2] == b"\0\0"  # of zeros: a response that there is no question
        assert asking.recv(999)[:2] == b"\0\7"


def test_a_connection_carries_many_queries(world: World) -> None:
    world.start("git")
    asking = world.connect("git", DNS)
    several = b"".join(framed(query("api.example.com", number=n)) for n in range(100))
    asking.sendall(several)
    asking.shutdown(socket.SHUT_WR)
    answers = rest_of(asking)
    one_bytes = len(answers) // 100
    numbers = [answers[i + 2 : i + 4] for i in range(0, len(answers), one_bytes)]
    assert numbers == [struct.pack(">H", n) for n in range(100)]


@pytest.mark.parametrize(
    "untrusted", [b"\0", framed(query("a.b"))[:9], b"\xff\xff", framed(b"\xff" * 12)]
)
def test_a_connection_without_a_query_is_closed(world: World, untrusted: bytes) -> None:
    world.start("git")
    asking = world.connect("git", DNS)
    asking.sendall(untrusted)
    asking.shutdown(socket.SHUT_WR)
    assert rest_of(asking) == b""


def test_a_name_is_noted_once(world: World) -> None:
    world.start("git", "web")
    for name in ("a.example", "A.Example", "a.example", "1.2.3.4"):
        for kind in (A, AAAA):
            ask(world, "git", query(name, kind))
    ask(world, "web", query("a.example"))
    found = world.events(lambda events: len(events) == 3)
    assert [(e.server, e.event, e.host, e.detail) for e in found] == [
        ("git", "asked", "a.example", ""),
        ("git", "asked", "1.2.3.4", "no name of a host"),
        ("web", "asked", "a.example", ""),
    ]


def test_a_flood_of_names_is_counted_and_the_other_server_is_noted(world: World) -> None:
    world.start("git", "web")
    for n in range(100):
        ask(world, "git", query(f"secret-{n}.example"))
    ask(world, "web", query("a.example"))
    found = world.events(lambda events: sum(map(of_git, events)) == 100)
    assert [e.server for e in found].count("web") == 1
    more = [e.detail for e in found if e.event == "more"]
    assert more
    assert len(found) < 100


def of_git(event: FrontEvent) -> int:
    """Return the number of git's events that a line stands for."""
    if event.server != "git":
        return 0
    return int(event.detail.removesuffix(" more")) if event.event == "more" else 1
