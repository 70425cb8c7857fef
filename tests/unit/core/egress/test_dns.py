"""Synthetic DNS resolver: every host has the one address, and no other record exists."""

import struct
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.egress.dns import TTL_S, DnsReply, answer

HERE = IPv4Address("127.77.1.2")
A, NS, PTR, TXT, AAAA, OPT, TSIG, HTTPS, ANY = 1, 2, 12, 16, 28, 41, 250, 65, 255
IN, CHAOS, ANY_CLASS = 1, 3, 255
RD, CD, QUERY, RESPONSE = 0x0100, 0x0010, 0, 0x8000
NO_ERROR, FORMAT_ERROR, NO_SUCH_NAME, NOT_IMPLEMENTED, REFUSED = 0, 1, 3, 4, 5


def wire(name: bytes) -> bytes:
    labels = name.split(b".") if name else []
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def question(name: bytes, kind: int = A, class_: int = IN) -> bytes:
    return wire(name) + struct.pack(">HH", kind, class_)


def header(flags: int = RD, counts: tuple[int, int, int, int] = (1, 0, 0, 0)) -> bytes:
    return b"\xab\xcd" + struct.pack(">5H", flags, *counts)


def edns(version: int = 0, data: bytes = b"", kind: int = OPT) -> bytes:
    return b"\0" + struct.pack(">HHBBHH", kind, 4096, 0, version, 0x8000, len(data)) + data


def ask(query: bytes) -> DnsReply:
    found = answer(query, HERE)
    assert found is not None
    return found


def told(packet: bytes) -> tuple[int, int, int, int]:
    """Return rcode, and how many questions, answers and additional records there are."""
    _, flags, questions, answers, authorities, additional = struct.unpack(">6H", packet[:12])
    assert packet[:2] == b"\xab\xcd"
    assert flags & RESPONSE
    assert authorities == 0
    return flags & 0xF, questions, answers, additional


@pytest.mark.parametrize("name", [b"api.example.com", b"localhost", b"a_b.example", b"a" * 63])
def test_every_host_has_the_address(name: bytes) -> None:
    found = ask(header() + question(name))
    expected = b"\xab\xcd" + struct.pack(">5H", 0x8180, 1, 1, 0, 0) + question(name)
    expected += b"\xc0\x0c" + struct.pack(">HHIH", A, IN, TTL_S, 4) + bytes([127, 77, 1, 2])
    assert found == DnsReply(expected, name.decode(), is_host=True)


def test_a_question_is_returned_in_its_own_case() -> None:
    found = ask(header() + question(b"ApI.eXample.com"))
    assert question(b"ApI.eXample.com") in found.packet
    assert (found.asked, found.is_host) == ("ApI.eXample.com", True)


@pytest.mark.parametrize("kind", [AAAA, NS, PTR, TXT, HTTPS, ANY])
def test_there_are_no_other_records(kind: int) -> None:
    found = ask(header() + question(b"api.example.com", kind))
    assert told(found.packet) == (NO_ERROR, 1, 0, 0)
    assert found.asked == "api.example.com"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"", ""),
        (b"192.0.2.1", "192.0.2.1"),
        (b"-a.example", "-a.example"),
        (b"a\x1b[2J.example", r"a\x1b[2J.example"),
        (b"b\xc3\xbc.example", r"b\xc3\xbc.example"),
    ],
)
def test_no_host_has_such_a_name(name: bytes, shown: str) -> None:
    found = ask(header() + question(name))
    assert told(found.packet) == (NO_SUCH_NAME, 1, 0, 0)
    assert (found.asked, found.is_host) == (shown, False)


def test_a_dot_inside_a_label_is_not_a_boundary() -> None:
    found = ask(header() + b"\5a.b.c\0" + struct.pack(">HH", A, IN))
    assert told(found.packet) == (NO_SUCH_NAME, 1, 0, 0)
    assert found.asked == r"a\x00b\x00c"


@pytest.mark.parametrize("class_", [0, CHAOS, ANY_CLASS])
def test_other_classes_are_refused(class_: int) -> None:
    assert told(ask(header() + question(b"version.bind", TXT, class_)).packet) == (REFUSED, 1, 0, 0)


