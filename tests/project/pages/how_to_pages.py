"""Rules for docs/how-to, as a part of `make check`: each page is played, complete, and listed."""

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.project.imports import TOP
from tests.project.names import Breach, report
from tests.system.how_to.pages import PAGES
from tests.system.support import how_to

FOLDER = "docs/how-to"
INDEX = "README.md"
STORY = "tests/system/how_to/pages.py"
SECTIONS = ("Before you start", "If it does not work", "See also")
MAX_LEFT_OUT = 2  # blocks of a page that no story plays: a download, a browser
MAX_COLUMNS = 100
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def unplayed(tree: Path, played: Collection[str]) -> Iterator[Breach]:
    """Return the pages that no story plays, and the blocks of which that is so without a reason."""
    names = {path.name for path in _pages(tree)} - {INDEX}
    for name in sorted(names - set(played)):
        yield Breach(f"{FOLDER}/{name}", 1, "no story plays this page", f"add it to {STORY}")
    for name in sorted(set(played) - names):
        yield Breach(STORY, 1, f"{FOLDER}/{name} is not there", "remove its row")
    for name in sorted(names):
        yield from _unplayed_blocks(f"{FOLDER}/{name}", (tree / FOLDER / name).read_text())


def _unplayed_blocks(file: str, page: str) -> Iterator[Breach]:
    try:
        steps = how_to.read(page)
    except how_to.PageError as error:
        fix = "see tests/system/support/how_to.py"
        yield Breach(file, error.line, error.problem, fix)
        return
    left_out = [step for step in steps if isinstance(step, how_to.LeftOut)]
    if len(left_out) > MAX_LEFT_OUT:
        problem = f"{len(left_out)} blocks are not played, and {MAX_LEFT_OUT} are the most"
        yield Breach(file, left_out[-1].line, problem, "use what a machine of the bed has")
    if not any(isinstance(step, how_to.Command) and step.output for step in steps):
        yield Breach(file, 1, "no command with its output", "show what a command prints")


def incomplete(tree: Path) -> Iterator[Breach]:
    """Return the pages that lack a section, or that the index does not name."""
    index = (tree / FOLDER / INDEX).read_text()
    for path in _pages(tree):
        if path.name == INDEX:
            continue
        lines = path.read_text().splitlines()
        for section in SECTIONS:
            if f"## {section}" not in lines:
                yield Breach(f"{FOLDER}/{path.name}", 1, f"no section {section!r}", "add it")
        if f"]({path.name})" not in index:
            yield Breach(f"{FOLDER}/{INDEX}", 1, f"{path.name} is not listed", "add a row")


def bad_lines(tree: Path) -> Iterator[Breach]:
    """Return the lines that are too wide, but for tables, and the links that lead nowhere."""
    for path in _pages(tree):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            file = f"{FOLDER}/{path.name}"
            if len(line) > MAX_COLUMNS and not line.startswith("|"):
                problem = f"{len(line)} columns, and {MAX_COLUMNS} are the most"
                yield Breach(file, number, problem, "break the line")
            for link in LINK.findall(line):
                if not (path.parent / link).exists():
                    yield Breach(file, number, f"{link} is not there", "correct the link")


def _pages(tree: Path) -> list[Path]:
    return sorted((tree / FOLDER).glob("*.md"))


def main(tree: Path = TOP, played: Collection[str] = tuple(PAGES)) -> int:
    """Exit status: 0 no breach; 1 each is printed."""
    found = sorted([*unplayed(tree, played), *incomplete(tree), *bad_lines(tree)])
    return report(found, FOLDER)


if __name__ == "__main__":
    sys.exit(main())
