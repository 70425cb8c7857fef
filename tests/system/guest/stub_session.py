"""Session of an account with a server, by the stub. Runs inside the machine, as root."""

import itertools
import json
import subprocess
from typing import Any

PATIENCE_S = 60.0  # of the machine's clock
CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bed", "version": "1"},
}


class StubSession:
    """Session that is held open, after the handshake."""

    def __init__(self, command: str, user: str = "alice") -> None:
        argv = ["runuser", "-u", user, "--", "sh", "-c", f"exec {command}"]
        self.stub = subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=-1, text=True)
        self.ids = itertools.count(1)
        self.opened = self.ask("initialize", CLIENT)
        self.send({"method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return the message that is received next."""
        self.request(method, params)
        return self.receive()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its response."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: dict[str, Any]) -> int:
        """Send a request; return its id."""
        number = next(self.ids)
        self.send({"id": number, "method": method, "params": params})
        return number

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        print(json.dumps({"jsonrpc": "2.0", **message}), file=self.stub.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        """Return the next response."""
        assert self.stub.stdout
        while True:
            line = self.stub.stdout.readline()
            assert line, self.end(PATIENCE_S)
            message: dict[str, Any] = json.loads(line)
            if "method" not in message:
                return message

    def end(self, within_s: float) -> list[Any]:
        """Close the session; return the status and standard error of its stub."""
        err = self.stub.communicate(timeout=within_s)[1]
        return [self.stub.returncode, err.strip()]
