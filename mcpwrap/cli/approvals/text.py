"""Text of pending approvals: complete, and escaped so that it cannot control the terminal."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from rich.cells import chop_cells
from rich.text import Text

from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.rendering import DiffLine, difference, pretty
from mcpwrap.core.pins import changes_text, pin_question
from mcpwrap.core.pins.changes_text import ChangeLine
from mcpwrap.core.protocol.confusable_names import told_apart
from mcpwrap.core.protocol.jsonrpc import without
from mcpwrap.core.protocol.methods import TOOLS_CALL
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Paused, Pending
from mcpwrap.gate_client.approvals import QuestionDetails
from mcpwrap.linux import accounts, tty

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
    """Return the time of day until which a request waits; a question on definitions stays."""
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
    question = seen.question
    if question.method == pin_question.METHOD:
        return _definitions_page(pending, seen)
    rule = f"{pending.rule}: {pending.message}" if pending.message else pending.rule
    held = (
        f"{pending.waiting} wait for the answer" if pending.waiting else "no session waits any more"
    )
    often = "once" if pending.times == 1 else f"{pending.times} times"
    about = {
        "id": pending.id,
        "agent": f"{agent(question.agent_uid)} (UID {question.agent_uid})",
        "server": f"{question.server}, session {pending.session}",
        "tool": tool_of(question),
        "rule": rule,
        "asked": f"{often}, first at {moment(pending.asked_at)}; {held}",
        "expires": moment(pending.expires_at),
        "size": f"{seen.size} bytes",
        "sha256": seen.digest,
    }
    lines = _about_lines(about)
    if question.definition:
        what = "The server has changed this tool since it first listed it."
        lines.append(PageLine(what, "yellow"))
    return [*lines, *_argument_lines(question), *_changed(seen)]


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


def _argument_lines(question: Question) -> list[PageLine]:
    has_more = without(question.params, "_meta", "name", "arguments")
    title = PageLine("params" if has_more else "arguments", _LABEL)
    return [PageLine(""), title, *(PageLine(f"  {line}") for line in pretty(question).split("\n"))]


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
