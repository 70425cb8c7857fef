"""Question of `mcpwrap run` on a terminal that it shares with agent and server.

No text that they chose begins at the left edge: it could pass for the end of the question.
"""

from collections.abc import Iterator

from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.entry import QueuedApproval
from mcpwrap.core.approval.views.shown_arguments import (
    CHANGED,
    DECIDING,
    ShownArgument,
    shown_arguments,
)
from mcpwrap.core.protocol.confusable_names import told_apart
from mcpwrap.core.text.rows import continued, rows
from mcpwrap.core.text.sanitise import one_line

CHANGED_SINCE = "The server has changed this tool since you last approved a call of it."
_MARK = "    "


def question_rows(
    entry: QueuedApproval, asked: Question, before: Question | None, columns: int
) -> list[str]:
    """Return the question; `before` is the last approved call of the tool."""
    about = entry.about
    heading = f"mcpwrap: approval {entry.id} of {asked.server}: {told_apart(asked.target)}"
    message = f": {about.message}" if about.message else ""
    lines = [f"rule {about.rule}{message}", *_changes(asked, before)]
    parts = shown_arguments(asked, about.fixed.deciding)
    lines += _arguments(parts) if parts else ["no arguments"]
    return [
        *continued(one_line(heading), columns, _MARK),
        *(row for line in lines for row in rows(one_line(line), columns, _MARK)),
        f"mcpwrap: approve {entry.id}? The agent runs under your account, too. [y/n]",
    ]


def _changes(asked: Question, before: Question | None) -> Iterator[str]:
    if before is not None and before.definition != asked.definition:
        yield CHANGED_SINCE
    elif asked.definition:
        yield CHANGED


def _arguments(parts: list[ShownArgument]) -> Iterator[str]:
    """Yield the lines of all arguments, under titles if some of them decide."""
    has_titles = any(part.is_deciding for part in parts)
    title = ""
    for part in parts:
        its = DECIDING if part.is_deciding else "other arguments"
        if has_titles and its != title:
            title = its
            yield f"{title}:"
        yield from (f"  {line}" for line in part.plain)
