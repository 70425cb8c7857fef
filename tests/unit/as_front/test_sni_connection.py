"""TLS listener of the front: servers without proxy support reach hosts, or are refused at once."""

import hashlib
import socket
import ssl
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.shared import pace
from tests.unit.as_front.conftest import MakeWorld
from tests.unit.as_front.world import OPENED, World, rest_of
from tests.unit.core.hellos import message, real, records, sni

HOST = "api.example.com"
HELLO = real(HOST)
ACCESS_DENIED = b"\x15\3\3\0\2\2\x31"
INTERNAL_ERROR = b"\x15\3\3\0\2\2\x50"
MISSING_EXTENSION = b"\x15\3\3\0\2\2\x6d"
ANONYMOUS = "AECDH-AES256-SHA:@SECLEVEL=0"  # a cipher that needs no certificate


def tls(purpose: int) -> ssl.SSLContext:
    context = ssl.SSLContext(purpose)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers(ANONYMOUS)
    return context


def test_a_server_speaks_tls_with_the_host_it_names(world: World) -> None:
    world.start("git")
    squid = world.squid("git")

    def host() -> None:
        with tls(ssl.PROTOCOL_TLS_SERVER).wrap_socket(squid.take(HOST), server_side=True) as end:
            end.sendall(b"hello " + end.recv(99))
            end.unwrap()

    with ThreadPoolExecutor() as pool:
        host_ended = pool.submit(host)
        with tls(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(
            world.connect("git"), server_hostname=HOST
        ) as server:
            server.sendall(b"git")
            assert server.recv(99) == b"hello git"
            assert server.recv(99) == b""
            server.unwrap()  # else the host's unwrap() fails since Python 3.12
        host_ended.result()
    assert world.events_file.read_bytes() == b""


@pytest.mark.parametrize("pieces", [1, 7, 100])
def test_a_client_hello_may_come_in_pieces(world: World, pieces: int) -> None:
    world.start("git")
    squid = world.squid("git")
    server = world.connect("git")
    hello = records(message(sni(HOST.encode())), 30)
    for start in range(0, len(hello), pieces):
        server.sendall(hello[start : start + pieces])
    with squid.take(HOST) as host:
        assert host.recv(len(hello), socket.MSG_WAITALL) == hello


def test_bytes_with_the_response_of_squid_arrive(world: World) -> None:
    world.start("git")
    squid = world.squid("git")
    server = world.connect("git")
    server.sendall(HELLO + b"early data")
    with squid.take(HOST, OPENED + b"first ") as host:
        assert host.recv(len(HELLO) + 10, socket.MSG_WAITALL) == HELLO + b"early data"
        host.sendall(b"second")
    assert rest_of(server) == b"first second"


def test_each_direction_ends_by_itself(world: World) -> None:
    world.start("git")
    squid = world.squid("git")
    server, host = world.spliced("git", squid, HELLO, HOST)
    server.shutdown(socket.SHUT_WR)
    assert host.recv(9) == b""
    host.sendall(b"still here")
    assert server.recv(99) == b"still here"
    host.close()
    assert server.recv(9) == b""

    server, host = world.spliced("git", squid, HELLO, HOST)
    host.shutdown(socket.SHUT_WR)
    assert server.recv(9) == b""
    server.sendall(b"still here")
    server.close()
    assert rest_of(host) == b"still here"


@pytest.mark.parametrize("who", ["server", "host"])
def test_a_reset_of_one_side_resets_the_other(world: World, who: str) -> None:
    world.start("git")
    squid = world.squid("git")
    server, host = world.spliced("git", squid, HELLO, HOST)
    host.sendall(b"half a")
    assert server.recv(99) == b"half a"
    breaks, other = (server, host) if who == "server" else (host, server)
    breaks.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    breaks.close()
    with pytest.raises(ConnectionResetError):
        other.recv(9)


BLOCK = bytes(range(256)) * 4096
BLOCKS = 64


def send_blocks(connection: socket.socket) -> None:
    for _ in range(BLOCKS):
        connection.sendall(BLOCK)
    connection.shutdown(socket.SHUT_WR)


def digest_of(connection: socket.socket) -> str:
    digest = hashlib.sha256()
    while chunk := connection.recv(65_536):
        digest.update(chunk)
    return digest.hexdigest()


def peak_bytes(world: World) -> int:
    assert world.process
    status = Path(f"/proc/{world.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_much_goes_both_ways_at_once_and_is_not_held(world: World) -> None:
    world.start("git")
    squid = world.squid("git")
    server, host = world.spliced("git", squid, HELLO, HOST)
    before_bytes = peak_bytes(world)
    with ThreadPoolExecutor() as pool:
        sent = [pool.submit(send_blocks, end) for end in (server, host)]
        got = [pool.submit(digest_of, end) for end in (server, host)]
        expected = hashlib.sha256(BLOCK * BLOCKS).hexdigest()
        assert [digest.result() for digest in got] == [expected, expected]
        assert [done.result() for done in sent] == [None, None]
    assert peak_bytes(world) - before_bytes < 8 * 1024 * 1024


def test_a_reader_that_does_not_read_stops_the_writer(world: World) -> None:
    world.start("git")
    squid = world.squid("git")
    server, host = world.spliced("git", squid, HELLO, HOST)
    before_bytes = peak_bytes(world)
    host.settimeout(1.0)
    with pytest.raises(TimeoutError):
        host.sendall(BLOCK * BLOCKS)
    assert peak_bytes(world) - before_bytes < 2 * 1024 * 1024  # of 64 MiB
    assert len(server.recv(99)) == 99  # buffered data can still be read


def test_a_silent_connection_stays(make_world: MakeWorld) -> None:
    """No timeout of the front applies to it."""
    world = make_world(hello_s=0.2)
    world.start("git")
    squid = world.squid("git")
    server, host = world.spliced("git", squid, HELLO, HOST)
    for _ in range(3):
        assert rest_of(world.connect("git")) == b""  # each takes that long
    host.sendall(b"late")
    assert server.recv(9) == b"late"


DENIALS = [
    ("403 Forbidden", ACCESS_DENIED),
    ("407 Proxy Authentication Required", ACCESS_DENIED),
    ("503 Service Unavailable", INTERNAL_ERROR),  # the host does not answer; no rule denies it
    ("400", ACCESS_DENIED),
]


@pytest.mark.parametrize(("status", "alert"), DENIALS)
def test_a_refused_server_gets_an_alert_at_once(world: World, status: str, alert: bytes) -> None:
    world.start("git")
    squid = world.squid("git")
    server = world.connect("git")
    server.sendall(HELLO)
    with squid.take(HOST, f"HTTP/1.1 {status}\r\nX: y\r\n\r\nbecause".encode()):
        began_s = time.monotonic()
        assert rest_of(server) == alert
    assert time.monotonic() - began_s < pace.promised(0.5)
    assert world.only_event() == ("git", "refused", HOST, status)


def test_a_tls_client_understands_the_alert(world: World) -> None:
    world.start("git")
    squid = world.squid("git")
    with ThreadPoolExecutor() as pool:
        pool.submit(squid.take, HOST, b"HTTP/1.1 403 Forbidden\r\n\r\n")
        with pytest.raises(ssl.SSLError, match=r"(?i)access.denied"):
            ssl.create_default_context().wrap_socket(world.connect("git"), server_hostname=HOST)


def test_the_alert_arrives_although_the_server_sends_on(world: World) -> None:
    world.start("git")
    squid = world.squid("git")
    server = world.connect("git")
    server.sendall(HELLO + bytes(500_000))
    squid.take(HOST, b"HTTP/1.1 403 Forbidden\r\n\r\n").close()
    assert rest_of(server) == ACCESS_DENIED


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\n", "it closed the connection"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "its answer is no HTTP"),
    ],
)
def test_a_proxy_without_http_is_logged(world: World, answer: bytes, why: str) -> None:
    world.start("git")
    squid = world.squid("git")
    server = world.connect("git")
    server.sendall(HELLO)
    squid.take(HOST, answer).close()
    assert rest_of(server) == INTERNAL_ERROR
    assert world.only_event() == ("git", "refused", HOST, f"the proxy cannot be asked: {why}")