LONGEST = b".".join([b"a" * 63, b"b" * 63, b"c" * 63, b"d" * 61])
MALFORMED = [
    header(),
    header() + b"\3api",
    header() + b"\3api\0\0\1\0",
    header() + b"\xc0\x0c\0\1\0\1",  # a pointer, and to itself
    header() + b"\3api\xc0\x0c\0\1\0\1",
    header() + b"\x40\0\0\1\0\1",  # an extended label
    header() + question(LONGEST + b"d"),
    header() + question(b"a.b") + b"\0",
    header(counts=(0, 0, 0, 0)),
    header(counts=(2, 0, 0, 0)) + question(b"a.b") * 2,
    header(counts=(1, 1, 0, 0)) + question(b"a.b"),
    header(counts=(1, 0, 1, 0)) + question(b"a.b"),
    header(counts=(1, 0, 0, 1)) + question(b"a.b"),
    header(counts=(1, 0, 0, 1)) + question(b"a.b") + edns()[:10],
    header(counts=(1, 0, 0, 1)) + question(b"a.b") + edns(data=b"ab")[:-1],
    header(counts=(1, 0, 0, 1)) + question(b"a.b") + edns() + b"\0",
    header(counts=(1, 0, 0, 1)) + question(b"a.b") + edns(kind=TSIG),
    header(counts=(1, 0, 0, 2)) + question(b"a.b") + edns() * 2,
    header() + question(b"a.b") + edns(),  # not counted
]


@pytest.mark.parametrize("query", MALFORMED)
def test_a_malformed_query_gets_a_format_error(query: bytes) -> None:
    found = ask(query)
    assert told(found.packet) == (FORMAT_ERROR, 0, 0, 0)
    assert (found.asked, found.is_host) == ("", False)


def test_the_longest_name_is_answered() -> None:
    assert told(ask(header() + question(LONGEST)).packet) == (NO_ERROR, 1, 1, 0)


@pytest.mark.parametrize("flags", [0x2000, 0x2800, 0x7800])  # NOTIFY, UPDATE, the last
def test_other_opcodes_are_not_implemented(flags: int) -> None:
    packet = ask(header(flags) + question(b"a.b")).packet
    assert told(packet) == (NOT_IMPLEMENTED, 0, 0, 0)
    assert struct.unpack(">H", packet[2:4])[0] & 0x7800 == flags


@pytest.mark.parametrize(
    "untrusted", [b"", header()[:11], header(RESPONSE) + question(b"a.b"), b"\xff" * 12]
)
def test_a_packet_that_is_not_a_query_gets_no_response(untrusted: bytes) -> None:
    assert answer(untrusted, HERE) is None


@pytest.mark.parametrize("flags", [QUERY, RD, RD | CD, RD | 0x0020 | 0x0400 | 0x0200])
def test_only_the_flags_that_a_resolver_copies_are_copied(flags: int) -> None:
    packet = ask(header(flags) + question(b"a.b")).packet
    assert struct.unpack(">H", packet[2:4])[0] == 0x8080 | (flags & (RD | CD))


@pytest.mark.parametrize("data", [b"", b"\0\x0a\0\x08cookie!!"])
def test_edns_is_answered_with_edns(data: bytes) -> None:
    packet = ask(header(counts=(1, 0, 0, 1)) + question(b"a.b") + edns(data=data)).packet
    assert told(packet) == (NO_ERROR, 1, 1, 1)
    assert packet.endswith(b"\0" + struct.pack(">HHIH", OPT, 1232, 0, 0))


def test_a_later_edns_gets_our_version() -> None:
    packet = ask(header(counts=(1, 0, 0, 1)) + question(b"a.b") + edns(version=1)).packet
    assert told(packet) == (NO_ERROR, 1, 0, 1)  # its upper bits are in the OPT record: 16
    assert packet.endswith(b"\0" + struct.pack(">HHBBHH", OPT, 1232, 1, 0, 0, 0))


shaped = st.builds(
    lambda flags, counts, rest: header(flags, counts) + rest,
    st.integers(0, 0xFFFF),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.binary() | st.binary().map(lambda rest: question(b"a.b") + rest),
)


@given(st.binary(max_size=40) | shaped)
def test_no_bytes_break_it_and_no_answer_is_large(untrusted: bytes) -> None:
    if found := answer(untrusted, HERE):
        assert found.packet[:2] == untrusted[:2]
        assert len(found.packet) <= len(untrusted) + 16 <= 512 or len(found.packet) == 12
        assert found.asked.isascii()
