"""Agent that leaves its terminal to its server, as standard error. Runs inside the machine.

The official SDK starts servers in a session of their own, which has no terminal.
"""

import json
import subprocess
import sys
from typing import Any


def call(argv: list[str], tool: str, arguments: dict[str, Any]) -> str:
    """Start the server, call one tool, and return the text of the result."""
    text = ""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        info = {"name": "terminal-agent", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        for id_, method, params in (
            (1, "initialize", hello),
            (2, "tools/call", {"name": tool, "arguments": arguments}),
        ):
            request = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
            server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            answer = next(found for line in server.stdout if (found := _answer(line, id_)))
            text = str(answer.get("content", [{}])[0].get("text"))
        server.stdin.close()
    return text


def _answer(line: bytes, id_: int) -> dict[str, Any] | None:
    message: dict[str, Any] = json.loads(line)
    return message["result"] if message.get("id") == id_ else None


if __name__ == "__main__":
    print(call(**json.loads(sys.argv[1])))
