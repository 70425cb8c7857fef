"""Packets about hubs between a session's process and the monitor, encoded and decoded."""

import os
import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.as_gate.ipc import approval_packets, hub_packets, packets
from mcpwrap.as_gate.ipc.hub_packets import (
    DefinitionsRequest,
    DefinitionsWritten,
    FromChild,
    OuterAgent,
    OuterQuery,
)
from mcpwrap.as_gate.ipc.packets import MAX_BYTES, ChannelError
from mcpwrap.as_gate.session.definitions_client import SessionDefinitions
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket import memfd

AGENT = OuterAgent("tools", 1000, frozenset({1000, 27}), "http")
ALL = (OuterQuery("3-1"), DefinitionsRequest(), DefinitionsWritten())


@pytest.mark.parametrize("packet", [*ALL, OuterQuery("")])
def test_there_and_back(packet: FromChild) -> None:
    assert hub_packets.decode(hub_packets.encode(packet)) == packet


@pytest.mark.parametrize("packet", ALL)
def test_they_are_no_other_packets(packet: FromChild) -> None:
    sent = hub_packets.encode(packet)
    assert approval_packets.decode(sent) is None
    with pytest.raises(ChannelError):
        packets.decode(sent)


@pytest.mark.parametrize("untrusted", [b"LL", b"K1"])
def test_malformed_packets_raise(untrusted: bytes) -> None:
    with pytest.raises(ChannelError):
        hub_packets.decode(untrusted)


def test_a_long_id_is_cut() -> None:
    assert len(hub_packets.encode(OuterQuery("1" * MAX_BYTES))) < 100


@given(st.binary(max_size=64))
def test_the_decoder_raises_only_its_error(untrusted: bytes) -> None:
    with suppress(ChannelError):
        hub_packets.decode(untrusted)


@pytest.mark.parametrize("agent", [AGENT, None])
def test_the_agent_of_a_hubs_session(agent: OuterAgent | None) -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        hub_packets.describe_outer(monitor, agent)
        assert ToMonitor(child, DoorbellFlag(), Backoff()).outer("3-1") == agent
        assert hub_packets.decode(monitor.recv(MAX_BYTES)) == OuterQuery("3-1")


def test_definitions_are_written_to_the_monitors_file_up_to_a_rate() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        page = memfd.unsealed("page")
        for _ in range(10):
            packets.hand_page(monitor, page)
        store = SessionDefinitions("uid 1000", ToMonitor(child, DoorbellFlag(), Backoff()))
        kept = [store.keep(b"x" * 9) for _ in range(10)]
        assert kept == [True] * 4 + [False] * 6
        assert memfd.read_all(page) == b"x" * 36
        os.close(page)
        sent = [hub_packets.decode(monitor.recv(MAX_BYTES)) for _ in range(2)]
        assert sent == [DefinitionsRequest(), DefinitionsWritten()]


def test_without_a_file_nothing_is_kept() -> None:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        packets.refuse_page(monitor)
        store = SessionDefinitions("uid 1000", ToMonitor(child, DoorbellFlag(), Backoff()))
        assert store.keep(b"x") is False
        assert hub_packets.decode(monitor.recv(MAX_BYTES)) == DefinitionsRequest()
