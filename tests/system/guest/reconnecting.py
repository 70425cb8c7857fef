"""Agents that call a tool over and over, and open a new session when theirs is broken.

Runs inside the machine, as the account of the agents.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.system.guest import http_agent

TOOL, GIVEN = "good", {"words": "still here"}  # of odd_server.py
VERSION = "2025-11-25"
LAST_CALLS = 20  # in one session, so that it counts as alive
BETWEEN_CALLS_S = 0.05  # faster than any model, and no load for the host


class BrokenError(Exception):
    """End, or absence, of the session."""


CLIENT = {"name": "bed", "version": "1"}
Calls = Iterator[None]  # one item for each answer in one session; BrokenError when it is broken


@dataclass
class Seen:
    """Record of one agent: the end of each session, each refusal, the longest silence."""

    broken: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    silence_s: float = 0.0


def stay(servers: list[str], listeners: list[tuple[str, int]], within_s: float) -> dict[str, Any]:
    """Run one agent for each server and for each listener until a line comes.

    Each then makes its last calls in one session. Prints a line once each has had an answer.
    """
    are_last = threading.Event()
    opened: dict[str, Callable[[], Calls]] = {name: partial(by_stub, name) for name in servers}
    opened |= {host: partial(by_http, host, port, within_s) for host, port in listeners}
    seen = {name: Seen() for name in opened}
    first = [threading.Semaphore(0) for _ in opened]
    with ThreadPoolExecutor(len(opened)) as agents:
        ends = [
            agents.submit(go_on, opened[name], seen[name], has_begun, are_last)
            for name, has_begun in zip(opened, first, strict=True)
        ]
        for has_begun in first:
            has_begun.acquire()
        print("all have begun", flush=True)
        sys.stdin.readline()
        are_last.set()
        for end in ends:
            end.result()
    return {name: vars(each) for name, each in seen.items()}


def go_on(
    opened: Callable[[], Calls],
    seen: Seen,
    has_begun: threading.Semaphore,
    are_last: threading.Event,
) -> None:
    """Call until the last calls of one session are answered."""
    last_answer_s = time.monotonic()
    left = LAST_CALLS
    while left:
        answers, left = 0, LAST_CALLS
        try:
            for _ in opened():
                answers += 1
                now_s = time.monotonic()
                seen.silence_s = max(seen.silence_s, now_s - last_answer_s)
                last_answer_s = now_s
                has_begun.release()
                left -= are_last.wait(BETWEEN_CALLS_S)
                if not left:
                    break
        except BrokenError as error:
            (seen.broken if answers else seen.refused).append(str(error))
            are_last.wait(BETWEEN_CALLS_S)


def by_stub(server: str) -> Calls:
    """Call by a stub of its own."""
    pipe = subprocess.PIPE
    argv = ["mcpwrap-connect", server]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as stub:
        try:
            begun = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": CLIENT}
            ask(stub, "initialize", begun)
            while True:
                ask(stub, "tools/call", {"name": TOOL, "arguments": GIVEN})
                yield
        finally:
            stub.kill()


def ask(stub: "subprocess.Popen[bytes]", method: str, params: dict[str, Any]) -> None:
    """Send a request and read its answer."""
    assert stub.stdin
    assert stub.stdout
    assert stub.stderr
    request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    with suppress(BrokenPipeError):
        stub.stdin.write(json.dumps(request).encode() + b"\n")
    answer = stub.stdout.readline().decode()
    if '"result"' not in answer:
        raise BrokenError(answer + stub.stderr.read().decode())


def by_http(host: str, port: int, within_s: float) -> Calls:
    """Call by the listener of this account, in a session."""
    place = http_agent.Place(host, port, within_s)
    try:
        begun = http_agent.begin(place, {})
        if "then" not in begun:
            raise BrokenError(json.dumps(begun))
        while True:
            answer = http_agent.use(place, TOOL, GIVEN, {})
            if not answer["messages"] or "result" not in answer["messages"][-1]:
                raise BrokenError(json.dumps(answer))
            yield
    except (OSError, http.client.HTTPException) as error:
        raise BrokenError(repr(error)) from error
