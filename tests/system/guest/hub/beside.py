"""Agent of a hub one of whose members misbehaves: calls of another member. Runs inside, as alice.

It reads in a thread, so that no fault stops it from sending, and waits for each response.
"""

import json
import queue
import subprocess
import threading
import time
from typing import Any

Json = dict[str, Any]
CHANGED = "notifications/tools/list_changed"
LISTED_S = 60.0
SILENT = {"hang", "die"}  # faults of members that do not answer then


class Agent:
    """Session with a hub, in the handshake era."""

    def __init__(self, command: list[str], within_s: float) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._within_s = within_s
        self._last_id = 0
        self._responses: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self._early: dict[int, Json] = {}
        self.notifications: list[str] = []
        self.changed = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        info = {"name": "beside", "version": "1"}
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        self.answer(self.send("initialize", version))
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self._responses.put(message)
                continue
            self.notifications.append(message["method"])
            if message["method"] == CHANGED:
                self.changed.set()

    def _write(self, message: Json) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Json) -> int:
        """Send a request; return its id."""
        self._last_id += 1
        self._write({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def send_call(self, tool: str, **arguments: Any) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, number: int) -> Json:
        """Return the response to a request, whatever comes before it.

        Raises:
            queue.Empty: it did not come in time.
        """
        while number not in self._early:
            message = self._responses.get(timeout=self._within_s)
            assert message["id"] not in self._early, "a second response"
            self._early[message["id"]] = message
        return self._early[number]

    def has(self, number: int) -> bool:
        """Return whether a response was read before the last one that was waited for."""
        return number in self._early

    def call(self, tool: str, **arguments: Any) -> Json:
        return self.answer(self.send_call(tool, **arguments))

    def tools(self) -> list[str]:
        """List all pages: a server has several, where its hub has one."""
        names: list[str] = []
        params: Json = {}
        while True:
            result = self.answer(self.send("tools/list", params))["result"]
            names += [tool["name"] for tool in result["tools"]]
            if "nextCursor" not in result:
                return names
            params = {"cursor": result["nextCursor"]}

    def await_tool(self, name: str) -> None:
        """List the tools at each change, until this one is there; an earlier fault was one too."""
        while True:
            self.changed.clear()
            if name in self.tools():
                return
            assert self.changed.wait(self._within_s), name

    def close(self) -> None:
        """Close the input, as an agent that leaves."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(self._within_s)


def text_of(answer: Json) -> str:
    if "error" in answer:
        return str(answer["error"]["message"])
    return "".join(block.get("text", "") for block in answer["result"]["content"])


def calls_beside(
    hub: str, faulty: str, other: str, fault: str, count: int, within_s: float
) -> Json:
    """Begin a fault of one member, or none, and call another one this often; return the outcome."""
    agent = Agent(["mcpwrap-connect", hub], within_s)
    agent.tools()  # an agent that has not read a list is not told of its changes
    for member in (faulty, other):
        agent.call(f"{member}__identity")
    open_call = agent.send_call(f"{faulty}__wait")  # while the fault begins
    began = agent.send_call(f"{faulty}__fault", kind=fault, of=other) if fault else 0
    took_s, wrong = [], []
    for number in range(count):
        if number % 50 == 0 and fault not in SILENT:
            agent.send_call(f"{faulty}__echo", n=number)
        since_s = time.monotonic()
        answer = agent.call(f"{other}__echo", n=number)
        took_s.append(time.monotonic() - since_s)
        if text_of(answer) != f'{other}: {{"n": {number}}}':
            wrong.append(text_of(answer))
    found: Json = {"p50_s": sorted(took_s)[count // 2], "p99_s": sorted(took_s)[count * 99 // 100]}
    if fault in {"rename", "shadow"}:
        agent.answer(began)
        agent.await_tool(f"{faulty}__renamed" if fault == "rename" else f"{faulty}__{other}__echo")
    own = agent.send_call(f"{faulty}__echo", n=-1)
    if fault in {"die", "flood"}:
        found["open call"] = text_of(agent.answer(open_call))
    found["own"] = text_of(agent.answer(own)) if fault not in SILENT else ""
    found |= {"wrong": wrong, "tools": agent.tools()}
    found["last"] = text_of(agent.call(f"{other}__echo", n=-2))
    found["has own"] = agent.has(own)
    agent.close()
    return found


def first_list(hub: str, wanted: int, within_s: float) -> Json:
    """Open a session; return the first list and its time, and when there were so many tools."""
    agent = Agent(["mcpwrap-connect", hub], within_s)
    since_s = time.monotonic()
    first = agent.tools()
    first_s = time.monotonic() - since_s
    found = first
    while len(found) < wanted:
        assert agent.changed.wait(within_s), found
        agent.changed.clear()
        found = agent.tools()
    complete_s = time.monotonic() - since_s
    changes = agent.notifications.count(CHANGED)
    status = text_of(agent.call("mcpwrap_status"))
    agent.close()
    return {
        "first": first, "first_s": first_s, "all": found, "complete_s": complete_s,
        "changes": changes, "status": status,
    }  # fmt: skip


def cut(hub: str, member: str, ways: list[str], within_s: float) -> int:
    """Open a session for each of these, use a member, and end it in this way; return how many."""
    for way in ways:
        agent = Agent(["mcpwrap-connect", hub], within_s)
        agent.call(f"{member}__echo")
        if way == "during a call":
            agent.send_call(f"{member}__wait")
        if way in {"kill", "during a call"}:
            agent.process.kill()
        elif way == "half a line":
            assert agent.process.stdin
            agent.process.stdin.write(b'{"jsonrpc":"2.0","id":99,')
            agent.process.stdin.flush()
        elif way == "no reader":
            agent.send_call(f"{member}__large", bytes=4_000_000)
            assert agent.process.stdout
            agent.process.terminate()
        elif way == "the member dies":
            agent.call(f"{member}__fault", kind="die")
        agent.close()
    return len(ways)


def lists_in_turns_ms(servers: list[str], wanted: int, rounds: int) -> dict[str, list[float]]:
    """List all tools of each server in turns, in one session each; return the times by server."""
    agents = {server: Agent(["mcpwrap-connect", server], LISTED_S) for server in servers}
    for server, agent in agents.items():
        assert len(agent.tools()) == wanted, server  # not timed: this may be their first use
    times_ms: dict[str, list[float]] = {server: [] for server in servers}
    for number in range(rounds):
        for server in servers[:: -1 if number % 2 else 1]:
            since_s = time.monotonic()
            agents[server].tools()
            times_ms[server].append((time.monotonic() - since_s) * 1e3)
    for agent in agents.values():
        agent.close()
    return times_ms


def lists_ms(server: str, wanted: int, sessions: int) -> dict[str, list[float]]:
    """List all tools, at least so many, in this many sessions; return the times of both lists."""
    times_ms: dict[str, list[float]] = {"first": [], "next": []}
    for _ in range(sessions):
        since_s = time.monotonic()
        agent = Agent(["mcpwrap-connect", server], LISTED_S)
        found = agent.tools()
        times_ms["first"].append((time.monotonic() - since_s) * 1e3)
        while len(found) < wanted:  # the first time nothing is known
            assert agent.changed.wait(LISTED_S), found
            agent.changed.clear()
            found = agent.tools()
        since_s = time.monotonic()
        agent.tools()
        times_ms["next"].append((time.monotonic() - since_s) * 1e3)
        agent.close()
    return times_ms
