"""Reader of docs/how-to: the files that a page writes, its commands, and the output that it shows.

A block of `sh` is typed, as one script, and a block of `text` below it is what it prints. A block
of anything else is written to a file, whose path the page names above it. Comments in the lines
before a block direct the story; a reader of the page does not see them:

`<!-- file: PATH -->`       the block is written there; a path below /etc belongs to root
`<!-- as: ACCOUNT -->`      another account than alice
`<!-- on: new -->`          the other machine
`<!-- types: TEXT -->`      what the person types at the next prompt; one comment for each
`<!-- opens -->`            the person opens in a browser the https address that is shown
`<!-- carries: FILE... -->` instead of these commands, files of alice's go to the other machine
`<!-- status: N -->`        exit status, if it is not 0
`<!-- until -->`            repeated until it prints that
`<!-- meanwhile -->`        at another terminal, to its end; what follows does not wait for it
`<!-- Ctrl-C -->`           the same, and ended by Ctrl-C when it has printed that; the next
                            command is repeated until then
`<!-- not played: WHY -->`  left to the person
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

PERSON = "alice"
OTHER = "new"  # the machine that is not the first one
ANY = "…"  # any text; as a line of its own, any lines
WITH_VALUE = ("file", "as", "on", "types", "carries", "status", "not played")
WITHOUT_VALUE = ("opens", "until", "meanwhile", "Ctrl-C")
DIRECTIVE = re.compile(rf"<!-- ({'|'.join((*WITH_VALUE, *WITHOUT_VALUE))})(?:: (.+?))? -->")
FENCE = "```"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PROGRESS = re.compile(r"[^\r\n]*\r\x1b\[K")  # a line that the next one replaces


class PageError(ValueError):
    """A block that cannot be played as it stands."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file, and the account that writes it."""

    line: int
    path: str
    text: str
    account: str
    machine: str


@dataclass(slots=True, kw_only=True)
class Command:
    """A block of commands at a terminal. `output` is `None` where the page shows none."""

    line: int
    script: str
    account: str
    machine: str
    typed: tuple[str, ...]
    status: int
    marks: frozenset[str]
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A block that no story plays, and the reason."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Files of alice's that go from the first machine to the other one, by their names."""

    line: int
    names: tuple[str, ...]
    machine: str = OTHER


Step = File | Command | Copies | LeftOut


@dataclass(slots=True)
class _Block:
    """A fenced block, and the comments before it."""

    line: int
    language: str
    text: str
    directives: dict[str, list[str]] = field(default_factory=dict)

    def value(self, name: str, otherwise: str) -> str:
        return self.directives.get(name, [otherwise])[-1]


def read(page: str) -> list[Step]:
    """Return the steps of a page, in order.

    Raises:
        PageError: a block has no part in the play, or a comment is not one of those above.
    """
    steps: list[Step] = []
    for block in _blocks(page):
        if step := _step(block, page):
            steps.append(step)
        else:
            _take_output(block, steps)
    for step in steps:
        if isinstance(step, Command) and step.output is None and step.marks & {"until", "Ctrl-C"}:
            raise PageError(step.line, "waits for an output that the page does not show")
    return steps


def _step(block: _Block, page: str) -> Step | None:
    """Return the step that a block is; `None` for one that is neither typed nor written."""
    step: Step | None = None
    if "not played" in block.directives:
        step = LeftOut(line=block.line, reason=block.value("not played", ""))
    elif "carries" in block.directives:
        step = Copies(line=block.line, names=tuple(block.value("carries", "").split()))
    elif "file" in block.directives:
        step = _file(block, page)
    elif block.language == "sh":
        step = _command(block)
    return step


def _take_output(block: _Block, steps: list[Step]) -> None:
    match block.language, steps[-1:]:
        case "text", [Command(output=None) as command]:
            command.output = block.text
        case "text", [LeftOut()]:
            pass  # the output of what is not played
        case _:
            problem = f"a block of {block.language or 'no language'} is neither typed nor written"
            raise PageError(block.line, f"{problem}: say `file: PATH` or `not played: WHY`")


def _file(block: _Block, page: str) -> File:
    path = block.value("file", "")
    if f"`{path}`" not in "\n".join(page.splitlines()[: block.line - 1]):
        raise PageError(block.line, f"the text above does not name `{path}`")
    account = "root" if path.startswith("/etc/") else block.value("as", PERSON)
    where = block.value("on", "")
    return File(line=block.line, path=path, text=block.text, account=account, machine=where)


def _command(block: _Block) -> Command:
    return Command(
        line=block.line,
        script=block.text,
        account=block.value("as", PERSON),
        machine=block.value("on", ""),
        typed=tuple(block.directives.get("types", ())),
        status=int(block.value("status", "0")),
        marks=frozenset(block.directives.keys() & set(WITHOUT_VALUE)),
    )


def _blocks(page: str) -> Iterator[_Block]:
    block: _Block | None = None
    directives: dict[str, list[str]] = {}
    for number, line in enumerate(page.splitlines(), start=1):
        if block and line == FENCE:
            yield block
            block, directives = None, {}
        elif block:
            block.text += f"{line}\n"
        elif line.startswith(FENCE):
            block = _Block(number, line.removeprefix(FENCE), "", directives)
        elif line.startswith("<!--"):
            name, value = _directive(number, line)
            directives.setdefault(name, []).append(value)
        elif directives:
            raise PageError(number, "the comment before this line is not before a block")
    if block:
        raise PageError(block.line, "the block has no end")


def _directive(number: int, line: str) -> tuple[str, str]:
    found = DIRECTIVE.fullmatch(line)
    if not found or (found[1] in WITHOUT_VALUE) != (found[2] is None):
        raise PageError(number, f"not a comment that the reader knows: {line}")
    return found[1], found[2] or ""


def pattern_of(expected: str) -> str:
    """Return the expression for what a page shows, which matches the whole of an output.

    Runs of spaces are as one: columns are as wide as the names in them.
    """
    return "".join(_line_pattern(line) for line in expected.splitlines()) + r"\s*"


def _line_pattern(line: str) -> str:
    if line.strip() == ANY:
        return r"(?:[^\n]*\n)*?"
    words = [re.escape(word) for word in line.split()]
    return r"[^\S\n]*" + r"[^\S\n]+".join(words).replace(re.escape(ANY), r"[^\n]*?") + r"[^\S\n]*\n"


def is_shown(expected: str, output: str) -> bool:
    """Return whether an output is what the page shows."""
    return re.fullmatch(pattern_of(expected), plain(output)) is not None


def plain(output: str) -> str:
    """Return what a terminal has shown as lines, each with its end, and without colours."""
    text = PROGRESS.sub("", COLOUR.sub("", output).replace("\r\n", "\n"))
    lines = text.strip("\n").splitlines()
    return "".join(f"{line}\n" for line in lines)
