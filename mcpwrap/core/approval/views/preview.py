"""Preview of a call: what a read-only tool of its server returned before a person was shown it.

Root names the tool. The text is the server's: it is no part of what is approved.
"""

import msgspec

from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.views.shown_arguments import (
    MAX_EDIT_LINES,
    DiffLine,
    diff,
    lines_alike,
    text_lines,
)
from mcpwrap.core.text.sanitise import one_line

MAX_TEXT_BYTES = 64 * 1024
MAX_COUNT_BYTES = 8 * 1024  # of the query, which has the agent's condition
MAX_PREVIEW_BYTES = 8 * MAX_TEXT_BYTES  # as JSON, where a byte may take six; the rest is root's


class Preview(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text that a tool returned, or why there is none."""

    tool: str
    at: float = 0.0  # seconds since 1970
    text: str = ""
    problem: str = ""
    compare: str = ""  # argument of the call that is the new text
    count: str = ""  # query that counts rows


class ShownPreview(msgspec.Struct, frozen=True):
    """Preview as an approver reads it: what it is, and its lines."""

    note: str
    lines: tuple[DiffLine, ...]
    is_diff: bool = False


def encode(preview: Preview) -> bytes:
    """Return the bytes that a session's process sends."""
    return msgspec.json.encode(preview)


def decode(text: bytes) -> Preview:
    """Return a preview.

    Raises:
        msgspec.MsgspecError: it is malformed, or of another version.
    """
    return msgspec.json.decode(text, type=Preview)


def shown_preview(preview: Preview, question: Question) -> ShownPreview:
    """Return a preview without hidden characters."""
    if preview.problem:
        return ShownPreview(f"nothing was read: {one_line(preview.problem)}", ())
    if preview.compare:
        return _compared(preview, question)
    note, lines = text_lines(preview.text)
    what = f"rows that are counted by {one_line(preview.count)}" if preview.count else note
    return ShownPreview(what, tuple(DiffLine(" ", line) for line in lines))


def _compared(preview: Preview, question: Question) -> ShownPreview:
    arguments = question.params.get("arguments")
    new = arguments.get(preview.compare) if isinstance(arguments, dict) else None
    name = one_line(preview.compare)
    if not isinstance(new, str):
        return ShownPreview(f"the call has no text {name} to compare it with", ())
    escaped, one, two = lines_alike(preview.text, new)
    if len(one) + len(two) > MAX_EDIT_LINES:
        note, lines = text_lines(preview.text)
        note = f"too long to be compared with {name}: {note}"
        return ShownPreview(note, tuple(DiffLine(" ", line) for line in lines))
    if preview.text == new:
        return ShownPreview(f"{name} is the same", (), is_diff=True)
    return ShownPreview(f"what {name} changes{escaped}", tuple(diff(one, two, 3)), is_diff=True)
