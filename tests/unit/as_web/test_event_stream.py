"""Live updates of an open page: each change that its person may see, and no other."""

import socket
from contextlib import ExitStack
from http.client import HTTPResponse, IncompleteRead

import pytest

from mcpwrap.as_web.login_sessions import MAX_IDLE_S
from tests.shared import pace
from tests.unit.as_web.browser import Browser
from tests.unit.as_web.conftest import CONNECTIONS, Clock
from tests.unit.as_web.scripted_gate import OTHERS_UID, ScriptedGate, question


def _next(stream: HTTPResponse) -> str:
    lines = [stream.readline().decode().strip() for _ in range(3)]
    assert lines[1:] == ["data:", ""]
    return lines[0]


def test_a_change_is_told_at_once(logged_in: Browser, gate: ScriptedGate) -> None:
    with logged_in.open("GET", "/events") as connection:
        stream = connection.getresponse()
        assert stream.getheader("Content-Type") == "text/event-stream"
        assert _next(stream) == "event: changed"  # a change between page and stream
        while "A1" not in logged_in.get("/list").text:
            gate.wait("A1", question({}))
        assert _next(stream) == "event: changed"


def test_what_somebody_may_not_see_they_are_not_told(
    browser: Browser, gate: ScriptedGate, clock: Clock
) -> None:
    approver = Browser(browser.port)
    approver.log_in("carol")
    browser.log_in("alice")
    with browser.open("GET", "/events") as to_alice, approver.open("GET", "/events") as to_carol:
        hers, carols = to_alice.getresponse(), to_carol.getresponse()
        assert _next(hers) == _next(carols) == "event: changed"
        gate.wait("B2", question({}, agent_uid=OTHERS_UID))
        assert _next(carols) == "event: changed"
        gate.wait("A1", question({}))
        assert _next(carols) == _next(hers) == "event: changed"
        clock.now_s += MAX_IDLE_S
        gate.wait("A2", question({}))
        assert _next(hers) == "event: over"  # there was no event for B2


def test_an_open_page_does_not_keep_its_session(
    logged_in: Browser, gate: ScriptedGate, clock: Clock
) -> None:
    with logged_in.open("GET", "/events") as connection:
        stream = connection.getresponse()
        assert _next(stream) == "event: changed"
        clock.now_s += MAX_IDLE_S
        gate.wait("A1", question({}))
        assert _next(stream) == "event: over"
    assert logged_in.get("/events").status == 401


def test_connections_that_say_nothing_evict_one_another_and_no_stream(
    logged_in: Browser, gate: ScriptedGate
) -> None:
    with ExitStack() as stack:
        stream = stack.enter_context(logged_in.open("GET", "/events")).getresponse()
        assert _next(stream) == "event: changed"
        address = ("127.0.0.1", logged_in.port)
        silent = [
            stack.enter_context(socket.create_connection(address, timeout=pace.WAIT_S))
            for _ in range(CONNECTIONS + 1)
        ]
        assert silent[0].recv(1) == b""
        gate.wait("A1", question({}))
        assert _next(stream) == "event: changed"


def test_when_all_are_streams_the_oldest_is_closed(logged_in: Browser) -> None:
    with ExitStack() as stack:
        streams = [
            stack.enter_context(logged_in.open("GET", "/events")).getresponse()
            for _ in range(CONNECTIONS)
        ]
        assert [_next(stream) for stream in streams] == ["event: changed"] * CONNECTIONS
        assert logged_in.get("/list").status == 200
        with pytest.raises(IncompleteRead):
            streams[0].read(1)


def test_without_a_session_nobody_is_told(browser: Browser) -> None:
    assert browser.get("/events").status == 401
