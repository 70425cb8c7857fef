"""Packets about approvals between a session's process and the monitor, encoded and decoded."""

import socket
from contextlib import suppress
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.as_gate.ipc import approval_packets, packets
from mcpwrap.as_gate.ipc.approval_packets import (
    AnsweredInClient,
    ApprovalQuery,
    ApprovalResponse,
    FromChild,
    PageRequest,
    ToolRulesRequest,
    Withdrawn,
    decode,
    decode_answer,
    decode_outcome,
    encode,
)
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.core.approval.approval_rule import ALL_EXACT
from mcpwrap.core.approval.client_forms import NO_CLIENT, ClientIdentity, FormAnswer
from mcpwrap.core.gate.ports import ApprovalOutcome
from mcpwrap.core.policy.decision import AskingRules

LAST = 2**32 - 1
ASK = ApprovalQuery(7, 300.0, "tools/call", "drop", "writes", "Schau hin ☃")
ASKING = AskingRules(rules=("a", "b"), deciding=("sql", "größe"), exact=("sql",))


@pytest.mark.parametrize(
    "packet",
    [
        PageRequest(),
        ASK,
        ApprovalQuery(LAST, 86_400.0, "", "", "", ""),
        ApprovalQuery(7, 300.0, "tools/call", "drop", "writes", "", "12ab", in_client=True),
        replace(ASK, saved="7f3a", asking=ASKING),
        ToolRulesRequest("tools/call", "drop"),
        ToolRulesRequest("", ""),
        Withdrawn(1, will_resume=True),
        Withdrawn(LAST, will_resume=False),
        ApprovalQuery(7, inf, "tools/call", "drop", "writes", "", by_form=True),
        *(AnsweredInClient(1, answer, NO_CLIENT) for answer in FormAnswer),
        AnsweredInClient(LAST, FormAnswer.DENIED, ClientIdentity("claude-code", "2.1.0")),
    ],
)
def test_there_and_back(packet: FromChild) -> None:
    assert decode(encode(packet)) == packet


@pytest.mark.parametrize(
    ("names", "sent"),
    [
        (ASKING, ASKING),
        (AskingRules(exact=("x" * 127,)), AskingRules(exact=("x" * 127,))),
        (AskingRules(exact=("x" * 128,)), AskingRules(exact=(ALL_EXACT,))),
        (AskingRules(deciding=("a", "x" * 200)), AskingRules(deciding=("a",), exact=(ALL_EXACT,))),
        (AskingRules(deciding=("a\x1fb",)), AskingRules(exact=(ALL_EXACT,))),
        (AskingRules(deciding=("",)), AskingRules(exact=(ALL_EXACT,))),
        (AskingRules(exact=("\ud800",)), AskingRules(exact=(ALL_EXACT,))),
        (AskingRules(rules=("r" * 300, "s" * 300)), AskingRules(rules=("r" * 300,))),
    ],
)
def test_names_that_cannot_be_sent_make_all_arguments_exact(
    names: AskingRules, sent: AskingRules
) -> None:
    assert decode(encode(replace(ASK, asking=names))) == replace(ASK, asking=sent)


def test_long_texts_are_cut_and_none_is_split() -> None:
    sent = encode(ApprovalQuery(1, 1.0, "m" * 600, "t\0u", "😀" * 600, "x" * 600))
    assert len(sent) < packets.MAX_BYTES
    asked = decode(sent)
    assert isinstance(asked, ApprovalQuery)
    assert asked == ApprovalQuery(1, 1.0, "m" * 512, "t u", "😀" * 512, "x" * 512)


@pytest.mark.parametrize(
    "untrusted",
    [
        b"M", b"Ma", b"Ma\0b\0c", b"Ma\n\0b", b"M" + b"a" * 600 + b"\0",
        b"Q", b"C", b"I", b"Q" + bytes(15), b"C" + bytes(15),
        encode(ASK)[:17], encode(ASK) + b"\0", encode(ASK).replace(b"\0writes", b"writes"),
        encode(ApprovalQuery(1, 0.0, "", "", "", "")),
        encode(ApprovalQuery(1, -1.0, "", "", "", "")),
        encode(ApprovalQuery(1, 86_401.0, "", "", "", "")),
        encode(ApprovalQuery(1, float("nan"), "", "", "", "")),
    ],
)  # fmt: skip
def test_malformed_packets_raise(untrusted: bytes) -> None:
    with pytest.raises(ChannelError):
        decode(untrusted)


@given(st.binary(max_size=64))
def test_the_decoder_raises_only_its_error(untrusted: bytes) -> None:
    with suppress(ChannelError):
        packet = decode(untrusted)
        assert (packet is None) == (untrusted[:1] not in {b"D", b"Q", b"C", b"I"})


def test_other_packets_are_not_about_approvals() -> None:
    for packet in (
        packets.SessionNamed("sqlite"),
        packets.PartIsFull(),
        packets.CallLimitRequest("x", bytes(16)),
    ):
        assert decode(packets.encode(packet)) is None


def test_answers_are_sent_without_blocking() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        approval_packets.answer(monitor, ApprovalResponse("Y", "a1", "bob (web)"))
        assert decode_answer(child.recv(packets.MAX_BYTES)) == ApprovalResponse(
            "Y", "a1", "bob (web)"
        )
        for told in (
            None,
            ApprovalOutcome(hold=1, what="denied", by="bob", reason="nö", stops=True),
        ):
            approval_packets.send_outcome(monitor, told)
            assert decode_outcome(child.recv(approval_packets.MAX_BYTES)) == told
        with pytest.raises(BlockingIOError):
            flood(monitor)


def flood(monitor: socket.socket) -> None:
    while True:
        approval_packets.send_outcome(monitor, None)
