"""Calls of `run_python` in one session, several at a time."""

from typing import Any

from tests.system.bed.session import Session

MAX_CALLS = 16  # of one session at a time


class Calls:
    """Calls of one session, as many at a time as the server takes. `result_by_code` has results."""

    def __init__(self, session: Session, codes: list[str]) -> None:
        self._session = session
        self._waiting = codes[::-1]
        self._code_by_id: dict[int, str] = {}
        self.result_by_code: dict[str, dict[str, Any]] = {}
        for _ in range(min(MAX_CALLS, len(codes))):
            self._call()

    def _call(self) -> None:
        code = self._waiting.pop()
        params = {"name": "run_python", "arguments": {"code": code}}
        self._code_by_id[self._session.request("tools/call", params)] = code

    def until(self, number: int) -> None:
        """Receive results until there are so many in all."""
        while len(self.result_by_code) < number:
            message = self._session.receive()
            if message.get("id") in self._code_by_id:
                self.result_by_code[self._code_by_id.pop(message["id"])] = message["result"]
                if self._waiting:
                    self._call()

    def stdout_of(self, code: str) -> str:
        """Return the standard output of a call that has a result."""
        result = self.result_by_code[code]
        assert not result.get("isError"), result
        return str(result["structuredContent"]["stdout"])

    def error_of(self, code: str) -> str:
        """Return the text of a call that has failed; "" if it has not."""
        result = self.result_by_code[code]
        return str(result["content"][0]["text"]) if result.get("isError") else ""
