"""Requests of 2026-07-28: each is independent, without a session."""

import threading
from typing import Any

import pytest

from mcpwrap.as_http.gate import session_pool
from tests.shared import pace
from tests.unit.as_http.agent import ENVELOPE, MODERN, Agent, running
from tests.unit.as_http.conftest import Clock
from tests.unit.as_http.servers import HOLDS, note
from tests.unit.as_http.standing_gate import StandingGate
from tests.unit.http_service import Headers

MODERN_HEADERS: Headers = {"MCP-Protocol-Version": MODERN}


def test_a_request_needs_no_session(agent: Agent, gate: StandingGate) -> None:
    answer = agent.modern("tools/call", name="find", arguments={"told": 1})
    assert (answer.status, answer.header("Mcp-Session-Id")) == (200, "")
    assert answer.json()["result"]["told"] == 1
    ignored: Headers = {"Mcp-Session-Id": "x", "Last-Event-ID": "y"}
    assert agent.modern("tools/list", ignored).json()["result"]["tools"]
    assert len(gate.sessions) == 1  # the second used the session of the first


def test_a_message_before_the_response_makes_a_stream(agent: Agent) -> None:
    said = [note("progress", progressToken=1), {"jsonrpc": "2.0", "id": 9, "result": {}}]
    with agent.modern("tools/call", name="find", arguments={"say": said}) as answer:
        events = list(answer.events())
    assert [event.message.get("id") for event in events] == [None, 1]
    assert {event.id for event in events} == {""}  # no stream is resumable


@pytest.mark.parametrize(
    ("code", "status"),
    [(-32601, 404), (-32602, 400), (-32021, 400), (-32603, 200), (-31403, 200)],
)
def test_an_error_has_a_status(agent: Agent, code: int, status: int) -> None:
    arguments = {"error": {"code": code, "message": "no"}}
    answer = agent.modern("tools/call", name="find", arguments=arguments)
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)


def test_a_server_of_an_older_era_is_recognized_by_a_400(agent: Agent) -> None:
    assert agent.modern("server/discover").status == 400
    assert agent.modern("tools/other").status == 404


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Method": None}, -32020),
        ({"Mcp-Name": "other"}, -32020),
        ({"MCP-Protocol-Version": "2025-11-25"}, -32020),
        ({"MCP-Protocol-Version": None}, -32020),
        ({"Mcp-Name": "=?base64?ZmluZA==?="}, 0),
    ],
)
def test_headers_that_do_not_match_the_body(
    agent: Agent, gate: StandingGate, headers: Headers, code: int
) -> None:
    answer = agent.modern("tools/call", headers, name="find", arguments={})
    assert (answer.status, answer.json().get("error", {}).get("code", 0)) == (
        (400 if code else 200),
        code,
    )
    assert len(gate.sessions) == (0 if code else 1)


def test_the_headers_of_a_tool_are_known_once_it_is_listed(agent: Agent) -> None:
    call: dict[str, Any] = {"name": "find", "arguments": {"at": "x"}}
    wrong: Headers = {"Mcp-Param-At": "y"}
    assert agent.modern("tools/call", wrong, **call).status == 200
    agent.modern("tools/list").text()
    refused = agent.modern("tools/call", wrong, **call)
    assert (refused.status, refused.json()["error"]["code"]) == (400, -32020)
    assert agent.modern("tools/call", {"Mcp-Param-At": "x"}, **call).status == 200
    assert agent.modern("tools/call", **call).status == 400


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (note("cancelled", requestId=1), 202),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, 400),
        ([note("x")], 400),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, 400),
    ],
)
def test_messages_that_are_not_requests(agent: Agent, message: Any, status: int) -> None:
    assert agent.post(message, MODERN_HEADERS).status == status


def test_a_repeated_header_is_rejected(agent: Agent) -> None:
    twice: Headers = {"MCP-Protocol-Version": MODERN, "mcp-protocol-version": "2025-11-25"}
    refused = agent.post(agent.request("tools/list", _meta=ENVELOPE), twice)
    assert (refused.status, refused.json()["error"]["code"]) == (400, -32020)


