"""`make proofs`: each promise of the pages below, its stories, and their tiers."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.system.support.tiers import ALL, FAST

TOP = Path(__file__).resolve().parents[3]
SYSTEM = TOP / "tests/system"
# Their tables with a last column "stories" are promises; docs/proofs.md has all stories.
PAGES = ("SECURITY.md", "docs/proofs.md")
STORY = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    """Row of a table: a promise, and the stories that prove it."""

    page: str
    line: int
    promise: str
    stories: tuple[str, ...]


def rows(page: str) -> Iterator[Row]:
    """Return the rows of the tables of promises of a page, without their heads."""
    yield from of_text(page, (TOP / page).read_text())


def of_text(page: str, text: str) -> Iterator[Row]:
    """Return the rows of the tables of promises of a text."""
    lines = text.splitlines()
    has_stories = False
    for number, line in enumerate(lines, start=1):
        promise, _, stories = line.strip("| ").rpartition(" | ")
        if number < len(lines) and lines[number].startswith("|---"):
            has_stories = stories == "stories"
        elif has_stories and line.startswith("|") and not line.startswith("|---"):
            yield Row(page, number, promise, tuple(STORY.findall(stories)))


def all_rows() -> list[Row]:
    """Return the rows of all pages."""
    return [row for page in PAGES for row in rows(page)]


def written_stories() -> set[str]:
    """Return each test function of tests/system, as `ROOM/test_FILE.py::test_NAME`."""
    return {
        f"{path.relative_to(SYSTEM)}::{node.name}"
        for path in SYSTEM.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def collected_cases(tier: str) -> set[str]:
    """Return the ids of the cases that pytest runs in a tier.

    Raises:
        RuntimeError: pytest cannot collect them, with its output.
    """
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", f"--tier={tier}", str(SYSTEM)]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr)[-3000:])
    return {line for line in done.stdout.splitlines() if line.startswith("tests/system/")}


def collected_stories(tier: str) -> set[str]:
    """Return the stories that pytest runs in a tier, whatever the release."""
    cases = collected_cases(tier)
    return {case.removeprefix("tests/system/").partition("[")[0] for case in cases}


def main() -> None:
    """Print the table."""
    fast = collected_stories(FAST)
    listed = all_rows()
    for row in listed:
        print(f"{row.page}:{row.line}: {row.promise}")
        for story in row.stories:
            print(f"    {FAST if story in fast else ALL:4}  {story}")
    stories = {story for row in listed for story in row.stories}
    without = [row for row in listed if not fast.intersection(row.stories)]
    print(
        f"{len(listed)} rows, {len(stories)} stories, {len(stories & fast)} of them in `make test`;"
        f" {len(without)} rows without one there"
    )


if __name__ == "__main__":
    main()
