"""Sessions of the protocol revisions with a handshake."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mcpwrap.as_http import event_streams
from mcpwrap.as_http import mcp_session as session_module
from tests.shared import pace
from tests.unit.as_http.agent import Agent, Answer, running
from tests.unit.as_http.servers import HOLDS, error, note
from tests.unit.as_http.standing_gate import StandingGate

LISTED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
LOGGED = note("message", level="info", data="x")
ASKED = {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """Return the event that a call of the tool `hold` waits for."""
    HOLDS["hold"] = threading.Event()
    yield HOLDS["hold"]
    HOLDS.pop("hold").set()


def _call(agent: Agent, name: str = "find", **arguments: Any) -> Answer:
    return agent.post(agent.request("tools/call", name=name, arguments=arguments))


def test_a_session_from_its_beginning_to_its_end(agent: Agent, gate: StandingGate) -> None:
    begun = agent.begin()
    assert begun.json()["result"]["protocolVersion"] == "2025-11-25"
    assert len(begun.header("Mcp-Session-Id")) == 32
    [held] = gate.sessions
    assert (held.subject, held.env) == ("notes", {"MCPWRAP_AGENT": "1000"})
    initialized = agent.post(note("initialized"))
    assert (initialized.status, initialized.text()) == (202, "")
    assert _call(agent, told="x").messages() == [
        {"jsonrpc": "2.0", "id": 2, "result": {"content": [], "told": "x"}}
    ]
    assert [message.get("method") for message in held.heard] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]
    assert agent.ask("DELETE").status == 200
    assert held.is_over.wait(pace.WAIT_S)
    assert agent.post(agent.request("tools/list")).status == 404


def test_a_session_is_the_agents_own(agent: Agent, gate: StandingGate) -> None:
    other = Agent(agent.port)
    agent.begin()
    other.begin()
    assert agent.headers["Mcp-Session-Id"] != other.headers["Mcp-Session-Id"]
    _call(agent, told="mine").text()
    assert [len(held.heard) for held in gate.sessions] == [2, 1]


def test_a_refused_handshake_begins_no_session(agent: Agent, gate: StandingGate) -> None:
    begun = agent.begin("never")
    assert (begun.status, begun.header("Mcp-Session-Id")) == (200, "")
    assert begun.json()["error"]["code"] == -32602
    assert gate.sessions[0].is_over.wait(pace.WAIT_S)


def test_an_agent_over_http_has_no_variables(agent: Agent, gate: StandingGate) -> None:
    gate.asks = ("TZ", "PROJECT")
    assert agent.begin().status == 200
    assert gate.answered == [b"\0"]


def test_a_message_before_the_response_makes_a_stream(agent: Agent) -> None:
    agent.begin("2025-06-18")
    with _call(agent, say=[LOGGED, ASKED]) as answer:
        assert answer.header("Cache-Control") == "no-cache, no-transform"
        assert answer.header("X-Accel-Buffering") == "no"
        events = list(answer.events())
    assert [event.message.get("method") for event in events] == [
        "notifications/message",
        "roots/list",
        None,
    ]
    assert {event.event for event in events} == {"message"}
    assert agent.post({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}).status == 202


def test_a_message_of_no_request_is_on_the_standalone_stream(
    agent: Agent, gate: StandingGate
) -> None:
    agent.begin()
    gate.sessions[0].say(LISTED)  # the stream has no reader yet
    assert _call(agent).status == 200
    with agent.ask("GET") as standing:
        events = standing.events()
        primed = next(events)
        assert (primed.data, primed.id, primed.retry) == ("", "0-0", "1000")
        kept = next(events)
        assert kept.message == LISTED
        assert len(_call(agent, say=[LISTED]).messages()) == 1
        assert next(events).message == LISTED
        with agent.ask("GET") as second:
            assert second.status == 409
    with agent.ask("GET", headers={"Last-Event-ID": kept.id}) as again:
        assert next(again.events()).message == LISTED  # the second message
    assert agent.ask("GET", headers={"Last-Event-ID": "x"}).status == 400


def test_a_broken_stream_is_resumed(agent: Agent, hold: threading.Event) -> None:
    agent.begin()
    with _call(agent, "hold", say=[LOGGED, LOGGED], told="late") as answer:
        events = answer.events()
        primed, first, second = next(events), next(events), next(events)
        assert (primed.data, primed.retry) == ("", "1000")
        assert first.message == second.message == LOGGED
    hold.set()  # the disconnect did not cancel the request
    with agent.ask("GET", headers={"Last-Event-ID": first.id}) as rest:
        told = [event.message for event in rest.events()]
    assert told[0] == LOGGED
    assert told[1]["result"]["told"] == "late"
    with agent.ask("GET", headers={"Last-Event-ID": primed.id}) as all_of_it:
        assert len(all_of_it.messages()) == 3
    with agent.ask("GET", headers={"Last-Event-ID": "99-0"}) as nothing:
        assert nothing.messages() == []


def test_a_long_call_is_resumable_from_its_beginning(agent: Agent, hold: threading.Event) -> None:
    agent.begin()
    with _call(agent, "hold", told="late") as answer:
        assert answer.kind == "text/event-stream"
        primed = next(answer.events())
    hold.set()
    with agent.ask("GET", headers={"Last-Event-ID": primed.id}) as rest:
        assert rest.messages()[0]["result"]["told"] == "late"


@pytest.mark.parametrize(
    ("version", "kind"), [("2025-06-18", "application/json"), ("2025-11-25", "text/event-stream")]
)
def test_responses_are_streams_since_streams_are_resumable(
    agent: Agent, version: str, kind: str
) -> None:
    agent.begin(version)
    assert _call(agent).kind == kind
    assert agent.post(agent.request("tools/list")).kind == kind


def test_a_stream_has_one_reader(agent: Agent, hold: threading.Event) -> None:
    agent.begin()
    with _call(agent, "hold") as answer:
        primed = next(answer.events())
        assert agent.ask("GET", headers={"Last-Event-ID": primed.id}).status == 409
        hold.set()
        assert len(answer.messages()) == 1


def test_progress_is_on_the_stream_of_its_request(agent: Agent, hold: threading.Event) -> None:
    agent.begin("2025-06-18")
    slow = agent.request("tools/call", name="hold", arguments={}, _meta={"progressToken": "a"})
    slow["params"]["arguments"] = {"say": [note("progress", progressToken="a", progress=1)]}
    with agent.post(slow) as answer:
        events = answer.events()
        assert next(events).message["params"]["progress"] == 1
        hold.set()
        assert next(events).message["result"]


def test_an_id_in_use_is_refused(agent: Agent, hold: threading.Event) -> None:
    agent.begin()
    with _call(agent, "hold") as answer:
        agent.ids -= 1
        again = _call(agent)
        assert (again.status, again.json()["id"]) == (400, 2)
        hold.set()
        assert len(answer.messages()) == 1
    agent.ids -= 1
    assert _call(agent).status == 200


def test_batches_are_of_one_revision(agent: Agent) -> None:
    agent.begin("2025-03-26")
    batch = [agent.request("tools/list"), note("x"), agent.request("other")]
    answered = agent.post(batch).messages()
    assert [message["id"] for message in answered] == [2, 3]
    assert agent.post([note("x")]).status == 202
    twice = [agent.request("tools/list"), agent.request("tools/list")]
    twice[1]["id"] = twice[0]["id"]
    assert agent.post(twice).status == 400
    newer = Agent(agent.port)
    newer.begin("2025-06-18")
    assert newer.post([newer.request("tools/list")]).status == 400


def test_responses_in_an_array_are_sent_one_by_one(agent: Agent) -> None:
    agent.begin("2025-03-26")
    request = agent.request("tools/call", name="silent", arguments={})
    answers = [{"jsonrpc": "2.0", "id": request["id"], "result": {}}, LISTED]
    request["params"]["arguments"] = {"say": [answers]}
    assert agent.post(request).json() == answers[0]


def test_the_listener_answers_a_cancelled_request(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_CANCELLED_WITHIN_S", 0.01)
    agent.begin()
    with _call(agent, "silent") as answer:
        assert answer.kind == "text/event-stream"
        assert agent.post(note("cancelled", requestId=2)).status == 202
        assert answer.messages()[-1]["error"]["code"] == -32800
    assert agent.post(note("cancelled", requestId=2)).status == 202
    assert agent.post(note("cancelled")).status == 202


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_an_idle_stream_has_keepalives(gate: StandingGate, version: str) -> None:
    with running({"gate": gate.path, "still_here_every_s": 0.01}) as port:
        agent = Agent(port)
        agent.begin(version)
        with agent.ask("GET") as standing:
            while standing.comments < 3:
                standing.comments += standing.response.readline() == b":\n"


def test_ten_thousand_events_with_backpressure(agent: Agent, gate: StandingGate) -> None:
    agent.begin()
    many = 10_000
    with agent.ask("GET") as standing:
        events = standing.events()
        next(events)
        held, done = gate.sessions[0], threading.Event()

        def tell() -> None:
            for number in range(many):
                held.say(note("message", data="x" * 1000, number=number))
            done.set()

        thread = threading.Thread(target=tell)
        thread.start()
        assert not done.wait(1)  # no buffer holds 10 MB
        told = [next(events).message["params"]["number"] for _ in range(many)]
        thread.join(pace.WAIT_S)
        assert told == list(range(many))


def test_unread_events_are_bounded(agent: Agent, gate: StandingGate) -> None:
    agent.begin()
    for number in range(event_streams.MAX_AHEAD + 10):
        gate.sessions[0].say(note("tools/list_changed", number=number))
    _call(agent).text()
    with agent.ask("GET") as standing:
        events = standing.events()
        next(events)
        assert next(events).message["params"]["number"] == 10


def test_responses_that_no_agent_fetches_are_bounded(
    agent: Agent, hold: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_MAX_UNREAD_STREAMS", 1)
    agent.begin()
    primed = []
    for _ in range(3):
        with _call(agent, "hold") as answer:
            primed.append(next(answer.events()).id)
    hold.set()
    _call(agent).text()
    _call(agent).text()
    found = []
    for id_ in primed:
        with agent.ask("GET", headers={"Last-Event-ID": id_}) as rest:
            found.append(len(rest.messages()))
    assert found == [0, 0, 1]


def test_the_end_of_the_server_is_reported(agent: Agent, gate: StandingGate) -> None:
    agent.begin()
    with agent.ask("GET") as standing:
        events = standing.events()
        next(events)
        died = agent.post(agent.request("die"))
        told = died.json() if died.kind == "application/json" else died.messages()[0]
        assert told["id"] == 2
        assert "ended with status 7: of old age" in told["error"]["message"]
        assert list(events) == []
    assert agent.post(agent.request("tools/list")).status == 404
    assert agent.ask("GET").status == 404


def test_an_upstream_status_is_passed_on(remote: Agent, agent: Agent) -> None:
    challenge = 'Bearer resource_metadata="https://evil.example/", realm="x"'
    told = {"status": 401, "www_authenticate": challenge}
    failed = {"code": -32603, "message": "no", "data": {"mcpwrap/http": told}}
    remote.begin()
    answer = _call(remote, error=failed)
    assert (answer.status, answer.header("WWW-Authenticate")) == (401, 'Bearer realm="x"')
    assert answer.json()["error"] == {"code": -32603, "message": "no"}
    agent.begin()
    assert _call(agent, error=failed).status == 200  # the tag of a local server has no effect


def test_a_remote_server_gets_the_headers_of_arguments(remote: Agent, gate: StandingGate) -> None:
    remote.begin()
    remote.headers["Mcp-Param-At"] = "x"
    _call(remote).text()
    remote.post(note("x", _meta={"mcpwrap/headers": {"mcp-param-evil": "1"}})).text()
    _call(remote).text()
    heard = gate.sessions[0].heard
    assert heard[0]["params"]["_meta"] == {"mcpwrap/headers": {}}
    assert {json.dumps(one["params"]["_meta"]) for one in heard[1:]} == {
        '{"mcpwrap/headers": {"mcp-param-at": "x"}}'
    }


def test_a_message_with_the_tag_of_a_request_is_on_its_stream(
    remote: Agent, hold: threading.Event
) -> None:
    remote.begin("2025-06-18")
    about = note("tools/list_changed", _meta={"mcpwrap/for": 2})
    with remote.ask("GET"), _call(remote, "hold", say=[about]) as answer:
        events = answer.events()
        assert next(events).message == LISTED
        hold.set()
        assert next(events).message["result"]


def test_a_server_that_requests_polling_is_polled(remote: Agent, hold: threading.Event) -> None:
    remote.begin()
    closed = note("progress", _meta={"mcpwrap/for": 2, "mcpwrap/closed": True})
    with _call(remote, "hold", say=[LOGGED, closed], told="late") as answer:
        events = list(answer.events())
    assert [bool(event.data) for event in events] == [False, True]
    hold.set()
    with remote.ask("GET", headers={"Last-Event-ID": events[-1].id}) as rest:
        assert rest.messages()[0]["result"]["told"] == "late"
    unknown = note("progress", _meta={"mcpwrap/for": 9, "mcpwrap/closed": True})
    assert _call(remote, say=[unknown]).status == 200


def test_lines_that_the_gate_never_writes_are_left_out(agent: Agent, gate: StandingGate) -> None:
    agent.begin()
    gate.sessions[0].write(b"{\n\n[7]\n" + json.dumps(error({"id": 77}, 1, "x")).encode() + b"\n")
    assert _call(agent).status == 200
