"""Handshake packets: each decodes to what was encoded, and any other is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.names import is_server_name
from mcpwrap.core.wire.session_socket import (
    QUERIES,
    FolderRequest,
    OtherVersionError,
    Packet,
    Protocol,
    ProtocolError,
    QueryResponse,
    ServerEnded,
    ServerStarted,
    SessionRefused,
    StderrChunk,
    VariablesRequest,
    decode,
    decode_env,
    decode_hello,
    encode,
    encode_hello,
)

PACKETS: list[tuple[Packet, bytes]] = [
    (VariablesRequest(("TZ",)), b"?TZ"),
    (VariablesRequest(("TZ", "LANG")), b"?TZ\0LANG"),
    (QueryResponse("policy 0123456789ab"), b"Ppolicy 0123456789ab"),
    (StderrChunk(b""), b"E"),
    (StderrChunk(b"\xff\0E"), b"E\xff\0E"),
    (FolderRequest(), b"D"),
    (ServerStarted(), b"S"),
    (ServerStarted("0123456789abcdef"), b"S0123456789abcdef"),
    (ServerStarted("", "/home/alice/é"), "S\0/home/alice/é\0".encode()),
    (ServerStarted("0123456789abcdef", "", "why"), b"S0123456789abcdef\0\0why"),
    (ServerEnded(0), b"X0"),
    (ServerEnded(137), b"X137"),
    (ServerEnded(137, "over 1G of memory: é"), "X137 over 1G of memory: é".encode()),
    (ServerEnded(0, " "), b"X0  "),
    (SessionRefused(78, "no server 'é'"), "!78 no server 'é'".encode()),
    (SessionRefused(69, ""), b"!69 "),
]
GARBAGE = [
    b"",
    b"s",
    b"DD",
    b"S\0/p",
    b"S\0/p\0why",
    b"S\0\0why\0",
    b"S0123456789abcde",
    b"S\xff",
    b"S ",
    b"SS",
    b"\0",
    b"X",
    b"X-1",
    b"X+1",
    b"X1 ",
    b"X1\n",
    b"X why",
    b"X 1",
    b"X1why",
    b"X1234 why",
    b"X1234",
    b"X\xd9\xa1",  # an Arabic digit
    b"!",
    b"!x why",
    b"! 78 why",
    b"?\xff",
    b"mcpwrap 1\0git",
]
names = st.text("ABC_", min_size=1)
values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.mark.parametrize(("packet", "raw"), PACKETS)
def test_a_packet_is_read_as_it_was_written(packet: Packet, raw: bytes) -> None:
    assert encode(packet) == raw
    assert decode(raw) == packet


@pytest.mark.parametrize("untrusted", GARBAGE)
def test_a_malformed_packet_is_refused(untrusted: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(untrusted)


@pytest.mark.parametrize(
    ("untrusted", "packet"),
    [
        (b"!70", SessionRefused(70, "")),
        (
            b"!70 \xff",
            SessionRefused(70, "\ufffd"),
        ),  # a reason is only shown, so it may be any text
        (b"X137 \xff\0 1", ServerEnded(137, "\ufffd\0 1")),
    ],
)
def test_an_end_is_parsed_with_any_reason(untrusted: bytes, packet: Packet) -> None:
    assert decode(untrusted) == packet


@given(
    st.binary() | st.builds(bytes.__add__, st.sampled_from([b"?", b"X", b"!", b"S"]), st.binary())
)
def test_no_bytes_break_a_decoder(untrusted: bytes) -> None:
    with suppress(ProtocolError):
        assert decode(encode(decode(untrusted))) == decode(untrusted)
    with suppress(ProtocolError):
        assert "" not in decode_env(untrusted)
    with suppress(ProtocolError):
        assert "\0" not in decode_hello(Protocol.GATE, b"mcpwrap 1\0" + untrusted)[0]


def test_no_query_is_a_valid_server_name() -> None:
    assert not [question for question in QUERIES if is_server_name(question)]


@given(st.sampled_from(Protocol), values.filter(bool), st.dictionaries(names, values))
def test_a_hello_is_read_as_it_was_written(
    protocol: Protocol, subject: str, env: dict[str, str]
) -> None:
    assert decode_hello(protocol, encode_hello(protocol, subject, env)) == (subject, env)


@pytest.mark.parametrize(
    "untrusted",
    [
        b"",
        b"mcpwrap 1",
        b"mcpwrap 1\0",
        b"mcpwrap 2\0git",
        b"mcpwrap 10\0git",
        b"MCPWRAP 1\0git",
        b"\0git",
        b"mcpwrap 1\0\xff",
        b"mcpwrap 1\0git\0A",
        b"mcpwrap 1\0git\0A=\xff",
    ],
)
def test_a_malformed_hello_is_refused(untrusted: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_hello(Protocol.GATE, untrusted)


@pytest.mark.parametrize(
    ("protocol", "theirs", "why"),
    [
        (
            Protocol.WRAPPER,
            1,
            "the gate has version 1 of the protocol, the wrapper version 3: {gate}",
        ),
        (
            Protocol.WRAPPER,
            4,
            "the gate has version 4 of the protocol, the wrapper version 3: {wrappers}",
        ),
        (
            Protocol.GATE,
            2,
            "the program that connects has version 2 of the protocol, the gate version 1: {gate}",
        ),
    ],
)
def test_the_refusal_of_another_version_names_what_to_restart(
    protocol: Protocol, theirs: int, why: str
) -> None:
    gate = "`sudo systemctl restart mcpwrap-gate.service`"
    wrappers = "`sudo systemctl restart 'mcpwrap@*.service'`"
    with pytest.raises(OtherVersionError) as raised:
        decode_hello(protocol, b"mcpwrap %d\x00git" % theirs)
    assert str(raised.value) == f"{why.format(gate=gate, wrappers=wrappers)} [E-SESSION-VERSION]"


def test_the_gate_s_hello_to_a_wrapper_has_another_version_than_in_0_1_0() -> None:
    """The wrapper of that release accepts only `mcpwrap 1`, which its gate sends to ours."""
    assert encode_hello(Protocol.WRAPPER, "1000", {"A": "1"}) == b"mcpwrap 3\x001000\0A=1"


@pytest.mark.parametrize(
    ("untrusted", "env"),
    [
        (b"", {}),
        (
            b"\0",
            {},
        ),  # the stub has none of the requested variables: an empty packet would be the end
        (b"A=", {"A": ""}),
        (b"A=1\0B=2", {"A": "1", "B": "2"}),
        (b"A=b=c\n", {"A": "b=c\n"}),
    ],
)
def test_variables_are_read(untrusted: bytes, env: dict[str, str]) -> None:
    assert decode_env(untrusted) == env


@pytest.mark.parametrize(
    "untrusted", [b"A", b"=1", b"A=1\0A=2", b"A=1\0\0B=2", b"A=1\0", b"A=\xff"]
)
def test_malformed_variables_are_refused(untrusted: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_env(untrusted)
