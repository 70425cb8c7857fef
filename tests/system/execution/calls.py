"""Calls of `run_python` on the lines of one session, so that a story sees each message."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support.python_servers import RunResult

Json = dict[str, Any]


@dataclass(frozen=True)
class Notification:
    """Progress notification, and the time of its arrival in seconds after its call."""

    at_s: float
    call: int  # its number among the calls
    progress: float
    message: str


@contextmanager
def opened(machine: Machine, server: str = "python") -> Iterator[Session]:
    """Open a session of alice's agent, and do the handshake."""
    with machine.session(server) as session:
        session.initialize()
        yield session


def run(session: Session, code: str, **arguments: Any) -> RunResult:
    """Execute code; return the result."""
    return result_of(session.answer_to(begin(session, code, **arguments)))


def begin(session: Session, code: str, **arguments: Any) -> int:
    """Send a call; return the id of its request."""
    params = {"name": "run_python", "arguments": {"code": code, **arguments}}
    return session.request("tools/call", params)


def result_of(answer: Json) -> RunResult:
    """Return the result that a response has."""
    result = answer["result"]
    content = result["content"]
    structured = result.get("structuredContent", {})
    return RunResult(result["isError"], content[0].get("text", ""), content, structured)


def run_at_once(
    session: Session, *codes: str, then: str = ""
) -> tuple[list[RunResult], list[Notification]]:
    """Execute several codes side by side; return the results, and the notifications in order.

    `then` is one more, sent when all others run.
    """
    sent_at_s: list[float] = []
    id_by_call: dict[int, int] = {}

    def send(code: str) -> None:
        number = len(sent_at_s)
        sent_at_s.append(time.monotonic())
        params = {"name": "run_python", "arguments": {"code": code}}
        token = {"_meta": {"progressToken": number}}
        id_by_call[number] = session.request("tools/call", {**params, **token})

    for code in codes:
        send(code)
    answers: dict[int, Json] = {}
    notifications = []
    running = set()
    while len(answers) < len(codes) + bool(then):
        message = session.receive()
        if message.get("method") == "notifications/progress":
            sent = message["params"]
            call, text = sent["progressToken"], sent["message"]
            at_s = time.monotonic() - sent_at_s[call]
            notifications.append(Notification(at_s, call, sent["progress"], text))
            if ": running" in text:
                running.add(call)
            if then and len(running) == len(sent_at_s) == len(codes):
                send(then)
        elif message.get("id") in id_by_call.values():
            answers[message["id"]] = message
    return [result_of(answers[request]) for request in id_by_call.values()], notifications


def audited(machine: Machine) -> list[Json]:
    """Return the audit records of calls of the tool, oldest first."""
    out = machine.look("mcpwrap audit show --json --tool run_python")
    return [json.loads(line) for line in out.splitlines()]


def worker_lines(machine: Machine) -> list[str]:
    """Return the worker's journal lines about runs, oldest first."""
    entries = machine.journal("_SYSTEMD_UNIT=mcpwrap-worker.service")
    return [line for entry in entries if (line := str(entry["MESSAGE"])).startswith("run ")]
