"""Audited facts about executed code: what calls submit, and what results report, each bounded."""

from hashlib import sha256
from typing import get_args

import msgspec
import pytest

from mcpwrap.core.audit.records import Record, decode_record, encode
from mcpwrap.core.gate.executed_code import (
    MAX_NUMBER,
    RunReport,
    SubmittedCode,
    report_of_failure,
    report_of_result,
    submitted_code,
)
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.execution.execute_api import Ending, ExecuteResult
from tests.unit.core.audit_records import record

CALL, TASK, STATE = "tools/call", "tasks/result", "tasks/get"
EMPTY = sha256(b"").hexdigest()
ERROR, PENDING, UNKNOWN, START, EXIT = (
    RunReport(ending=name) for name in ("error", "pending", "unknown", "start", "exit")
)
SECRET = "hunter2 " * 9


@pytest.mark.parametrize(
    ("arguments", "submitted"),
    [
        ({"code": ""}, SubmittedCode(sha256=EMPTY)),
        ({"code": "é"}, SubmittedCode(sha256=sha256(b"\xc3\xa9").hexdigest(), size_bytes=2)),
        ({"code": "", "timeout": 60}, SubmittedCode(sha256=EMPTY, timeout_s=60)),
        ({"code": "", "timeout": 0}, SubmittedCode(sha256=EMPTY, timeout_s=0)),
        ({"code": "", "files": {"a": "b", "c": {}}}, SubmittedCode(sha256=EMPTY, files=2)),
        ({"code": "", "packages": ["numpy", 1]}, SubmittedCode(sha256=EMPTY, packages=2)),
        ({"timeout": MAX_NUMBER}, SubmittedCode(timeout_s=MAX_NUMBER)),
        # What the server will refuse; the call is audited nevertheless.
        ({"timeout": MAX_NUMBER + 1}, SubmittedCode()),
        ({"timeout": -1}, SubmittedCode()),
        ({"timeout": 1.0}, SubmittedCode()),
        ({"timeout": True}, SubmittedCode()),
        ({"timeout": SECRET}, SubmittedCode()),
        ({"code": [SECRET], "files": SECRET, "packages": {SECRET: 1}}, SubmittedCode()),
        ({"Code": SECRET}, SubmittedCode()),  # `Code` is not an argument of the tool
        ({}, SubmittedCode()),
        (None, SubmittedCode()),
        ([SECRET], SubmittedCode()),
    ],
)
def test_the_code_of_a_call_is_its_hash_and_length(
    arguments: Json, submitted: SubmittedCode
) -> None:
    assert submitted_code(arguments) == submitted


def of_content(content: Json) -> RunReport | None:
    return report_of_result(CALL, {"content": [], "structuredContent": content})


@pytest.mark.parametrize(
    ("content", "report"),
    [
        (
            {
                "stdout": SECRET, "stderr": SECRET, "exit_code": 137, "error": SECRET,
                "truncated": True, "duration_ms": 60_021, "killed": True, "value": SECRET,
                "files": [{"name": SECRET}], "ending": "timeout", "peak_memory": 1, "cpu_ms": 2,
                "run": "0123456789abcdef" * 2, "timeout": 60,
            },
            RunReport(
                id="0123456789abcdef" * 2, ending="timeout", exit_code=137, truncated=True,
                killed=True, duration_ms=60_021, timeout_s=60,
            ),
        ),
        ({"ending": "exit", "exit_code": 0}, RunReport(ending="exit", exit_code=0)),
        ({"exit_code": 3}, RunReport(ending="unknown", exit_code=3)),
        ({"exit_code": None, "duration_ms": None, "timeout": None}, UNKNOWN),
        # One field that is not what it must be, and none is believed.
        ({"ending": "exit", "run": "0" * 33}, UNKNOWN),
        ({"ending": "exit", "run": "00FF"}, UNKNOWN),
        ({"ending": "exit", "run": "00\n"}, UNKNOWN),
        ({"ending": "exit", "run": SECRET}, UNKNOWN),
        ({"ending": SECRET}, UNKNOWN),
        ({"ending": "error"}, UNKNOWN),  # the gate's own word
        ({"ending": "exit", "exit_code": 256}, UNKNOWN),
        ({"ending": "exit", "exit_code": -9}, UNKNOWN),
        ({"ending": "exit", "exit_code": True}, UNKNOWN),
        ({"ending": "exit", "exit_code": "0"}, UNKNOWN),
        ({"ending": "exit", "duration_ms": MAX_NUMBER + 1}, UNKNOWN),
        ({"ending": "exit", "duration_ms": 1.5}, UNKNOWN),
        ({"ending": "exit", "timeout": 10**30}, UNKNOWN),
        ({"ending": "exit", "killed": 1}, UNKNOWN),
        ({"ending": "exit", "truncated": SECRET}, UNKNOWN),
        ({}, UNKNOWN),
        (None, UNKNOWN),
        ([{"ending": "exit"}], UNKNOWN),
        (SECRET, UNKNOWN),
    ],
)  # fmt: skip
def test_a_result_reports_its_run(content: Json, report: RunReport) -> None:
    assert of_content(content) == report
    # In the older form, the text of the result.
    text: Json = {"type": "text", "text": msgspec.json.encode(content).decode()}
    assert report_of_result(CALL, {"content": [text, {"type": "image"}]}) == report


