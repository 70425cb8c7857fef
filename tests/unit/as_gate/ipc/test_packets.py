"""Packets between a session's process and the monitor, encoded and decoded."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.ipc.packets import (
    MAX_BYTES,
    AuditFileHandle,
    CallFinished,
    CallLimitRequest,
    ChannelError,
    FromChild,
    PartIsFull,
    SessionNamed,
    StartFailed,
    StartSucceeded,
)
from mcpwrap.as_gate.session.monitor_client import PolicyUpdate, ToMonitor
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.gate.call_outcomes import DIGEST_BYTES
from mcpwrap.core.policy.decision import LimitExceeded
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket import memfd

DIGEST = bytes(range(DIGEST_BYTES))


@pytest.mark.parametrize(
    "packet",
    [
        SessionNamed("sqlite"),
        SessionNamed("sqlite", "1000"),
        SessionNamed("sqlite", "login"),
        StartSucceeded(),
        StartSucceeded("0123456789abcdef", "/home/alice/prøj\n"),
        StartSucceeded("0123456789abcdef", "/" * 4096),
        PartIsFull(),
        StartFailed("cannot start /usr/bin/x: kein Zugriff für Dich"),
        CallLimitRequest("read_query", DIGEST),
        CallLimitRequest("", DIGEST),
        CallFinished("Ääh", failed=True),
        CallFinished("x", failed=False),
        CallFinished("x", failed=False, digest=DIGEST, answer_digest=DIGEST[::-1]),
    ],
)
def test_there_and_back(packet: FromChild) -> None:
    assert packets.decode(packets.encode(packet)) == packet


@pytest.mark.parametrize(
    "packet",
    [
        StartFailed("é" * MAX_BYTES),
        CallLimitRequest("😀" * MAX_BYTES, DIGEST),
        CallFinished("x" * 9999, failed=True),
    ],
)
def test_long_texts_are_cut(packet: FromChild) -> None:
    assert len(packets.encode(packet)) <= MAX_BYTES
    packets.decode(packets.encode(packet))


@pytest.mark.parametrize(
    "untrusted",
    [
        b"",
        b"X",
        b"SS",
        b"S0123456789abcdef",
        b"S0123456789ABCDEF/a",
        b"S0123456789abcdefhome",
        b"S0123456789abcdef/a\0b",
        b"S0123456789abcdef/\xff",
        b"S0123456789abcdef/" + 4096 * b"a",
        b"R1",
        b"A123",
        b"T",
        b"T2x",
        b"N\xff",
        b"T1" + 2 * DIGEST + b"\xff",
        b"T1" + 2 * DIGEST[:-1] + b"x",
        b"A" + DIGEST + b"\xff",
    ],
)
def test_malformed_packets_raise(untrusted: bytes) -> None:
    with pytest.raises(ChannelError):
        packets.decode(untrusted)


def test_an_answer_and_a_policy_that_overtakes_it() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        bell = DoorbellFlag()
        to_monitor = ToMonitor(child, bell, Backoff())
        assert to_monitor.policy_update() == PolicyUpdate()
        for text in (b"old", b"new"):
            fd = memfd.sealed("policy", text)
            packets.hand_out(monitor, "12ab", fd)
            bell.raise_flag()
            os.close(fd)
        packets.answer(monitor, LimitExceeded("3 calls in 2 s", 1.25, "loop"))
        packets.answer(monitor, None)
        assert to_monitor.ask("x", DIGEST) == LimitExceeded("3 calls in 2 s", 1.25, "loop")
        assert to_monitor.ask("x", DIGEST) is None
        assert (to_monitor.policy_update(), to_monitor.policy_update()) == (
            PolicyUpdate("12ab", b"new"),
            PolicyUpdate(),
        )
        assert packets.decode(monitor.recv(MAX_BYTES)) == CallLimitRequest("x", DIGEST)


def test_a_policy_is_received_without_a_request() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        bell = DoorbellFlag()
        to_monitor = ToMonitor(child, bell, Backoff())
        for text in (b"first", b"second", b"third"):
            fd = memfd.sealed("policy", text)
            packets.hand_out(monitor, "12ab", fd)
            bell.raise_flag()
            os.close(fd)
            if text != b"second":  # of two policies the latest is returned
                assert (to_monitor.policy_update(), to_monitor.policy_update()) == (
                    PolicyUpdate("12ab", text),
                    PolicyUpdate(),
                )


def flood(child: socket.socket) -> None:
    while True:
        packets.answer(child, None)


def test_a_monitor_never_waits_for_a_child_that_does_not_read() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child, pytest.raises(BlockingIOError):
        flood(monitor)


@given(st.binary(max_size=64))
def test_the_decoder_raises_only_its_error(untrusted: bytes) -> None:
    with suppress(ChannelError):
        assert packets.encode(packets.decode(untrusted))[:1] == untrusted[:1]


def test_a_session_is_opened_and_continues_in_another_file(tmp_path: Path) -> None:
    """Also if a policy arrives before the answer."""
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child, (tmp_path / "1").open("wb") as one, (tmp_path / "2").open("wb") as two:
        to_monitor = ToMonitor(child, DoorbellFlag(), Backoff())
        policy_fd = memfd.sealed("policy", b"new")
        packets.hand_out(monitor, "12ab", policy_fd)
        packets.open_audit(monitor, AuditFileHandle("3-1", one.fileno()))
        opening = to_monitor.name("sqlite", "")
        assert opening is not None
        assert opening.session == "3-1"
        os.write(opening.fd, b"a")
        packets.next_part(monitor, two.fileno())
        part = to_monitor.next_part()
        assert part is not None
        os.write(part, b"b")
        for fd in (policy_fd, opening.fd, part):
            os.close(fd)
        assert [(tmp_path / name).read_bytes() for name in "12"] == [b"a", b"b"]
        said = [packets.decode(monitor.recv(MAX_BYTES)) for _ in range(2)]
        assert said == [SessionNamed("sqlite"), PartIsFull()]


def test_a_limit_on_sessions_is_a_refusal() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        packets.refuse_more(monitor, "this account has 128 sessions already")
        with pytest.raises(RefusalError, match="has 128 sessions") as refused:
            ToMonitor(child, DoorbellFlag(), Backoff()).name("sqlite", "1000")
        assert refused.value.status is session_socket.Exit.BUSY
        assert packets.decode(monitor.recv(MAX_BYTES)) == SessionNamed("sqlite", "1000")


def test_an_audit_that_cannot_be_written_is_refused() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        to_monitor = ToMonitor(child, DoorbellFlag(), Backoff())
        packets.refuse_audit(monitor)
        packets.refuse_audit(monitor)
        assert to_monitor.name("sqlite", "") is None
        assert to_monitor.next_part() is None
