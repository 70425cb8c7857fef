"""Session of a Python server: dialogues of each protocol revision."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpwrap.as_python.replies import ReplyWriter
from tests.shared import pace
from tests.unit.as_python import worker
from tests.unit.as_python.worker import RunningCall
from tests.unit.as_python.world import call, modern, note, request, world

ANY = object()
HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"


def initialize(revision: Any = "2025-11-25") -> dict[str, Any]:
    return request(0, "initialize", protocolVersion=revision, capabilities={})


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [*((revision, revision) for revision in HANDSHAKES), ("2024-10-07", "2025-11-25")],
)
def test_a_handshake_sets_the_revision(tmp_path: Path, offered: str, chosen: str) -> None:
    with world(tmp_path) as here:
        result = here.agent.reply_to(initialize(offered))["result"]
        assert result["protocolVersion"] == chosen
        assert result["capabilities"] == {"tools": {}, "resources": {}}
        assert result["serverInfo"]["name"] == "mcpwrap-python"
        here.agent.send(note("notifications/initialized"))
        assert here.agent.reply_to(request("p", "ping")) == {
            "jsonrpc": "2.0", "id": "p", "result": {},
        }  # fmt: skip
        tool = here.agent.reply_to(request(2, "tools/list"))["result"]["tools"][0]
        assert ("outputSchema" in tool) is (chosen >= "2025-06-18")


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_a_call_in_each_handshake_revision(tmp_path: Path, revision: str) -> None:
    with world(tmp_path) as here:
        here.agent.reply_to(initialize(revision))
        here.worker.will(
            worker.result(files=[{"name": "a.csv", "size": 3, "data": "YSxi"}], value="3")
        )
        message = request(3, "tools/call", name="run_python", arguments={"code": "print(1)"})
        result = here.agent.reply_to(message)["result"]
        text, *links = result["content"]
        assert json.loads(text["text"])["value"] == "3"
        if revision < "2025-06-18":  # whose clients know neither
            assert (links, "structuredContent" in result) == ([], False)
        else:
            assert [link["type"] for link in links] == ["resource_link"]
            assert result["structuredContent"] == json.loads(text["text"])
        assert "resultType" not in result


def test_the_modern_era_needs_no_handshake(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        found = here.agent.reply_to(modern(1, "server/discover"))["result"]
        assert found.pop("_meta")[SERVER_INFO_KEY]["name"] == "mcpwrap-python"
        assert found.pop("instructions").startswith("run_python executes Python code")
        assert found == {
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "resources": {}}, "ttlMs": 3600000,
            "cacheScope": "private",
        }  # fmt: skip
        for method, key in [
            ("tools/list", "tools"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ]:
            listed = here.agent.reply_to(modern("x", method))["result"]
            assert listed.keys() == {"resultType", "_meta", "ttlMs", "cacheScope", key}
            assert len(listed[key]) == (1 if key == "tools" else 0)
        here.worker.will(worker.result())
        assert here.agent.call()["resultType"] == "complete"


def test_both_eras_in_one_session(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        assert "result" in here.agent.reply_to(modern(1, "tools/list"))
        assert "result" in here.agent.reply_to(initialize())
        assert "ttlMs" not in here.agent.reply_to(request(2, "tools/list"))["result"]
        assert "ttlMs" in here.agent.reply_to(modern(3, "tools/list"))["result"]


ENVELOPE = modern(1, "tools/list")["params"]["_meta"]
VERSION, CAPABILITIES = ENVELOPE


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        # Before a handshake, and without an envelope.
        (request(1, "tools/list"), -32602, "must begin with initialize"),
        (request(1, "server/discover"), -32602, "params._meta must have"),
        (request(1, "initialize"), -32602, "protocolVersion must be a string"),
        (initialize(3), -32602, "protocolVersion must be a string"),
        # Envelopes.
        (request(1, "tools/list", _meta={VERSION: "2026-07-28"}), -32602, CAPABILITIES),
        (request(1, "tools/list", _meta={**ENVELOPE, CAPABILITIES: []}), -32602, CAPABILITIES),
        (request(1, "tools/list", _meta={**ENVELOPE, VERSION: 3}), -32602, VERSION),
        (request(1, "tools/list", _meta={**ENVELOPE, VERSION: "2027-01-01"}), -32022,
         "Unsupported protocol version"),
        # A revision of a handshake cannot be in an envelope.
        (request(1, "tools/list", _meta={**ENVELOPE, VERSION: "2025-11-25"}), -32022,
         "Unsupported protocol version"),
        # Methods that 2026-07-28 does not have, and those of capabilities that are not offered.
        (modern(1, "initialize"), -32601, "Method not found: initialize"),
        (modern(1, "ping"), -32601, "Method not found: ping"),
        (modern(1, "logging/setLevel", level="info"), -32601, "Method not found"),
        (modern(1, "completion/complete"), -32601, "Method not found"),
        (modern(1, "prompts/list"), -32601, "Method not found"),
        (modern(1, "subscriptions/listen", notifications={}), -32601, "Method not found"),
        # Lists have one page.
        (modern(1, "tools/list", cursor="x"), -32602, "Invalid cursor"),
        (modern(1, "resources/list", cursor="x"), -32602, "Invalid cursor"),
        (modern(1, "resources/templates/list", cursor="x"), -32602, "Invalid cursor"),
        # Calls.
        (modern(1, "tools/call", name="run_ruby", arguments={}), -32602, "Unknown tool: run_ruby"),
        (modern(1, "tools/call"), -32602, "Unknown tool: None"),
        (modern(1, "tools/call", name="run_python", arguments=[]), -32602, "must be an object"),
        # Resources.
        (modern(1, "resources/read"), -32602, "uri must be a string"),
        (modern(1, "resources/read", uri="run://" + "0" * 32 + "/a"), -32602, "not found"),
        (modern(1, "resources/read", uri="file:///etc/passwd"), -32602, "Resource not found"),
    ],
)  # fmt: skip
def test_a_wrong_request_has_an_error(
    tmp_path: Path, message: dict[str, Any], code: int, text: str
) -> None:
    with world(tmp_path) as here:
        error = here.agent.reply_to(message)["error"]
        assert error["code"] == code
        assert text in error["message"]
        if code == -32022:
            assert error["data"]["supported"] == ["2026-07-28"]


def test_a_missing_resource_has_the_code_of_its_era(tmp_path: Path) -> None:
    uri = "run://" + "0" * 32 + "/a"
    with world(tmp_path) as here:
        here.agent.reply_to(initialize())
        error = here.agent.reply_to(request(1, "resources/read", uri=uri))["error"]
        assert (error["code"], error["data"]) == (-32002, {"uri": uri})


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        (b"{", (None, -32700)),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', (5, -32600)),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","method":"x"}', (5, -32600)),
        (b"[]", (None, -32600)),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]', (None, -32600)),  # not this revision's
    ],
)
def test_a_malformed_line_has_an_error(
    tmp_path: Path, line: bytes, reply: tuple[int | None, int]
) -> None:
    with world(tmp_path) as here:
        here.agent.send_line(line)
        message = here.agent.reply()
        assert (message["id"], message["error"]["code"]) == reply


def test_empty_lines_and_unknown_notifications_are_ignored(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.agent.send_line(b"")
        here.agent.send(note("notifications/roots/list_changed"))
        here.agent.send(note("notifications/cancelled", requestId=99))
        here.agent.send({"jsonrpc": "2.0", "id": 4, "result": {}})  # answers nothing
        assert here.agent.reply_to(request(1, "ping"))["id"] == 1


def test_a_batch_is_answered_by_one_line(tmp_path: Path) -> None:
    run = RunningCall()
    with world(tmp_path) as here:
        here.agent.reply_to(initialize("2025-03-26"))
        here.worker.will(run.until_told)
        slow = request("s", "tools/call", name="run_python", arguments={"code": "1"})
        here.agent.send(
            [slow, request(1, "ping"), note("notifications/initialized"), {"jsonrpc": "1.0"}]
        )
        assert run.has_begun.wait(pace.WAIT_S)
        run.may_end.set()
        replies = {reply["id"]: reply for reply in here.agent.receive()}
        assert replies.keys() == {"s", 1, None}
        assert replies[None]["error"]["code"] == -32600
        here.agent.send([note("notifications/initialized")])  # has no reply at all
        assert here.agent.reply_to(request(2, "ping"))["id"] == 2


def test_a_cancelled_call_of_a_batch_is_left_out(tmp_path: Path) -> None:
    run = RunningCall()
    with world(tmp_path) as here:
        here.agent.reply_to(initialize("2025-03-26"))
        here.worker.will(run.until_gone)
        slow = request("s", "tools/call", name="run_python", arguments={"code": "1"})
        here.agent.send([slow, request(1, "ping")])
        assert run.has_begun.wait(pace.WAIT_S)
        here.agent.send(note("notifications/cancelled", requestId="s"))
        assert [reply["id"] for reply in here.agent.receive()] == [1]


def test_cancelling_ends_the_run_and_has_no_reply(tmp_path: Path) -> None:
    run = RunningCall()
    with world(tmp_path) as here:
        here.worker.will(run.until_gone)
        here.agent.send(call("a"))
        assert run.has_begun.wait(pace.WAIT_S)
        here.agent.send(note("notifications/cancelled", requestId="a"))
        assert run.has_caller_gone.wait(pace.WAIT_S)
        assert here.agent.reply_to(modern(2, "tools/list"))["id"] == 2


def test_the_end_of_the_session_ends_its_runs(tmp_path: Path) -> None:
    run = RunningCall()
    with world(tmp_path) as here:
        here.worker.will(run.until_gone)
        here.agent.send(call("a"))
        assert run.has_begun.wait(pace.WAIT_S)
        here.agent.hang_up()
        assert run.has_caller_gone.wait(pace.WAIT_S)
        assert here.agent.ended_with == ""


def test_calls_run_side_by_side(tmp_path: Path) -> None:
    first, second = RunningCall(), RunningCall()
    with world(tmp_path) as here:
        here.worker.will(first.until_told, second.until_told)
        here.agent.send(call("a"))
        assert first.has_begun.wait(pace.WAIT_S)
        here.agent.send(call("b"))
        assert second.has_begun.wait(pace.WAIT_S)
        assert here.agent.reply_to(modern("l", "tools/list"))["id"] == "l"
        second.may_end.set()
        assert here.agent.reply()["id"] == "b"
        first.may_end.set()
        assert here.agent.reply()["id"] == "a"


def test_an_id_in_use_and_a_call_too_many_are_refused(tmp_path: Path) -> None:
    runs = [RunningCall() for _ in range(16)]
    with world(tmp_path) as here:
        here.worker.will(*(run.until_told for run in runs))
        for number in range(16):
            here.agent.send(call(number))
        for run in runs:
            assert run.has_begun.wait(pace.WAIT_S)
        assert here.agent.reply_to(call(3))["error"]["code"] == -32600
        result = here.agent.reply_to(call(16))["result"]
        assert result["isError"] is True
        assert "16 calls of this session are in progress" in result["content"][0]["text"]
        for run in runs:
            run.may_end.set()
        assert {here.agent.reply()["id"] for _ in runs} == set(range(16))


def test_progress_is_sent_while_a_call_waits(tmp_path: Path) -> None:
    run = RunningCall()
    with world(tmp_path) as here:
        here.worker.will(run.until_told)
        here.agent.send(call("a", _meta={"progressToken": "t"}))
        seen: list[dict[str, Any]] = []
        while not seen or "half way" not in seen[-1]["message"]:
            notification = here.agent.receive()
            assert notification["method"] == "notifications/progress"
            seen.append(notification["params"])
        run.may_end.set()
        assert here.agent.reply()["id"] == "a"
        assert {params["progressToken"] for params in seen} == {"t"}
        times = [params["progress"] for params in seen]
        assert times == sorted(set(times))  # it must increase
        # None follows the response: the next line is the next reply.
        here.agent.send(modern("l", "tools/list"))
        assert here.agent.receive()["id"] == "l"


def test_a_bug_is_an_error_that_quotes_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with world(tmp_path) as here:
        here.installer.error = ValueError("canary")  # type: ignore[assignment]
        error = here.agent.reply_to(call(1, "canary"))["error"]
        assert error["code"] == -32603
        assert "canary" not in json.dumps(error)
    assert "a bug in mcpwrap: ValueError" in (err := capfd.readouterr().err)
    assert "canary" not in err


def test_a_line_without_end_ends_the_session(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("mcpwrap.as_python.session._MAX_LINE_BYTES", 100)
    with world(tmp_path) as here:
        here.agent.send_line(b"x" * 200)
        here.agent.hang_up()
        assert here.agent.ended_with == "a line is over the limit of 100 bytes"


def test_an_agent_that_reads_no_more_ends_nothing_but_its_replies() -> None:
    reading, writing = os.pipe()
    writer = ReplyWriter(writing)
    writer.write(b"1")
    assert os.read(reading, 10) == b"1\n"
    os.close(reading)
    writer.write(b"2")
    writer.write(b"3")  # without another attempt
    os.close(writing)
