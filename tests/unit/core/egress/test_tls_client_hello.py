"""Host name in a TLS ClientHello: found if there is one, and never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.egress.tls_client_hello import (
    MAX_HELLO_BYTES,
    MAX_RECORDS,
    Hello,
    HelloIncomplete,
    NoName,
    NotTls,
    ServerName,
    read,
)
from tests.unit.core.hellos import extension, message, real, records, sni, vector

HOST = "api.example.com"
NAMED = message(sni(HOST.encode()))
GREASE = extension(0x0A0A, b"") + extension(0xFAFA, b"\0")
ECH_OUTER = extension(0xFE0D, b"\0" + bytes(200))


@pytest.mark.parametrize("host", [HOST, "a.b", "localhost", "xn--bcher-kva.example"])
def test_a_real_client_hello_is_read(host: str) -> None:
    assert read(real(host)) == ServerName(host)


def test_a_real_one_without_a_name_has_none() -> None:
    assert read(real(None)) == NoName("names no host")


FOUND = [
    records(NAMED),
    records(NAMED, 2),
    records(NAMED, 7),
    records(message(GREASE + sni(HOST.encode()) + GREASE)),
    records(
        message(ECH_OUTER + sni(HOST.encode()))
    ),  # the outer name, of the host that the connection goes to
    records(message(sni(b"API.Example.COM"))),
    records(message(sni(HOST.encode()) + extension(41, bytes(MAX_HELLO_BYTES - 400)))),
    records(NAMED) + b"\x14\3\3\0\1\1early data",
    records(NAMED + b"\2"),  # the rest of a record is not checked
]


@pytest.mark.parametrize("untrusted", FOUND)
def test_the_name_is_found(untrusted: bytes) -> None:
    assert read(untrusted) == read(bytearray(untrusted)) == ServerName(HOST)


NOT_TLS = [
    (b"GET / HTTP/1.1\r\n", "begins with 'G', which does not begin a TLS handshake"),
    (b"\x80\x2e\1\3\1", r"begins with '\x80', which does not begin a TLS handshake"),  # SSL 2.0
    (b"\x15\3\3\0\2\2\x28", r"begins with '\x15', which does not begin a TLS handshake"),
    (b"\x16\2", "has an unknown version of TLS"),
    (b"\x16\3\1\0\0", "has a record of 0 bytes"),
    (b"\x16\3\1\x40\1", "has a record of 16385 bytes"),
    (b"\x16\3\1\xff\xff", "has a record of 65535 bytes"),
    (records(b"\2"), "begins with the handshake message 2, and not with a ClientHello"),
    (records(b"\1\0\x80\1"), "its ClientHello is longer than 32768 bytes"),
    (records(b"\1\xff\xff\xff"), "its ClientHello is longer than 32768 bytes"),
    (records(NAMED[:MAX_RECORDS], 1), "its ClientHello is in more than 64 records"),
    (
        records(NAMED, 40)[:45] + b"\x17",
        r"begins with '\x17', which does not begin a TLS handshake",
    ),
]


@pytest.mark.parametrize(("untrusted", "why"), NOT_TLS)
def test_a_connection_without_tls_is_detected_at_once(untrusted: bytes, why: str) -> None:
    assert read(untrusted) == NotTls(why)


MALFORMED = [
    b"\1\0\0\0",
    b"\1" + vector(bytes(34), 3),
    b"\1" + vector(bytes(34) + b"\xff", 3),  # a session longer than the message
    message(sni(HOST.encode()) + b"\0"),  # half an extension
    message(b"\0\0\xff\xff"),
    b"\1" + vector(NAMED[4:] + b"\0", 3),  # after the extensions
    message(extension(0, b"")),
    message(extension(0, b"\0\0")),  # a list of no names
    message(extension(0, vector(b"\0\0\5ab"))),
    message(extension(0, vector(b"\0" + vector(b"a.b")) + b"\0")),
    message(extension(0, vector(b"\0" + vector(b"a.b") + b"\0" + vector(b"c.d")))),
    message(sni(HOST.encode(), kind=1)),  # RFC 6066 defines no other type
]


@pytest.mark.parametrize("hello", MALFORMED)
def test_a_malformed_client_hello_is_refused(hello: bytes) -> None:
    assert read(records(hello)) == NotTls("its ClientHello is malformed")


NO_HOST = [
    (b"", ""),
    (b"192.0.2.1", "192.0.2.1"),
    (b"0x7f.1", "0x7f.1"),
    (b"a.b.", "a.b."),  # RFC 6066: without a dot at the end
    (b"a..b", "a..b"),
    (b"a.b\0.c", r"a.b\x00.c"),
    (b"a b\r\nHost: c", r"a b\x0d\x0aHost: c"),  # which must not add a line to our request
    (b"b\xfccher.example", r"b\xfccher.example"),
    (b"a.b:443", "a.b:443"),
    (b"*.example.com", "*.example.com"),
    (b"a" * 300, "a" * 253),
]


@pytest.mark.parametrize(("name", "shown"), NO_HOST)
def test_an_invalid_host_name_is_refused(name: bytes, shown: str) -> None:
    assert read(records(message(sni(name)))) == NoName("names an invalid host", shown)


@pytest.mark.parametrize("extensions", [None, b"", GREASE])
def test_a_client_hello_may_name_no_host(extensions: bytes | None) -> None:
    assert read(records(message(extensions))) == NoName("names no host")


def test_two_names_are_refused() -> None:
    twice = message(sni(b"a.example") + sni(b"b.example"))
    assert read(records(twice)) == NoName("has more than one server_name")


WHOLE = [real(HOST), records(NAMED, 3), records(NAMED, 90)]


@pytest.mark.parametrize("whole", WHOLE, ids=["real", "small-records", "one-record"])
def test_every_beginning_needs_more(whole: bytes) -> None:
    for end in range(len(whole)):
        match read(whole[:end]):
            case HelloIncomplete(total_bytes):
                assert end < total_bytes <= len(whole)
            case other:
                pytest.fail(f"{end} bytes are {other}")


def test_a_caller_that_waits_calls_twice_for_each_record() -> None:
    whole, end, asked = records(NAMED, 3), 0, 0
    while isinstance(found := read(whole[:end]), HelloIncomplete):
        end, asked = found.total_bytes, asked + 1
    assert found == ServerName(HOST)
    assert asked <= 2 * len(records(NAMED, 3)) / 8 + 2


def kind(hello: Hello) -> type[Hello]:
    return type(hello)


broken = st.builds(
    lambda hello, at, byte: hello[: at % len(hello)] + bytes([byte]) + hello[at % len(hello) + 1 :],
    st.sampled_from(FOUND),
    st.integers(0, 400),
    st.integers(0, 255),
)


@given(st.binary() | st.binary().map(lambda rest: b"\x16\3\1" + rest) | broken, st.binary())
def test_more_bytes_change_no_decision(untrusted: bytes, more: bytes) -> None:
    first = read(untrusted)
    if isinstance(first, HelloIncomplete):
        assert first.total_bytes > len(untrusted)
    else:
        assert read(untrusted + more) == first


@given(st.integers(1, 200), st.from_regex(r"[a-z]{1,20}(\.[a-z]{1,20}){0,4}", fullmatch=True))
def test_the_division_into_records_does_not_matter(record_bytes: int, host: str) -> None:
    hello = message(sni(host.encode()))
    untrusted = records(hello, record_bytes)
    is_few = len(hello) <= record_bytes * MAX_RECORDS
    assert read(untrusted) == ServerName(host) if is_few else kind(read(untrusted)) is NotTls
