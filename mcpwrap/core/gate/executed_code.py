"""Audited facts about the execution of code: what was submitted, and how its run ended.

They are for the calls to a server that executes code (`AccessRule.executes`). Neither code nor
output is among them, and each is bounded: an agent or a server can write no text of its own into
the audit, but for an ID in hexadecimal.
"""

from hashlib import sha256
from typing import Annotated, Literal

import msgspec

from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.execution.execute_api import Ending

MAX_NUMBER = 10**9  # of seconds and milliseconds; a run lasts a day at most
_ID = r"\A[0-9a-f]{0,32}\Z"


class SubmittedCode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Code in the arguments of a call. `sha256` is "" if the argument `code` is not a string."""

    sha256: str = ""  # hexadecimal, of the code in UTF-8
    size_bytes: int = 0  # of the code in UTF-8
    timeout_s: int | None = None  # the argument; None without a usable one
    files: int = 0  # number of entries
    packages: int = 0


class RunReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The server's word about a run, from the response to a call.

    `ending` is one of `execute_api.Ending`, or one of these:

        error    the call has failed: no run, or none whose result is known
        pending  the call became a task, or the server requests input
        unknown  the result does not say it, or its fields are not what they must be
    """

    id: str = ""
    ending: str
    exit_code: int | None = None
    truncated: bool = False  # output is missing
    killed: bool = False  # ended by a limit
    duration_ms: int | None = None
    timeout_s: int | None = None  # that was in force


_Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]


class _ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a Python server's result that are audited; see `execute_api.ExecuteResult`."""

    run: Annotated[str, msgspec.Meta(pattern=_ID)] = ""
    ending: Ending | Literal["unknown"] = "unknown"
    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    truncated: bool = False
    killed: bool = False
    duration_ms: _Number | None = None
    timeout: _Number | None = None


_RESULT_TEXT = msgspec.json.Decoder(_ToolResult)


def submitted_code(arguments: Json) -> SubmittedCode:
    """Return what the arguments of a call submit, whether or not the server will accept them."""
    if not isinstance(arguments, dict):
        return SubmittedCode()
    code = arguments.get("code")
    files, packages = arguments.get("files"), arguments.get("packages")
    encoded = code.encode() if isinstance(code, str) else b""  # strict JSON has no lone surrogates
    return SubmittedCode(
        sha256=sha256(encoded).hexdigest() if isinstance(code, str) else "",
        size_bytes=len(encoded),
        timeout_s=_number(arguments.get("timeout")),
        files=len(files) if isinstance(files, dict) else 0,
        packages=len(packages) if isinstance(packages, list) else 0,
    )


def report_of_result(method: str, result: Json) -> RunReport | None:
    """Return the report in the result of a request; None if it is not the result of a call.

    `result` is the server's own, before rules have changed it.
    """
    if method in methods.CALL_RESULTS:
        return _report(result)
    match method, result:
        case (methods.TASKS_GET, {"result": inner}):
            return _report(inner)
        case (methods.TASKS_GET, {"status": "failed"} | {"error": _}):
            return RunReport(ending="error")
        case _:
            return None


def report_of_failure(method: str) -> RunReport | None:
    """Return the report of a request that was answered with a JSON-RPC error; None if not a call's.

    That a task's state cannot be read says nothing about its run.
    """
    return RunReport(ending="error") if method in methods.CALL_RESULTS else None


def _report(result: Json) -> RunReport:
    match result:
        case {"structuredContent": content}:
            return _read(content)
        case {"isError": True}:
            return RunReport(ending="error")
        case {"task": _} | {"taskId": _} | {"resultType": "input_required"}:
            return RunReport(ending="pending")
        case {"content": [{"type": "text", "text": str() as text}, *_]}:
            return _read_text(text)
        case _:
            return RunReport(ending="unknown")


def _read(content: Json) -> RunReport:
    try:
        return _report_of(msgspec.convert(content, _ToolResult))
    except msgspec.ValidationError:
        return RunReport(ending="unknown")


def _read_text(text: str) -> RunReport:
    """Read the same object from the first text: before 2025-06-18 a result has no other form."""
    try:
        return _report_of(_RESULT_TEXT.decode(text))
    except (msgspec.MsgspecError, RecursionError):
        return RunReport(ending="unknown")


def _report_of(result: _ToolResult) -> RunReport:
    return RunReport(
        id=result.run,
        ending=result.ending,
        exit_code=result.exit_code,
        truncated=result.truncated,
        killed=result.killed,
        duration_ms=result.duration_ms,
        timeout_s=result.timeout,
    )


def _number(value: Json) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_NUMBER else None
