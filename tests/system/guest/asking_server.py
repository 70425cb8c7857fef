"""MCP server that asks a person by a form, to measure how a client draws it. Runs in the machine.

`asking_server.py LOG`: LOG gets a line of JSON for each message of the client, with the
milliseconds since the server started. The tool `ask` sends a form, and returns the client's answer
as its text; `params` replaces params of the form, and after `cancel_after_s` it is cancelled. The
tool `wait` answers after `seconds`, and with `progress` sends progress each second.
"""

import json
import os
import select
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Json = dict[str, Any]
BEGAN_S = time.monotonic()
MESSAGE = """mcpwrap: may the server "files" do this?

tool: write_file
path: /home/alice/notes/plan.txt
content: the first line
         the second line

SHA-256 4f0c1d… · rule "writes-are-approved" · 118 s left
https://127.0.0.1:52080/"""
FORM: Json = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Approve",
            "description": "Let this one call through.",
            "default": False,
        }
    },
    "required": ["approve"],
}
NUMBER = {"type": "number"}
TOOLS = [
    {
        "name": "ask",
        "description": "Ask the person.",
        "inputSchema": {
            "type": "object",
            "properties": {"cancel_after_s": NUMBER, "params": {"type": "object"}},
        },
    },
    {
        "name": "wait",
        "description": "Answer later.",
        "inputSchema": {
            "type": "object",
            "properties": {"seconds": NUMBER, "progress": {"type": "boolean"}},
        },
    },
]


class Server:
    """State of one session: what is open, and when it ends."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._asked: dict[str, Any] = {}  # the call of each open form
        self._due: list[tuple[float, Callable[[], None]]] = []  # actions, and their times

    def note(self, **fact: Any) -> None:
        """Write a fact into the log."""
        ms = round(1000 * (time.monotonic() - BEGAN_S))
        with self._log.open("a") as log:
            log.write(json.dumps({"ms": ms, **fact}) + "\n")

    def send(self, **message: Any) -> None:
        """Send a message."""
        data = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        os.write(1, data.encode())

    def serve(self) -> None:
        """Serve until the client closes standard input."""
        rest = b""
        while True:
            now = time.monotonic()
            due = [one for one in self._due if one[0] <= now]
            self._due = [one for one in self._due if one[0] > now]
            for _, action in due:
                action()
            until = min((at for at, _ in self._due), default=now + 60)
            if not select.select([0], [], [], max(until - now, 0))[0]:
                continue
            data = os.read(0, 65536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                self.note(got=message)
                self.receive(message)

    def receive(self, message: Json) -> None:
        """Take a message of the client."""
        method, params = message.get("method"), message.get("params", {})
        if method is None:
            if message["id"] in self._asked:
                answer = message.get("result", message.get("error"))
                self.tell(self._asked.pop(message["id"]), json.dumps(answer))
        elif method == "tools/call":
            tool = {"ask": self.ask, "wait": self.wait}[params["name"]]
            tool(message["id"], params.get("_meta", {}), **params["arguments"])
        elif method in ("initialize", "tools/list", "ping"):
            results: Json = {
                "initialize": {
                    "protocolVersion": params.get("protocolVersion"),
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "asking", "version": "1"},
                },
                "tools/list": {"tools": TOOLS},
                "ping": {},
            }
            self.send(id=message["id"], result=results[method])
        elif "id" in message:
            self.send(id=message["id"], error={"code": -32601, "message": "no such method"})

    def tell(self, call: Any, text: str) -> None:
        """Answer a call."""
        self.send(id=call, result={"content": [{"type": "text", "text": text}]})

    def ask(self, call: Any, meta: Json, **how: Any) -> None:
        """Send a form."""
        del meta
        form = f"form-{call}"
        self._asked[form] = call
        params = {"mode": "form", "message": MESSAGE, "requestedSchema": FORM}
        self.note(asked=form)
        self.send(id=form, method="elicitation/create", params=params | how.get("params", {}))
        if "cancel_after_s" in how:
            at = time.monotonic() + how["cancel_after_s"]
            self._due.append((at, partial(self.cancel, form)))

    def cancel(self, form: str) -> None:
        """Cancel a form, if it is open."""
        if form in self._asked:
            self.note(cancelled=form)
            cancelled = {"requestId": form, "reason": "answered elsewhere"}
            self.send(method="notifications/cancelled", params=cancelled)
            self.tell(self._asked.pop(form), "cancelled")

    def wait(self, call: Any, meta: Json, **how: Any) -> None:
        """Answer later."""
        began, seconds = time.monotonic(), how["seconds"]
        if how.get("progress") and "progressToken" in meta:
            for second in range(1, int(seconds)):
                params = {"progressToken": meta["progressToken"], "progress": second}
                tell = partial(self.send, method="notifications/progress", params=params)
                self._due.append((began + second, tell))
        self._due.append((began + seconds, partial(self.tell, call, "waited")))


if __name__ == "__main__":
    Server(Path(sys.argv[1])).serve()
