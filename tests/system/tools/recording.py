"""Recording of a report as SVG, in the colours of a terminal, for a page of documents."""

import io
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text as Styled

TOP = Path(__file__).resolve().parents[3]
COLUMNS = 100
MOST_LINES = 60  # what a page shows without scrolling for long
WIDTH = 50  # of the left column
# Fonts of the reader's machine: a picture in a page requests nothing from another host.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
REFUSALS = re.compile(r"[Rr]efused|403|FOUND|denied|read-only")


@dataclass(frozen=True)
class Text:
    """Line of text; a title is emphasized."""

    text: str = ""
    is_title: bool = False

    def __str__(self) -> str:
        return self.text

    def styled(self) -> Styled:
        """Return the line with its colour."""
        return Styled(self.text, "bold cyan" if self.is_title else "")


@dataclass(frozen=True)
class Fact:
    """Line of two columns: what was tried, and what was seen."""

    what: str
    seen: str

    def __str__(self) -> str:
        return f"  {self.what:<{WIDTH}} {self.seen}"

    def styled(self) -> Styled:
        """Return the line with its colours; a refusal has another one than a success."""
        colour = "yellow" if REFUSALS.search(self.seen) else "green"
        return Styled.assemble(f"  {self.what:<{WIDTH}} ", (self.seen, colour))


Line = Text | Fact


def svg(title: str, lines: Sequence[Line]) -> str:
    """Return the lines as a picture of a terminal; a long line is cut, and ends in `…`.

    Raises:
        SystemExit: there are too many lines, or one has a name or path of this machine.
    """
    if len(lines) > MOST_LINES:
        message = f"{len(lines)} lines, and {MOST_LINES} are the most"
        raise SystemExit(message)
    for private in (str(TOP), socket.gethostname()):
        if any(private in str(line) for line in lines):
            message = f"a line has {private!r}, which is of this machine"
            raise SystemExit(message)
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    for line in lines:
        console.print(line.styled(), no_wrap=True, overflow="ellipsis")
    # A prefix of classes. By default it is a hash of the text, and changes with each word.
    picture = console.export_svg(
        title=title, theme=DIMMED_MONOKAI, code_format=FORMAT, unique_id="demo"
    )
    return "\n".join(line.rstrip() for line in picture.splitlines()) + "\n"
