"""Session that a stub in a machine holds open, driven line by line."""

import json
import queue
import subprocess
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

from tests.shared import pace


class Session:
    """Running stub, with pipes to it. Use as a context manager: the end closes its input."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._next_id = 0
        # Read ahead in a thread, so that no wait for a response is without end.
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._stderr: list[bytes] = []
        self._readers = [threading.Thread(target=read) for read in (self._read, self._read_stderr)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout as stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put(b"")

    def _read_stderr(self) -> None:
        assert self.process.stderr
        with self.process.stderr as stderr:
            self._stderr += stderr

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.returncode is None:
            self.close()

    def send(self, message: dict[str, Any]) -> None:
        """Send one line.

        Raises:
            EOFError: the session has ended, with its status and its standard error.
        """
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise EOFError(f"the session has ended: {self.close()}") from error

    def read_line(self) -> str:
        """Return the next line, without its newline.

        Raises:
            queue.Empty: none came in time.
            EOFError: the session has ended, with its standard error.
        """
        line = self._lines.get(timeout=pace.WAIT_S)
        if not line:
            self._readers[1].join()
            raise EOFError(b"".join(self._stderr).decode(errors="replace"))
        return line.decode().rstrip("\n")

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        message: dict[str, Any] = json.loads(self.read_line())
        return message

    def request(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        self._next_id += 1
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params or {}})
        return self._next_id

    def answer_to(self, request_id: int) -> dict[str, Any]:
        """Return the response to a request; skip the messages before it."""
        while True:
            message = self.receive()
            if message.get("id") == request_id and "method" not in message:
                return message

    def initialize(self) -> None:
        """Do the handshake of 2025-06-18."""
        info = {"name": "bed", "version": "1"}
        version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.answer_to(self.request("initialize", version))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def evaluate(self, code: str) -> Any:
        """Run Python in the server of `guest/probe.py`; return the value of `result` there."""
        self.ask(code)
        return self.told()

    def call(self, module: str, function: str, *arguments: Any) -> Any:
        """Call a function of a file of `guest/` as the probe server; return its result.

        An OSError that it raises is returned as the text `OSError NUMBER`.
        """
        name = f"tests.system.guest.{module}"
        return self.evaluate(f"from {name} import {function}; result = {function}{arguments!r}")

    def ask(self, code: str) -> None:
        """Send the request of `evaluate`, and do not wait for the response."""
        self._next_id += 1
        self.send(probe_call(code, self._next_id))

    def told(self) -> Any:
        """Return the probe's next response.

        Raises:
            EOFError: the server ended before it answered.
        """
        message = self.receive()
        if "error" in message:
            raise EOFError(message["error"]["message"])
        return message["result"]["told"]

    def await_end(self) -> str:
        """Wait until the other side ends the session; return the stub's messages."""
        try:
            while True:  # an answer may come before
                self.read_line()
        except EOFError as ended:
            return str(ended)

    def close(self) -> tuple[int, str]:
        """Close the input, wait for the stub, and return its status and its standard error."""
        assert self.process.stdin
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            status = self.process.wait(timeout=pace.WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        for reader in self._readers:
            reader.join(pace.WAIT_S)
        return status, b"".join(self._stderr).decode(errors="replace")


def probe_call(code: str, request_id: int = 1) -> dict[str, Any]:
    """Return the call of the probe's one tool."""
    params = {"name": "run", "arguments": {"code": code}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def probe_answer(told: Any, request_id: int = 1) -> str:
    """Return the probe's response as the gate writes it."""
    answer = {"jsonrpc": "2.0", "id": request_id, "result": {"told": told}}
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False) + "\n"