def test_a_notification_of_an_unknown_revision(agent: Agent) -> None:
    refused = agent.post(note("x"), {"MCP-Protocol-Version": "2027-01-01"})
    assert refused.status == 400
    assert refused.json()["error"]["data"] == {"supported": [MODERN], "requested": "2027-01-01"}


def test_a_disconnect_cancels_the_request(agent: Agent, gate: StandingGate) -> None:
    HOLDS["left"] = threading.Event()
    arguments = {"say": [note("message", data="x")]}
    with agent.modern("tools/call", name="left", arguments=arguments) as answer:
        next(answer.events())
    assert gate.sessions[0].connection.recv(1) == b""  # before the server has answered
    HOLDS.pop("left").set()
    assert agent.modern("tools/list").status == 200
    assert len(gate.sessions) == 2


def test_concurrent_requests_have_a_session_each(agent: Agent, gate: StandingGate) -> None:
    HOLDS["beside"] = threading.Event()
    arguments = {"say": [note("message", data="x")]}
    with agent.modern("tools/call", name="beside", arguments=arguments) as slow:
        events = slow.events()
        next(events)
        assert agent.modern("tools/list").status == 200
        HOLDS.pop("beside").set()
        assert next(events).message["result"]
    assert len(gate.sessions) == 2


def test_the_end_of_the_server_is_reported(agent: Agent) -> None:
    told = agent.modern("die").json()
    assert "ended with status 7: of old age" in told["error"]["message"]


def test_a_stream_of_a_server_that_ends(agent: Agent, gate: StandingGate) -> None:
    HOLDS["ended"] = threading.Event()
    arguments = {"say": [note("message", data="x")]}
    with agent.modern("tools/call", name="ended", arguments=arguments) as answer:
        events = answer.events()
        next(events)
        gate.sessions[0].connection.shutdown(2)
        HOLDS.pop("ended").set()
        rest = [event.message for event in events]
    assert "result" in rest[0] or "broke off" in rest[0]["error"]["message"]


def test_a_slow_answer_is_a_stream(gate: StandingGate) -> None:
    HOLDS["slow"] = threading.Event()
    around = {"gate": gate.path, "modern_json_within_s": 0.01, "still_here_every_s": 0.01}
    with running(around) as port:
        agent = Agent(port)
        with agent.modern("tools/call", name="slow", arguments={}) as answer:
            assert answer.kind == "text/event-stream"
            assert answer.response.readline() == b":\n"
            HOLDS.pop("slow").set()
            assert len(answer.messages()) == 1


def test_idle_sessions_are_ended_after_a_while(gate: StandingGate, clock: Clock) -> None:
    with running({"gate": gate.path, "clock": clock, "idle_s": 0.05}) as port:
        agent = Agent(port)
        agent.modern("tools/list", {"Connection": "close"}).text()
        clock.now_s += 61
        assert gate.sessions[0].is_over.wait(pace.WAIT_S)


def test_the_sessions_of_a_burst_are_ended_soon(
    gate: StandingGate, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one agent would have all sessions of the server for a minute."""
    monkeypatch.setattr(session_pool, "MAX_SPARE", 1)
    with running({"gate": gate.path, "clock": clock, "idle_s": 0.05}) as port:
        test_concurrent_requests_have_a_session_each(Agent(port), gate)
        clock.now_s += 6
        assert gate.sessions[1].is_over.wait(pace.WAIT_S)  # the other was used last
        Agent(port).modern("tools/list").text()
        assert (len(gate.sessions), gate.sessions[0].is_over.is_set()) == (2, False)


def test_the_headers_that_a_remote_server_gets(remote: Agent, gate: StandingGate) -> None:
    call: dict[str, Any] = {"name": "other", "arguments": {}}
    closed = note("progress", _meta={"mcpwrap/for": 1, "mcpwrap/closed": True})
    call["arguments"] = {"say": [closed], "then": [[note("x")]]}
    assert remote.modern("tools/call", {"Mcp-Param-X": "=?base64?eA==?="}, **call).json()
    meta = gate.sessions[0].heard[0]["params"]["_meta"]
    assert meta == {**ENVELOPE, "mcpwrap/headers": {"mcp-param-x": "=?base64?eA==?="}}
