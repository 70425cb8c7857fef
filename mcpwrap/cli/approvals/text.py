"""Text of pending approvals: complete, and escaped so that it cannot control the terminal."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from rich.cells import chop_cells
from rich.text import Text

from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.views.preview import shown_preview
from mcpwrap.core.approval.views.rendering import difference
from mcpwrap.core.approval.views.shown_arguments import (
    CHANGED,
    DECIDING,
    DiffLine,
    ShownArgument,
    shown_arguments,
)
from mcpwrap.core.pins import changes_text, pin_question
from mcpwrap.core.pins.changes_text import ChangeLine
from mcpwrap.core.protocol.confusable_names import told_apart
from mcpwrap.core.protocol.jsonrpc import without
from mcpwrap.core.protocol.methods import TOOLS_CALL
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Paused, Pending
from mcpwrap.gate_client.approvals import QuestionDetails
from mcpwrap.linux import accounts, tty

ALONE = "This is shown from the arguments alone: what the server has now was not read."
ON = "↪ "  # marks a continued line: no text of an agent begins at the left edge without it
PIPE_WIDTH = 2**20  # no line is folded if standard output is not a terminal
_LABEL: tty.Style = "bold"
_STYLES: dict[str, tty.Style] = {"+": "green", "-": "red", "@": "cyan"}
_CHANGE_STYLES: dict[str, tty.Style] = {
    "heading": "bold",
    "path": "cyan",
    "warning": "yellow",
    "added": "green",
    "removed": "red",
    "left out": "dim",
}
_MAX_CELL_CHARS = 40


class PageLine(NamedTuple):
    """One line of a page."""

    text: str
    style: tty.Style | None = None

    @property
    def styles(self) -> tuple[tty.Style, ...]:
        """Return the style as arguments of `tty.styled`."""
        return (self.style,) if self.style else ()


def agent(uid: int) -> str:
    """Return the account's name, or its number."""
    return accounts.name_of(uid) or str(uid)


def cell(text: str) -> str:
    """Return a text for a column, cut to 40 characters; `show` prints all of it."""
    seen = one_line(text)
    return seen if len(seen) <= _MAX_CELL_CHARS else f"{seen[: _MAX_CELL_CHARS - 1]}…"


def tool_of(one: Pending | Question) -> str:
    """Return the tool of a request, another method with its URI or prompt, or a count of changes.

    The gate lists targets in ASCII; a document has them as the agent wrote them.
    """
    target = told_apart(one.target)
    if one.method == pin_question.METHOD:
        return f"definitions: {target}"
    return target if one.method == TOOLS_CALL else f"{one.method} {target}".rstrip()


def span(seconds: float) -> str:
    """Return a duration as text."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m {whole % 60:02}s"


def moment(at: float) -> str:
    """Return a time of day in the time zone of this machine."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")


def expiry(one: Pending) -> str:
    """Return the time of day until which a request waits, or "never"."""
    return moment(one.expires_at) if one.expires_at else "never"


def pause(one: Paused) -> str:
    """Return the line about an agent that is paused."""
    why = one_line(one.why).removeprefix("paused: ")
    who = one_line(f"{agent(one.agent_uid)} on {one.server}")
    return f"paused: {who} until {moment(one.until)}, {why}"


def page(pending: Pending, seen: QuestionDetails) -> list[PageLine]:
    """Return the page of one request, complete.

    What an approval is bound to is taken from the document, and never from the list.
    """
    if seen.question.method == pin_question.METHOD:
        return _definitions_page(pending, seen)
    return [*_head(pending, seen), *_details(pending, seen), *_body(pending, seen)]


def page_of_pane(pending: Pending, seen: QuestionDetails) -> list[PageLine]:
    """Return the same page with its details last: the first lines of a low pane are read first."""
    if seen.question.method == pin_question.METHOD:
        return _definitions_page(pending, seen)
    details = [PageLine(""), *_details(pending, seen)]
    return [*_head(pending, seen), *_body(pending, seen), *details]


def _head(pending: Pending, seen: QuestionDetails) -> list[PageLine]:
    question = seen.question
    about = {
        "id": pending.id,
        "agent": f"{agent(question.agent_uid)} (UID {question.agent_uid})",
        "server": f"{question.server}, session {pending.session}",
        "tool": tool_of(question),
        "rule": f"{pending.rule}: {pending.message}" if pending.message else pending.rule,
    }
    return _about_lines(about)


def _details(pending: Pending, seen: QuestionDetails) -> list[PageLine]:
    held = (
        f"{pending.waiting} wait for the answer" if pending.waiting else "no session waits any more"
    )
    often = "once" if pending.times == 1 else f"{pending.times} times"
    about = {
        "asked": f"{often}, first at {moment(pending.asked_at)}; {held}",
        "expires": expiry(pending),
        "size": f"{seen.size} bytes",
        "sha256": seen.digest,
    }
    return _about_lines(about)


