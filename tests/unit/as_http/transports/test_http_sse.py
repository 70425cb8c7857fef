"""Transport of MCP 2024-11-05."""

from collections.abc import Iterator

from tests.shared import pace
from tests.unit.as_http.agent import Agent, Event
from tests.unit.as_http.servers import note
from tests.unit.as_http.standing_gate import StandingGate


def _path(events: Iterator[Event]) -> str:
    first = next(events)
    assert first.event == "endpoint"
    assert first.data.startswith("/messages?session=")
    return first.data


def test_a_session_lasts_as_long_as_its_stream(agent: Agent, gate: StandingGate) -> None:
    with agent.ask("GET", "/sse") as stream:
        events = stream.events()
        path = _path(events)
        asked = agent.request("initialize", protocolVersion="2024-11-05")
        assert agent.post(asked, path=path).status == 202
        told = next(events)
        assert (told.event, told.id) == ("message", "")
        assert told.message["result"]["protocolVersion"] == "2024-11-05"
        assert agent.post(note("initialized"), path=path).status == 202
        said = [note("message", data=1), {"jsonrpc": "2.0", "id": 0, "method": "ping"}]
        call = agent.request("tools/call", name="find", arguments={"say": said})
        assert agent.post(call, path=path, headers={"Accept": None}).status == 202
        assert [next(events).message.get("method") for _ in range(3)] == [
            "notifications/message",
            "ping",
            None,
        ]
    assert gate.sessions[0].is_over.wait(pace.WAIT_S)
    assert agent.post(note("x"), path=path).status == 404


def test_an_id_in_use_is_refused(agent: Agent) -> None:
    with agent.ask("GET", "/sse") as stream:
        path = _path(stream.events())
        call = agent.request("tools/call", name="silent", arguments={})
        assert agent.post(call, path=path).status == 202
        assert agent.post(call, path=path).status == 400


def test_the_end_of_the_server_is_reported(agent: Agent) -> None:
    with agent.ask("GET", "/sse") as stream:
        events = stream.events()
        path = _path(events)
        assert agent.post(agent.request("die"), path=path).status == 202
        assert "of old age" in next(events).message["error"]["message"]
        assert list(events) == []


def test_an_unknown_session(agent: Agent) -> None:
    assert agent.post(note("x"), path="/messages?session=x").status == 404
    assert agent.post(note("x"), path="/messages?x=y").status == 404


def test_a_refusal_of_the_gate_has_its_reason(agent: Agent, gate: StandingGate) -> None:
    from mcpwrap.core.wire.session_socket import SessionRefused

    gate.refusals = [SessionRefused(77, "this account may not use 'notes'")]
    refused = agent.ask("GET", "/sse")
    assert refused.status == 403
    assert "may not use" in refused.json()["error"]["message"]
