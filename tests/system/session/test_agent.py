"""Transparency: an agent spawns `mcpwrap-connect NAME` instead of the server, and all works."""

import json
import threading

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.session import probe_answer, probe_call
from tests.system.support import servers
from tests.system.support.tiers import only_in_test_all

STAGE = servers.wrapped

TOOLS = {"echo", "get-env", "get-sum", "trigger-sampling-request", "trigger-elicitation-request"}


@pytest.mark.parametrize(
    "stderr",
    [
        "inherit",
        "pty",
        pytest.param("null", marks=only_in_test_all("a device, as the terminal is")),
        pytest.param(
            "/home/alice/stderr.txt",
            marks=only_in_test_all("test_stderr_reaches_the_agent has the same tour with a file"),
        ),
    ],
)
def test_the_handshake_era_works_whole(machine: Machine, stderr: str) -> None:
    seen = machine.agent("handshake_tour", server="everything", stderr=stderr)
    assert seen["version"] == "2025-11-25"
    assert set(seen["tools"]) >= TOOLS
    assert seen["echo"] == "Echo: hello"
    assert seen["progress"] == [[1, 3], [2, 3], [3, 3]]
    assert "say something" in seen["sampled"]  # the server sent a request to the agent
    assert "a sample" in seen["sample"]
    assert "Please provide inputs" in seen["elicited"]
    assert "file:///home/alice" in seen["roots"]


def test_stderr_reaches_the_agent(machine: Machine) -> None:
    machine.agent("handshake_tour", server="everything", stderr="/home/alice/stderr.txt")
    assert "Starting default (STDIO) server" in machine.read("/home/alice/stderr.txt")


def test_the_stateless_era_works(machine: Machine) -> None:
    seen = machine.agent("stateless_tour", server="time")
    assert seen["version"] == "2026-07-28"
    assert seen["tools"] == ["convert_time", "get_current_time"]
    assert "21:00" in seen["noon"]


def test_a_link_needs_no_argument(machine: Machine) -> None:
    seen = machine.agent("stateless_tour", command="/var/lib/mcpwrap/bin/mcp-wrapper-time")
    assert seen["version"] == "2026-07-28"


def test_memory_outlives_the_session(machine: Machine) -> None:
    entity = {"name": "n1", "entityType": "t", "observations": ["lasting"]}
    machine.call_tool("memory", "create_entities", {"entities": [entity]})
    assert "lasting" in machine.call_tool("memory", "read_graph")


def test_a_cancelled_call_is_cancelled_in_the_server(machine: Machine) -> None:
    # So long that the cancellation arrives before the end of the job, however busy the host is.
    length = {"duration": pace.promised(1.0), "steps": 1}
    job = {"name": "trigger-long-running-operation", "arguments": length}
    with machine.session("everything") as session:
        session.initialize()
        cancelled, kept = session.request("tools/call", job), session.request("tools/call", job)
        params = {"requestId": cancelled, "reason": "changed my mind"}
        session.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        seen = []
        while kept not in seen:
            seen.append(session.receive().get("id"))
        assert cancelled not in seen  # it was sent first, and would have been answered first


def test_a_person_at_a_terminal_can_speak_to_a_server(machine: Machine) -> None:
    """Neither descriptor is a pipe: the stub copies."""
    line = json.dumps(probe_call("result = 6 * 7"))
    seen = machine.call("stand_in", "speak_at_a_terminal", "probe", line, '"told":', user="alice")
    assert seen == [probe_answer(42).strip(), 0]


def test_input_and_output_may_be_files(machine: Machine) -> None:
    machine.write("/home/alice/in.jsonl", f"{json.dumps(probe_call('result = [1, 2]'))}\n")
    machine.as_user("alice", "mcpwrap-connect probe < in.jsonl > out.jsonl")
    assert machine.read("/home/alice/out.jsonl") == probe_answer([1, 2])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import os; os._exit(0)", 0),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),  # 128 + 15, as in a shell
    ],
)
def test_the_stub_exits_as_the_server_did(machine: Machine, code: str, status: int) -> None:
    with machine.session("probe") as session:
        session.ask(code)
        assert session.close()[0] == status


def test_a_large_message_passes_whole_in_both_directions(machine: Machine) -> None:
    """Four of 4 MiB in flight both ways at once: a relay with one thread would stand still."""
    payload = "x" * (4 * 1024 * 1024)

    def send_four() -> None:
        for _ in range(4):
            session.ask(f"result = '{payload}'")

    with machine.session("probe") as session:
        sender = threading.Thread(target=send_four)
        sender.start()
        for _ in range(4):
            assert session.told() == payload
        sender.join()