def _body(pending: Pending, seen: QuestionDetails) -> list[PageLine]:
    return [
        *([PageLine(CHANGED, "yellow")] if seen.question.definition else []),
        *argument_lines(pending, seen.question),
        PageLine(""),
        *preview_lines(seen),
        *_changed(seen),
    ]


def _about_lines(about: Mapping[str, str]) -> list[PageLine]:
    return [PageLine(f"{name:8} {one_line(text)}") for name, text in about.items()]


def _definitions_page(pending: Pending, seen: QuestionDetails) -> list[PageLine]:
    """Return the page of the question on the definitions of a server that are held back."""
    question = seen.question
    about = {
        "id": pending.id,
        "server": question.server,
        "changes": tool_of(question),
        "listed": f"for {agent(question.agent_uid)}, first at {moment(pending.asked_at)}",
        "sha256": seen.digest,
    }
    changes = pin_question.changes_in(question)
    return [*_about_lines(about), PageLine(""), *change_page(changes_text.change_lines(changes))]


def change_page(lines: Iterable[ChangeLine]) -> list[PageLine]:
    """Return changes of definitions as lines of a page."""
    return [PageLine(line.marked, _CHANGE_STYLES.get(line.of)) for line in lines]


def argument_lines(pending: Pending, question: Question) -> list[PageLine]:
    """Return all arguments of a request: those that the rules are about, and the others."""
    has_more = bool(without(question.params, "_meta", "name", "arguments"))
    parts = shown_arguments(question, pending.deciding)
    deciding = [part for part in parts if part.is_deciding]
    others = [part for part in parts if not part.is_deciding]
    lines = [PageLine(""), PageLine(DECIDING, _LABEL)] if deciding else []
    lines += [line for part in deciding for line in _part_lines(part)]
    if others or not deciding:
        title = "params" if has_more else "other arguments" if deciding else "arguments"
        lines += [PageLine(""), PageLine(title, _LABEL)]
    lines += [line for part in others for line in _part_lines(part)]
    return lines if parts else [*lines, PageLine("  none")]


def _part_lines(part: ShownArgument) -> list[PageLine]:
    first, *rest = part.plain
    styles = [_STYLES.get(line.sign) for line in part.lines] if part.is_edit else [None] * len(rest)
    return [
        PageLine(f"  {first}"),
        *(PageLine(f"  {text}", style) for text, style in zip(rest, styles, strict=True)),
    ]


def preview_lines(seen: QuestionDetails) -> list[PageLine]:
    """Return what a tool of the server returned before, or that nothing was read."""
    preview = seen.preview
    if preview is None:
        return [PageLine(ALONE)]
    shown = shown_preview(preview, seen.question)
    if preview.problem:
        return [PageLine(ALONE), PageLine(f"{one_line(preview.tool)}: {shown.note}")]
    read = f"read by {one_line(preview.tool)} at {moment(preview.at)}: {shown.note}"
    return [
        PageLine(read, _LABEL),
        *(
            PageLine(
                f"  │ {line.sign + ' ' if shown.is_diff else ''}{line.text}", _STYLES.get(line.sign)
            )
            for line in shown.lines
        ),
    ]


def _changed(seen: QuestionDetails) -> list[PageLine]:
    if seen.before is None:
        return [PageLine(""), PageLine("No call of this tool was approved before.", _LABEL)]
    lines = [PageLine(""), PageLine("compared with the last approved call of this tool", _LABEL)]
    if seen.before.definition != seen.question.definition:
        lines.append(PageLine("The server has changed the tool's description since.", "yellow"))
    found = difference(seen.before, seen.question)
    lines += [PageLine(_marked(line), _STYLES.get(line.sign)) for line in found]
    return lines if found else [*lines, PageLine("  the same arguments")]


def _marked(line: DiffLine) -> str:
    gap = "" if line.sign == "@" else " "
    return f"{line.sign}{gap}{line.text}"


def pieces(lines: list[PageLine], width: int) -> Iterator[PageLine]:
    """Yield lines for a terminal of this width. A continued line is marked."""
    for line in lines:
        first, *more = chop_cells(line.text, width) or [""]
        rest = chop_cells("".join(more), width - len(ON)) if more else []
        yield line._replace(text=first)
        yield from (line._replace(text=ON + piece) for piece in rest)


def folded(lines: list[PageLine], width: int) -> Text:
    """Return the lines for this width as one text."""
    text = Text(no_wrap=True)
    for line in pieces(lines, width):
        text.append(f"{line.text}\n", line.style)
    return text
