"""Rules for wording, as a part of `make check`: banned phrases, and long paragraphs."""

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.project.imports import TOP
from tests.project.language import prose
from tests.project.language.prose import Text
from tests.project.names import Breach, report

MAX_LINES = 6  # of a paragraph: one subject
SHORT = ("README.md", "docs/how-to/")  # whose paragraphs are short
HEADING = "## Words that are not used"
ROW = re.compile(r"\| `([^`]+)` \| (.+?) \|")
CODE = re.compile(r"```.*?```|``[^`]*``|`[^`\n]*`|^ {4,}\S.*$", re.DOTALL | re.MULTILINE)
# Which quote what is not used, or record what was.
EXEMPT = ("docs/glossary.md", "CHANGELOG.md", "packaging/debian/changelog")


@cache
def banned(glossary: Path) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the phrases of the glossary's table as patterns, each with what is written instead."""
    _, _, section = glossary.read_text().partition(HEADING)
    return tuple(
        (re.compile(rf"\b(?:{spaces(phrase)})\b", re.IGNORECASE), instead)
        for phrase, instead in ROW.findall(section.replace("\\|", "|"))
    )


def spaces(phrase: str) -> str:
    """Return a pattern whose spaces match the end of a line, too."""
    return phrase.replace(" ", r"\s+")


def words(texts: Iterable[Text], glossary: Path) -> Iterator[Breach]:
    """Return each use of a phrase that is not used; code in backquotes is not prose."""
    for text in texts:
        if text.file in EXEMPT:
            continue
        plain = CODE.sub(lambda match: re.sub(r"[^\n]", "_", match.group()), text.text)
        for pattern, instead in banned(glossary):
            for match in pattern.finditer(plain):
                line = text.line + plain.count("\n", 0, match.start())
                found = " ".join(match.group().split())
                yield Breach(text.file, line, f"{found!r} is not used", f"write {instead}")


def long_paragraphs(texts: Iterable[Text]) -> Iterator[Breach]:
    """Return the paragraphs of the pages for newcomers that are too long."""
    for text in texts:
        if text.kind == "document" and text.file.startswith(SHORT):
            for first, count in paragraphs(text.text):
                if count > MAX_LINES:
                    problem = f"a paragraph of {count} lines, and {MAX_LINES} are the most"
                    yield Breach(text.file, first, problem, "divide it, or make it a list")


def paragraphs(document: str) -> Iterator[tuple[int, int]]:
    """Return first line and length of each paragraph and list item of a Markdown document."""
    first, count, in_code = 0, 0, False
    for number, line in enumerate([*document.splitlines(), ""], start=1):
        is_fence = line.lstrip().startswith("```")
        in_code ^= is_fence
        is_item = re.match(r"\s*(?:[-*]|\d+\.) ", line) is not None
        is_text = bool(line.strip()) and not (
            is_fence or in_code or line.startswith(("|", "#", "<"))
        )
        if count and (not is_text or is_item):
            yield first, count
            count = 0
        if is_text:
            first, count = (first, count + 1) if count else (number, 1)


def main(argv: list[str]) -> int:
    """Exit status: 0 no breach; 1 breaches, which are printed. Arguments are paths to search."""
    texts = [text for text in prose.read(TOP) if not argv or text.file.startswith(tuple(argv))]
    found = sorted({*words(texts, TOP / "docs/glossary.md"), *long_paragraphs(texts)})
    return report(found, f"wording, in {len(texts)} texts")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