@pytest.mark.parametrize("ending", get_args(Ending))
def test_each_ending_of_the_worker_is_one_of_the_audit(ending: Ending) -> None:
    result = ExecuteResult(
        stdout=SECRET,
        stderr="",
        exit_code=1,
        error=None,
        truncated=False,
        duration_ms=7,
        killed=False,
        ending=ending,
        run="0a",
        timeout=60,
    )
    assert of_content(msgspec.to_builtins(result)) == RunReport(
        id="0a", ending=ending, exit_code=1, duration_ms=7, timeout_s=60
    )


@pytest.mark.parametrize(
    ("method", "result", "report"),
    [
        (CALL, {"content": [{"type": "text", "text": SECRET}], "isError": True}, ERROR),
        (CALL, {"structuredContent": {"ending": "start"}, "isError": True}, START),
        (CALL, {"content": [{"type": "text", "text": SECRET}]}, UNKNOWN),
        (CALL, {"content": [{"type": "text", "text": "[" * 9000}]}, UNKNOWN),
        (CALL, {"content": [{"type": "text", "text": f'{{"x":{"[" * 9000}'}]}, UNKNOWN),
        (CALL, {"content": [{"type": "text", "text": 7}]}, UNKNOWN),
        (CALL, {"content": [{"type": "image", "text": '{"ending":"exit"}'}]}, UNKNOWN),
        (CALL, {"content": []}, UNKNOWN),
        (CALL, {"content": SECRET}, UNKNOWN),
        (CALL, [SECRET], UNKNOWN),
        (CALL, None, UNKNOWN),
        (CALL, {"task": {"taskId": "t"}}, PENDING),
        (CALL, {"resultType": "task", "taskId": "t"}, PENDING),
        (CALL, {"resultType": "input_required", "requestState": SECRET}, PENDING),
        (TASK, {"structuredContent": {"ending": "exit"}}, EXIT),
        (TASK, {"isError": True}, ERROR),
        (STATE, {"taskId": "t", "status": "working"}, None),
        (STATE, {"taskId": "t", "status": "completed"}, None),
        (STATE, {"result": {"structuredContent": {"ending": "exit"}}}, EXIT),
        (STATE, {"status": "completed", "result": {"isError": True}}, ERROR),
        (STATE, {"status": "failed"}, ERROR),
        (STATE, {"error": {"code": 1, "message": SECRET}}, ERROR),
        (STATE, [], None),
        ("tools/list", {"structuredContent": {"ending": "exit"}}, None),
        ("resources/read", {"isError": True}, None),
    ],
)  # fmt: skip
def test_only_the_result_of_a_call_has_a_report(
    method: str, result: Json, report: RunReport | None
) -> None:
    assert report_of_result(method, result) == report


@pytest.mark.parametrize(
    ("method", "report"), [(CALL, ERROR), (TASK, ERROR), (STATE, None), ("ping", None)]
)
def test_an_error_is_the_report_of_a_call(method: str, report: RunReport | None) -> None:
    assert report_of_failure(method) == report


def decoded(line: bytes) -> dict[str, object]:
    return msgspec.json.decode(line, type=dict[str, object])


class _FormerRecord(msgspec.Struct):
    """Reader of a version without these fields."""

    n: int
    decision: str


def test_other_records_are_as_before_and_former_readers_read_all() -> None:
    assert decoded(encode(record())).keys().isdisjoint({"code", "run"})
    code, run = SubmittedCode(sha256=EMPTY, timeout_s=0), RunReport(ending="exit", exit_code=0)
    for one in (record(code=code), record(run=run)):
        line = encode(one)
        assert decode_record(line) == one
        former = msgspec.json.decode(line, type=_FormerRecord)
        assert (former.n, former.decision) == (one.n, one.decision)


def test_a_record_of_a_later_version_is_readable() -> None:
    line = encode(record()).replace(b'"n":3', b'"n":3,"run":{"ending":"later","x":1}')
    found: Record = decode_record(line)
    assert found.run == RunReport(ending="later")