def test_a_proxy_that_is_down_is_logged(world: World) -> None:
    world.start("git")
    server = world.connect("git")
    server.sendall(HELLO)
    assert rest_of(server) == INTERNAL_ERROR
    why = "the proxy cannot be asked: Connection refused"
    assert world.only_event() == ("git", "refused", HOST, why)


NO_HOST = [
    (b"GET / HTTP/1.1\r\nHost: a.b\r\n\r\n", b"", "not-tls", "", "begins with 'G', which does "),
    (b"\x80", b"", "not-tls", "", r"begins with '\x80', which does not begin a TLS handshake"),
    (real(None), MISSING_EXTENSION, "no-sni", "", "names no host"),
    (
        records(message(sni(b"a\x1b.b"))),
        MISSING_EXTENSION,
        "no-sni",
        r"a\x1b.b",
        "names an invalid",
    ),
]


@pytest.mark.parametrize(
    ("hello", "answer", "kind", "host", "why"), NO_HOST, ids=["http", "ssl2", "no-name", "no-host"]
)
def test_a_client_hello_without_a_host_is_refused_in_milliseconds(
    world: World, hello: bytes, answer: bytes, kind: str, host: str, why: str
) -> None:
    world.start("git")
    server = world.connect("git")
    began_s = time.monotonic()
    server.sendall(hello)
    assert rest_of(server) == answer
    assert time.monotonic() - began_s < pace.promised(0.5)
    event = world.only_event()
    assert event[:3] == ("git", kind, host)
    assert event[3].startswith(why)


@pytest.mark.parametrize("beginning", [b"", HELLO[:50]], ids=["nothing", "a-part"])
def test_an_incomplete_client_hello_times_out(make_world: MakeWorld, beginning: bytes) -> None:
    world = make_world(hello_s=0.05)
    world.start("git")
    server = world.connect("git")
    server.sendall(beginning)
    assert rest_of(server) == b""
    assert world.only_event() == ("git", "not-tls", "", "sent no whole ClientHello in 0 s")


@pytest.mark.parametrize("beginning", [b"", HELLO[:50]], ids=["nothing", "a-part"])
def test_a_close_before_the_host_is_named_is_logged(world: World, beginning: bytes) -> None:
    world.start("git")
    server = world.connect("git")
    server.sendall(beginning)
    server.close()
    expected = ("git", "closed-early", "", "before its ClientHello was whole")
    assert world.only_event() == expected


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_silent_host_is_logged(world: World, how: str) -> None:
    world.start("git")
    squid = world.squid("git")
    server, host = world.spliced("git", squid, HELLO, HOST)
    if how == "reset":
        host.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        host.close()
        with pytest.raises(ConnectionResetError):
            server.recv(9)
    else:
        host.close()
        assert server.recv(9) == b""
        server.close()
    expected = ("git", "closed-early", HOST, "by the proxy or the host, before a byte of an answer")
    assert world.only_event() == expected
