"""Random lines: the policy judged what the server will read, whichever parser it has."""

import json
import shutil
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpwrap.core.gate.gate import Gate, ToAgent, ToServer
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.agreement import (
    Node,
    as_doubles,
    calls_as_python_reads,
    forwarded_and_judged,
    gate_in_session,
)
from tests.unit.core.gate.nasty import lines
from tests.unit.core.json_values import FINITE, KEYS
from tests.unit.core.scripted import ScriptedAudit, ScriptedLimits, ScriptedPolicy

NODE = shutil.which("node")
any_line = st.one_of(lines(), lines(), lines(), st.binary())


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    assert NODE is not None
    running = Node(NODE)
    yield running
    running.close()


def test_the_lines_are_nasty_and_yet_often_pass() -> None:
    """A property of lines that are all refused proves nothing."""
    passed: list[bool] = []

    @given(lines())
    @settings(max_examples=200, derandomize=True)  # or it would fail once in a thousand searches
    def look(line: bytes) -> None:
        passed.append(bool(forwarded_and_judged(line)[1]))

    look()
    assert len(passed) / 20 < passed.count(True) < len(passed) * 9 / 10


@settings(max_examples=300)
@given(any_line)
def test_python_reads_the_calls_that_were_judged(line: bytes) -> None:
    forwarded, judged = forwarded_and_judged(line)
    assert repr(calls_as_python_reads(forwarded)) == repr(judged)  # 1 is not 1.0, nor true


@settings(max_examples=300, suppress_health_check=[*HealthCheck])
@given(line=any_line)
def test_node_reads_the_calls_that_were_judged(node: Node, line: bytes) -> None:
    forwarded, judged = forwarded_and_judged(line)
    read = [call for one in forwarded for call in node.calls(one)]
    assert read == [as_doubles(call) for call in judged]


@settings(max_examples=200)
@given(any_line)
def test_no_line_of_the_servers_is_too_much(line: bytes) -> None:
    for version in ("2025-03-26", "2025-11-25"):
        gate, _ = gate_in_session(version)
        for action in gate.from_server(line):
            if isinstance(action, ToAgent | ToServer):
                value = json.JSONDecoder().decode(action.line.decode())
                assert isinstance(value, dict | list)


@given(st.dictionaries(KEYS.map("more ".__add__), FINITE, max_size=3), FINITE, FINITE)
def test_what_nobody_judges_arrives_as_the_same_value(
    extra: dict[str, Json], argument: Json, content: Json
) -> None:
    gate = Gate(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
    params = {"name": "a", "arguments": {"x": argument}, "_meta": {"y": argument}, **extra}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    (to_server,) = gate.from_agent(json.dumps(call).encode())
    assert isinstance(to_server, ToServer)
    assert repr(json.JSONDecoder().decode(to_server.line.decode())) == repr(call)

    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": content, **extra}}
    (to_agent,) = gate.from_server(json.dumps(answer).encode())
    assert isinstance(to_agent, ToAgent)
    assert repr(json.JSONDecoder().decode(to_agent.line.decode())) == repr(answer)
