"""Packets of the approval socket: each decodes to what was encoded, and any other is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import (
    MAX_BYTES,
    MAX_PASSWORD_BYTES,
    MAX_REASON_BYTES,
    MAX_TIMES,
    ApprovalProtocolError,
    Channel,
    DecideRequest,
    DocumentReply,
    DoneReply,
    EndOfList,
    FromApprover,
    ListRequest,
    LoginRequest,
    Paused,
    Pending,
    PinsRequest,
    Proof,
    RefusedReply,
    ResetPinsRequest,
    Scope,
    ShowRequest,
    ToApprover,
    Verdict,
    WatchRequest,
    decode_question,
    encode_question,
)

names = st.text(st.characters(max_codepoint=127, exclude_characters="\n"), max_size=64)
secrets = st.binary(max_size=MAX_PASSWORD_BYTES).filter(lambda one: b"\n" not in one)
decisions = st.builds(
    DecideRequest,
    id=names,
    digest=names,
    verdict=st.sampled_from(Verdict),
    scope=st.sampled_from(Scope),
    times=st.integers(1, MAX_TIMES),
    channel=st.sampled_from(Channel),
    proof=st.sampled_from(Proof),
    user=names,
    password=secrets,
    subset=names,
    with_findings=st.booleans(),
    process_start=st.integers(0, 2**63),
    reason=st.binary(max_size=MAX_REASON_BYTES),  # with newlines
)
questions = st.one_of(
    st.builds(ListRequest),
    st.builds(WatchRequest),
    st.builds(ShowRequest, names),
    st.builds(PinsRequest, names),
    st.builds(ResetPinsRequest, names),
    st.builds(LoginRequest, names, secrets),
    decisions,
)


@given(questions)
def test_a_packet_is_read_as_it_was_written(packet: FromApprover) -> None:
    sent = encode_question(packet)
    assert len(sent) <= MAX_BYTES
    assert decode_question(sent) == packet


@given(st.binary(max_size=200) | questions.map(encode_question), st.integers(), st.binary())
def test_any_bytes_are_a_packet_or_refused(sent: bytes, at: int, more: bytes) -> None:
    """Also packets that are almost valid: cut off, or with other bytes inserted."""
    at = at % (len(sent) + 1)
    for untrusted in (sent, sent[:at], sent[:at] + more + sent[at:], sent + b"\n" + more):
        with suppress(ApprovalProtocolError):
            decode_question(untrusted)


RIGHT = b"decide\na1\nd1\napprove\nonce\n1\ncommand\nnone\nbob\npw\nab12,cd\nFalse\n12\n"


@pytest.mark.parametrize(
    "untrusted",
    [
        b"", b"list\n", b"List", b"list ", b"show", b"show\na\nb", b"login\nbob", b"\nlist",
        b"login\nbob\npass\nword", b"login\nb\xc3\xb6b\npw", b"show\n\xff",
        b"decide", RIGHT[:-1], RIGHT.replace(b"approve", b"Approve"),
        RIGHT.replace(b"once", b""), RIGHT.replace(b"\n1\n", b"\n0\n"),
        RIGHT.replace(b"\n1\n", b"\n101\n"), RIGHT.replace(b"\n1\n", b"\n-1\n"),
        RIGHT.replace(b"\n1\n", b"\n1.0\n"), RIGHT.replace(b"\n1\n", b"\n" + b"9" * 5000 + b"\n"),
        RIGHT.replace(b"command", b"post"), RIGHT.replace(b"none", b"yes"),
        RIGHT.replace(b"\n12\n", b"\nx\n"), RIGHT.replace(b"False", b"no"),
        RIGHT.replace(b"ab12", b"\xff"), b"pins", b"pins\ngit\nx", b"reset-pins",
        RIGHT.replace(b"bob", b"b\xff"),
    ],
)  # fmt: skip
def test_malformed_packets_are_refused(untrusted: bytes) -> None:
    with pytest.raises(ApprovalProtocolError):
        decode_question(untrusted)


def test_a_text_that_is_too_long_is_cut() -> None:
    long = RIGHT.replace(b"pw", b"p" * 5000) + b"r\n" * 5000
    decided = decode_question(long)
    assert isinstance(decided, DecideRequest)
    assert (len(decided.password), len(decided.reason)) == (MAX_PASSWORD_BYTES, MAX_REASON_BYTES)
    assert decode_question(b"login\nbob\n" + b"p" * 5000) == LoginRequest(
        "bob", b"p" * MAX_PASSWORD_BYTES
    )


@pytest.mark.parametrize(
    "packet",
    [
        ShowRequest("a\nb"),
        LoginRequest("bob", b"pass\nword"),
        LoginRequest("bob\npw", b""),
        DecideRequest(id="a1", digest="d1\napprove", verdict=Verdict.DENY),
        DecideRequest(id="a1", digest="d1", verdict=Verdict.APPROVE, password=b"pw\n7\n"),
    ],
)
def test_a_newline_in_a_typed_text_is_refused(packet: FromApprover) -> None:
    with pytest.raises(ApprovalProtocolError, match="newline"):
        encode_question(packet)


PENDING = Pending(
    id="a1", digest="d1", size=7, agent_uid=1000, server="sqlite", session="12-3",
    method="tools/call", target="drop", rule="writes", message="", asked_at=1.5, expires_at=301.5,
    times=2, waiting=1, may="proof",
)  # fmt: skip


@pytest.mark.parametrize(
    ("packet", "sent"),
    [
        (EndOfList(), '{"what":"end"}'),
        (DoneReply(text="a1 is approved"), '{"what":"done","text":"a1 is approved"}'),
        (RefusedReply(code="gone", why="x"), '{"what":"refused","code":"gone","why":"x"}'),
        (DocumentReply(id="a1", digest="d1"), '{"what":"shown","id":"a1","digest":"d1"}'),
        (Paused(agent_uid=1, server="s", why="w", until=2.0), None),
        (PENDING, None),
    ],
)
def test_the_gates_packets_are_json(packet: ToApprover, sent: str | None) -> None:
    encoded = approval_socket.encode(packet)
    assert sent in {None, encoded.decode()}
    assert approval_socket.decode(encoded) == packet
