"""Pins in a session's process: what it offers to the monitor, and what it reads at its start."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door
from mcpwrap.as_gate.ipc import packets, pin_packets
from mcpwrap.as_gate.ipc.pin_packets import DefinitionsOffered, OfferPageRequest
from mcpwrap.as_gate.pins import files, initial_view
from mcpwrap.as_gate.session import admit, pins_client
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.session.pins_client import SessionOffers
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.gate.definitions.pin_check import OfferFailed
from mcpwrap.core.pins import pins_file
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule, HubMemberRule, Pins, Relay
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from tests.unit.as_gate.hub_world import member
from tests.unit.as_gate.session.pins_monitor import PinsMonitor, accepted, pinned, tools

OFFERED = tools({"name": "a"})
VIEW, LATER = accepted({"name": "a"}), accepted({"name": "b"})


@pytest.fixture
def ends() -> Iterator[tuple[ToMonitor, PinsMonitor]]:
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    bell = DoorbellFlag()
    with monitor, child:
        yield ToMonitor(child, bell, Backoff()), PinsMonitor(monitor, bell)


Ends = tuple[ToMonitor, PinsMonitor]


def test_a_first_use_waits_for_the_pins_with_it(ends: Ends) -> None:
    child, monitor = ends
    monitor.page()
    monitor.record(VIEW)
    assert SessionOffers(child).record(OFFERED) == VIEW
    assert monitor.received() == [OfferPageRequest(), DefinitionsOffered(waits=True)]
    assert monitor.offered() == [OFFERED]


def test_pins_that_were_pushed_meanwhile_are_older(ends: Ends) -> None:
    child, monitor = ends
    monitor.push(LATER)
    monitor.page()
    monitor.push(accepted())
    monitor.record(VIEW)
    assert SessionOffers(child).record(OFFERED) == VIEW
    assert child.pins_update() == VIEW  # for what may be notified
    monitor.push(LATER)
    assert [child.pins_update(), child.pins_update()] == [LATER, None]


def test_the_reason_why_definitions_are_not_recorded(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    child, monitor = ends
    offers = SessionOffers(child)
    monitor.page()
    pin_packets.answer_not_recorded(monitor.channel, "the disk is full")
    assert offers.record(OFFERED) == OfferFailed("the disk is full")
    packets.refuse_page(monitor.channel)
    assert offers.record(OFFERED) == OfferFailed("the gate cannot keep them: see its journal")
    monitor.received()
    monkeypatch.setattr(pins_client, "MAX_OFFER_BYTES", 10)
    assert offers.record(OFFERED) == OfferFailed("they have over 10 bytes")
    assert monitor.received() == []  # the monitor would end the session


def test_what_is_held_is_offered_without_waiting_and_seldom(ends: Ends) -> None:
    child, monitor = ends
    offers = SessionOffers(child)
    for _ in range(pins_client._MAX_PER_S):
        monitor.page()
        assert offers.hold(OFFERED)
    assert not offers.hold(OFFERED)
    asked = [OfferPageRequest(), DefinitionsOffered(waits=False)]
    assert monitor.received() == asked * pins_client._MAX_PER_S
    assert monitor.offered() == [OFFERED] * pins_client._MAX_PER_S
    packets.refuse_page(monitor.channel)
    assert not SessionOffers(child).hold(OFFERED)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    return tmp_path


def test_pins_are_read_as_they_are_in_force(folder: Path) -> None:
    assert initial_view.read("git") == PinsView()
    content = pins_file.encode(pinned({"name": "a"}))
    (folder / "git.json").write_bytes(content)
    assert initial_view.read("git") == VIEW
    (folder / "git.held.json").write_bytes(b"damaged")  # it is found again
    assert initial_view.read("git") == VIEW
    (folder / "git.json").write_bytes(content.replace(b'"a"', b'"b"'))
    with pytest.raises(RefusalError, match=r"audit verify` \[E-PINS-DAMAGED\]") as refused:
        initial_view.read("git")
    assert refused.value.status is session_socket.Exit.UNAVAILABLE
    (folder / "git.json").unlink()
    (folder / "git.json").mkdir()
    with pytest.raises(RefusalError, match="E-PINS-DAMAGED"):
        initial_view.read("git")


MEMBER = member("web")


@pytest.mark.parametrize(
    ("pins", "relay", "door", "hub", "is_pinned"),
    [
        ("first-use", "gate", "stub", (), True),
        ("strict", "gate", "http", (), True),
        ("off", "gate", "stub", (), False),
        ("first-use", "direct", "stub", (), False),
        ("first-use", "gate", "login", (), False),  # a person sees what it prints
        ("first-use", "gate", "stub", (MEMBER,), False),  # its members have pins
    ],
)
def test_which_sessions_have_pins(
    folder: Path, pins: Pins, relay: Relay, door: Door, hub: tuple[HubMemberRule, ...],
    *, is_pinned: bool,
) -> None:  # fmt: skip
    (folder / "git.json").write_bytes(pins_file.encode(pinned({"name": "a"})))
    rule = AccessRule(uids=(), gids=(), inherits=(), relay=relay, pins=pins, hub=hub)
    agent = AgentIdentity(Peer(1, 1000, frozenset()), door)
    assert admit._pins("git", agent, rule) == (VIEW if is_pinned else None)
