"""`make facts AGAINST=COMMIT`: facts in the prose of that commit that are not in this tree's.

A fact is a number with its unit, a source (RFC, man page, version, URL, specification), or, in
documents, a piece of code: an option, a setting, a path, a story. A fact that is not in the same
file any more but anywhere else in the prose of the tree has moved; any other is lost.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.project.imports import TOP
from tests.project.language import prose
from tests.project.language.prose import DOCUMENTS, Text

UNITS = (
    r"ns|µs|us|ms|s|seconds?|min|minutes?|hours?|days?|weeks?|months?|years?|bytes?|[KMGT]i?B|[KMGT]|bits?|%"
    r"|times|MB/s|/s|/min|/h|characters|columns|lines|entries|processes|descriptors|sessions|messages"
)
NUMBER = re.compile(rf"(?<![\w.#-])(\d[\d   ]*\d|\d)(?:\.\d+)?(?:[  -]?({UNITS}))?(?![\w])")
SOURCE = re.compile(
    r"RFC \d+(?:,? (?:section|appendix) [\dA-Z][\d.]*\d?)?"
    r"|CVE-\d+-\d+|ECMA-\d+|SEP-\d+|UAX ?#?\d+|FIPS \d+"
    r"|\b[a-z][\w.+@-]*\(\d[a-z]?\)|https?://[\w./#?=&%~+-]*[\w/]"
    r"|\b(?:systemd|Linux|kernel|Python|Squid|Debian|nftables|Node|npm|glibc|OpenSSL) v?\d[\w.]*\b"
)
CODE = re.compile(r"``((?:[^`\n]|\n(?!\n))+)``|`((?:[^`\n]|\n(?!\n))+)`")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, order=True)
class Fact:
    """Fact of one kind: "number", "source" or "code"."""

    kind: str
    text: str


def facts(text: Text) -> set[Fact]:
    """Return the facts of a piece of prose."""
    plain = " ".join(text.text.split())
    found = {Fact("source", match.group()) for match in SOURCE.finditer(plain)}
    for match in NUMBER.finditer(SOURCE.sub(" ", plain)):
        figure = re.sub(r"[   ](?=\d)", "", match.group())
        if match.group(2) or len(re.sub(r"\D", "", figure)) > 1:
            found.add(Fact("number", re.sub(r"[  -]", " ", figure)))
    if text.kind == "document":
        for match in CODE.finditer(FENCED.sub("", text.text)):
            found.add(Fact("code", " ".join((match.group(1) or match.group(2)).split())))
    return found


def by_file(texts: Iterable[Text]) -> Mapping[str, set[Fact]]:
    """Return the facts of each file."""
    found = defaultdict[str, set[Fact]](set)
    for text in texts:
        found[text.file] |= facts(text)
    return found


@dataclass(frozen=True)
class Comparison:
    """Facts of a tree before: how many, and those moved to other files or lost, by file."""

    count: int
    moved: list[tuple[str, Fact]]
    lost: list[tuple[str, Fact]]


def compare(
    before: Mapping[str, set[Fact]], after: Mapping[str, set[Fact]], documents: str = ""
) -> Comparison:
    """Return the facts that moved to another file, and those that are lost.

    A fact of a document moves to documents alone; code also into an example, so `documents` has
    all their text.
    """
    read = {file for file in after if is_document(file)}
    anywhere, in_documents = _union(after, after.keys()), _union(after, read)
    moved, lost = list[tuple[str, Fact]](), list[tuple[str, Fact]]()
    for file, found in before.items():
        for fact in sorted(found - after.get(file, set())):
            there = in_documents if is_document(file) else anywhere
            is_example = fact.kind == "code" and fact.text in documents
            (moved if is_example or fact in there else lost).append((file, fact))
    return Comparison(sum(map(len, before.values())), moved, lost)


def is_document(file: str) -> bool:
    """Return whether a file is one that people read, and not code."""
    return Path(file).suffix in DOCUMENTS


def _union(facts_by_file: Mapping[str, set[Fact]], files: Iterable[str]) -> set[Fact]:
    return {fact for file in files for fact in facts_by_file[file]}


def extract(commit: str, folder: Path) -> None:
    """Write the tree of a commit into a folder."""
    archive = subprocess.run(["git", "-C", TOP, "archive", commit], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", folder], check=True, input=archive.stdout)


def main(argv: list[str]) -> int:
    """Exit status: 0 nothing lost; 1 something is."""
    parser = argparse.ArgumentParser(prog="make facts", description=__doc__)
    parser.add_argument("--against", required=True, metavar="COMMIT")
    parser.add_argument("--moved", action="store_true", help="list what moved, too")
    parser.add_argument("under", nargs="*", help="only files below these paths")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        extract(asked.against, Path(folder))
        before = by_file(prose.read(Path(folder)))
    texts = list(prose.read(TOP))
    documents = " ".join(
        word for one in texts if is_document(one.file) for word in one.text.split()
    )
    chosen = {
        file: found
        for file, found in before.items()
        if not asked.under or any(file.startswith(path) for path in asked.under)
    }
    result = compare(chosen, by_file(texts), documents)
    for word, rows in (("lost", result.lost), ("moved", result.moved if asked.moved else [])):
        for file, fact in rows:
            print(f"{word}\t{file}\t{fact.kind}\t{fact.text}")
    in_documents = sum(is_document(file) for file, _ in result.moved)
    print(
        f"{result.count} facts before: {len(result.lost)} lost, {len(result.moved)} moved "
        f"({in_documents} of them from documents)"
    )
    return 1 if result.lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
