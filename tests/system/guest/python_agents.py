"""Agents of alice with sessions of a Python server, side by side. Runs in a machine as root."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Outcome = dict[str, Any]
BUSY = "[E-WORKER-BUSY]"
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bed", "version": "1"},
}


class PythonAgent:
    """Agent with one session. A session that has ended is followed by another one."""

    def __init__(self, server: str) -> None:
        self._argv = ["runuser", "-u", "alice", "--", "mcpwrap-connect", server]
        self._stub: subprocess.Popen[str] | None = None
        self._last_id = 0
        self._refusal = ""  # why the session did not begin

    def call(self, arguments: Mapping[str, Any]) -> Outcome:
        """Call `run_python`; return the result or the error."""
        self.begin(arguments)
        return self.outcome()

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Send a call; return when it was sent."""
        self._refusal = ""
        if self._stub is None or self._stub.poll() is not None:
            self._open()
        if not self._refusal:
            self._request("tools/call", {"name": "run_python", "arguments": dict(arguments)})

    def outcome(self) -> Outcome:
        """Return the result of the last call, its error, or that the session has ended."""
        message = {} if self._refusal else self._response()
        if "result" not in message:
            self.kill_stub()
            return {"error": self._refusal or _error_of(message)}
        result = message["result"]
        text = "" if "structuredContent" in result else result["content"][0]["text"]
        return {"text": text, "run": result.get("structuredContent"), "error": ""}

    def cancel(self) -> None:
        """Cancel the last call."""
        self._send("notifications/cancelled", {"requestId": self._last_id})

    def close_input(self) -> None:
        """Close the input of the stub, as an agent does that ends."""
        if self._stub is not None:
            assert self._stub.stdin
            self._stub.stdin.close()

    def close(self) -> None:
        """Close the session, and wait for its end."""
        if self._stub is not None:
            self.close_input()
            self._stub.wait()
            self._stub = None

    def kill_stub(self) -> None:
        """End the stub."""
        if self._stub is not None:
            subprocess.run(["pkill", "-KILL", "-P", str(self._stub.pid)], check=False)
            self._stub.wait()
            self._stub = None

    def _open(self) -> None:
        pipe = subprocess.PIPE
        self._stub = subprocess.Popen(
            self._argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        self._request("initialize", _HELLO)
        if "result" in (message := self._response()):
            self._send("notifications/initialized", {})
        else:
            self._refusal = _error_of(message)

    def _request(self, method: str, params: Mapping[str, Any]) -> None:
        self._last_id += 1
        self._send(method, params, id=self._last_id)

    def _send(self, method: str, params: Mapping[str, Any], **more: int) -> None:
        assert self._stub is not None
        assert self._stub.stdin
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        try:
            print(json.dumps(message), file=self._stub.stdin, flush=True)
        except BrokenPipeError:  # the response is the end of the stream
            return

    def _response(self) -> dict[str, Any]:
        if self._stub is None:
            return {}
        assert self._stub.stdout
        for line in self._stub.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._last_id:
                return message
        return {}


def _error_of(message: Mapping[str, Any]) -> str:
    return str(message.get("error", {}).get("message", "the session has ended"))


class Load:
    """Agents that make their calls side by side. A call that was refused as busy is repeated."""

    def __init__(self, server: str, calls_by_agent: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        self._server = server
        self.outcomes: list[Outcome] = []
        self._threads = [
            threading.Thread(target=self._use, args=(number, calls))
            for number, calls in enumerate(calls_by_agent)
        ]

    def is_going_on(self) -> bool:
        """Return whether calls are left."""
        return any(thread.is_alive() for thread in self._threads)

    def run(self, meanwhile: Callable[[], None], every_s: float) -> list[Outcome]:
        """Make all calls; return their outcomes."""
        for thread in self._threads:
            thread.start()
        while self.is_going_on():
            meanwhile()
            time.sleep(every_s)
        return self.outcomes

    def _use(self, agent_number: int, calls: Sequence[Mapping[str, Any]]) -> None:
        agent = PythonAgent(self._server)
        for call_number, arguments in enumerate(calls):
            began_s, busy = time.monotonic(), 0
            while BUSY in (outcome := agent.call(arguments)).get("text", ""):
                busy += 1
            more = {"agent": agent_number, "call": call_number, "busy": busy}
            times = {"sent_s": began_s, "answered_s": time.monotonic()}
            self.outcomes.append(outcome | more | times)
        agent.close()


def hold(server: str, arguments: Mapping[str, Any]) -> None:
    """Call, and wait for ever: the agent that is killed."""
    agent = PythonAgent(server)
    agent.begin(arguments)
    signal.pause()
