"""Preview as an approver reads it."""

import msgspec
import pytest

from mcpwrap.core.approval.views.preview import (
    MAX_COUNT_BYTES,
    MAX_PREVIEW_BYTES,
    MAX_TEXT_BYTES,
    Preview,
    decode,
    encode,
    shown_preview,
)
from mcpwrap.core.approval.views.shown_arguments import MAX_EDIT_LINES
from tests.unit.core.approval.questions import question

CALL = question({"name": "write", "arguments": {"content": "a\nB\n", "n": 1}})


@pytest.mark.parametrize(
    ("preview", "note", "lines"),
    [
        (Preview(tool="t", problem="no\x1b"), "nothing was read: no\\x1b", []),
        (Preview(tool="t", text="x\ny"), "text, 2 lines, 3 characters", [" x", " y"]),
        (
            Preview(tool="t", text="17", count="SELECT count(*) FROM t"),
            "rows that are counted by SELECT count(*) FROM t",
            [" 17"],
        ),
        (
            Preview(tool="t", text="a\nb\n", compare="content"),
            "what content changes",
            ["@@ -1,3 +1,3 @@", " a", "-b", "+B", " "],
        ),
        (Preview(tool="t", text="a\nB\n", compare="content"), "content is the same", []),
        (
            Preview(tool="t", text="a", compare="n"),
            "the call has no text n to compare it with",
            [],
        ),
    ],
)
def test_what_is_shown(preview: Preview, note: str, lines: list[str]) -> None:
    shown = shown_preview(decode(encode(preview)), CALL)
    assert shown.note == note
    assert [line.sign + line.text for line in shown.lines] == lines


@pytest.mark.parametrize(
    ("old", "new", "note", "lines"),
    [
        (r"a\u200b", "a\u200b", "what content changes; escaped", [r"-a\\u200b", r"+a\u200b"]),
        ("a\t", r"a\t", "what content changes; escaped", [r"-a\t", r"+a\\t"]),
        (r"a\t", r"a\n", "what content changes", [r"-a\t", r"+a\n"]),
        ("a\t", "a\t", "content is the same", []),
    ],
)
def test_both_texts_are_escaped_or_neither(old: str, new: str, note: str, lines: list[str]) -> None:
    call = question({"name": "write", "arguments": {"content": new}})
    shown = shown_preview(Preview(tool="t", text=old, compare="content"), call)
    assert shown.note == note
    assert [line.sign + line.text for line in shown.lines if line.sign != "@"] == lines


def test_a_long_text_is_not_compared() -> None:
    shown = shown_preview(Preview(tool="t", text="x\n" * MAX_EDIT_LINES, compare="content"), CALL)
    assert shown.note.startswith("too long to be compared with content: text, 1000 lines")
    assert not shown.is_diff


def test_the_longest_texts_of_others_leave_room_for_the_names_of_root() -> None:
    longest = Preview(tool="t", text="\x01" * MAX_TEXT_BYTES, count="\x01" * MAX_COUNT_BYTES)
    assert len(encode(longest)) + 64 * 1024 < MAX_PREVIEW_BYTES


def test_another_version_is_an_error() -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(b'{"tool":"t","x":1}')
