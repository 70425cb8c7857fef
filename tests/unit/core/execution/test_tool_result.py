"""Result of the tool: its parts, and their limits."""

import base64
import json
import struct
from typing import Any

import msgspec
import pytest

from mcpwrap.core.execution import tool, tool_result
from mcpwrap.core.execution.tool_result import RunFile
from mcpwrap.core.wire.execution.execute_api import ExecuteResult

RESULT = ExecuteResult(
    stdout="1\n", stderr="", exit_code=0, error=None, truncated=False, duration_ms=12, killed=False,
    value="3", peak_memory_bytes=1000, cpu_ms=5, run="00ff", timeout=60,
)  # fmt: skip
SEED_KEYS = ["stdout", "stderr", "exit_code", "error", "truncated", "duration_ms", "killed"]
NEW = "2026-07-28"


def png(width: int = 10, height: int = 10, size: int = 100) -> bytes:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return head.ljust(size, b"\0")


def out(name: str, content: bytes | None, uri: str | None = "run://x/y") -> RunFile:
    return RunFile(name=name, size=len(content or b""), uri=uri, content=content)


def success(*files: RunFile, hint: str = "", revision: str = NEW) -> dict[str, Any]:
    return tool_result.success(RESULT, files, hint, revision)


def test_the_text_is_the_json_of_the_seed_and_more() -> None:
    found = success()
    [text] = found["content"]
    structured = json.loads(text["text"])
    assert list(structured)[:7] == SEED_KEYS
    assert structured == found["structuredContent"]
    assert structured == {
        "stdout": "1\n", "stderr": "", "exit_code": 0, "error": None, "truncated": False,
        "duration_ms": 12, "killed": False, "value": "3", "files": [], "peak_memory": 1000,
        "cpu_ms": 5, "run": "00ff", "ending": "exit", "timeout": 60,
    }  # fmt: skip
    assert found["isError"] is False


def test_unknown_memory_is_null_and_a_hint_is_there_if_any() -> None:
    unknown = msgspec.structs.replace(RESULT, peak_memory_bytes=0)
    found: Any = tool_result.structured_content(unknown, (), "look")
    assert (found["peak_memory"], found["hint"]) == (None, "look")


def test_the_output_schema_describes_each_key() -> None:
    schema: Any = tool.OUTPUT_SCHEMA
    found: Any = tool_result.structured_content(RESULT, [out("a", b"x")], "look")
    assert found.keys() == schema["properties"].keys()
    item = schema["properties"]["files"]["items"]
    assert found["files"][0].keys() == item["properties"].keys() == set(item["required"])
    assert set(schema["required"]) == found.keys() - {"hint"}


@pytest.mark.parametrize(
    ("content", "is_shown", "description"),
    [
        (png(), True, None),
        (png(1568, 1568), True, None),
        (png(1569, 10), False, "image, not shown: 1569\u00d710 px, 100 bytes"),
        (png(size=256 * 1024), True, None),
        (png(size=256 * 1024 + 1), False, "image, not shown: 10\u00d710 px, 262145 bytes"),
        (b"no image", False, None),
    ],
)
def test_an_image_of_moderate_size_is_shown(
    content: bytes, *, is_shown: bool, description: str | None
) -> None:
    _, part = success(out("plot.png", content))["content"]
    if is_shown:
        data = base64.b64encode(content).decode()
        assert part == {"type": "image", "data": data, "mimeType": "image/png"}
    else:
        assert (part["type"], part["name"]) == ("resource_link", "plot.png")
        assert part.get("description") == description


def test_eight_images_are_shown_and_the_rest_are_links() -> None:
    parts = success(*(out(f"{n}.png", png()) for n in range(10)))["content"]
    assert [part["type"] for part in parts] == ["text", *["image"] * 8, *["resource_link"] * 2]


def test_no_base64_is_in_text_or_structured_content() -> None:
    found = success(out("plot.png", png()))
    data = base64.b64encode(png()).decode()
    assert data not in found["content"][0]["text"]
    assert data not in json.dumps(found["structuredContent"])


def test_a_file_that_was_not_kept_is_listed_without_a_link() -> None:
    found = success(out("big.bin", None, uri=None))
    assert [part["type"] for part in found["content"]] == ["text"]
    assert found["structuredContent"]["files"] == [
        {"name": "big.bin", "uri": None, "size": 0, "mimeType": "application/octet-stream"}
    ]


def test_old_revisions_have_neither_links_nor_structured_content() -> None:
    found = success(out("a.csv", b"x"), out("b.png", png()), revision="2025-03-26")
    assert [part["type"] for part in found["content"]] == ["text", "image"]
    assert "structuredContent" not in found


def test_a_failure_is_text() -> None:
    assert tool_result.failure("no") == {
        "content": [{"type": "text", "text": "no"}], "isError": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\ufffd" * 100, "\ufffd" * 100),  # 100 bytes at the worker, which are no UTF-8
        ("x" * 428, "x" * 428),  # the worker's line about its own cut has room
        ("x" * 429, f"{'x' * 25}\n[329 bytes left out]\n{'x' * 75}"),
        ("é" * 300, f"{'é' * 12}\n[502 bytes left out]\n{'é' * 37}"),  # no half of a character
    ],
)
def test_output_over_the_limit_is_cut(text: str, expected: str) -> None:
    assert tool_result.cut(text, 100) == expected
