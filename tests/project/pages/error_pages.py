"""`make errors-page`: write docs/mcpwrap-errors.7.rst from the package and docs/errors/*.toml."""

import argparse
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.project.imports import TOP
from tests.project.names import Breach
from tests.project.pages import error_calls
from tests.project.pages.error_calls import NAME, Message, Use

PAGE = "docs/mcpwrap-errors.7.rst"
CATALOGUE = "docs/errors"
KEYS = {"cause", "remedy"}
WIDTH = 110
HEAD = """\
.. Written by `make errors-page` from the errors in mcpwrap/ and from docs/errors/*.toml.

==============
mcpwrap-errors
==============

-----------------------------------------------
named errors of mcpwrap, their causes and fixes
-----------------------------------------------

:Manual section: 7

DESCRIPTION
===========

An error that mcpwrap prints or logs ends its first line with a name in brackets. The line below
it is the fix::

    mcpwrap: WHERE: PROBLEM [E-AREA-THING]
      fix: FIX

The same names are at the end of the reason that an agent's stub prints when it gets no session,
and of the line that a service writes to the journal when it cannot start.

A name stands for one cause with one remedy. It keeps its meaning in later versions, so scripts
and searches can rely on it; the text before it can change.

Below, words in italic capitals stand for what differs from case to case: a value, a path, a
server. *REASON* is the text of the kernel or of another program.

The manual page of each command has its exit statuses, under EXIT STATUS: **mcpwrap**\\(1),
**mcpwrap-connect**\\(1), **mcpwrap-run**\\(1).

ERRORS
======
"""
TAIL = """
SEE ALSO
========

**mcpwrap**\\(1), **mcpwrap-connect**\\(1), **mcpwrap-run**\\(1), **mcpwrap.toml**\\(5),
**mcpwrap-policy**\\(5), **mcpwrap**\\(8)
"""
UNMARKED = str.maketrans("", "", "«»")
# What reStructuredText reads as markup, and what may stand before it and after it.
MARKUP = re.compile(r"([\\*`|_])")
BEFORE, AFTER = " '\"([{<-/:", " '\")]}>-/:.,;!?"
PIECES = re.compile(r"`([^`\n]+)`|«([A-Z0-9-]+)»")


@dataclass(frozen=True)
class Entry:
    """Named error in the catalogue."""

    name: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Section:
    """Catalogue file: its heading, and its errors in the order of their names."""

    file: str
    heading: str
    entries: tuple[Entry, ...]


def section(file: str, source: str) -> Section:
    """Parse a catalogue file; the first sentence of its first comment is the heading.

    Raises:
        ValueError: the file is not TOML, has no such comment, or a table has other keys.
    """
    comment = re.match(r"(?:#.*\n)+", source)
    if comment is None:
        message = f"{file}: begin the file with a comment, which is its heading"
        raise ValueError(message)
    words = " ".join(line.strip("# ") for line in comment[0].splitlines())
    tables = tomllib.loads(source)
    for name, table in tables.items():
        if table.keys() != KEYS or not all(
            isinstance(text, str) and text for text in table.values()
        ):
            message = (
                f"{file}: [{name}] needs a text for `cause` and for `remedy`, and no other key"
            )
            raise ValueError(message)
    entries = (Entry(name, table["cause"], table["remedy"]) for name, table in tables.items())
    heading = re.split(r"\.(?:\s|$)", words, maxsplit=1)[0]
    return Section(file, heading, tuple(sorted(entries, key=lambda entry: entry.name)))


def read(tree: Path) -> list[Section]:
    """Return the catalogue of a tree, file by file.

    Raises:
        ValueError: a file is not a catalogue file.
    """
    paths = sorted((tree / CATALOGUE).glob("*.toml"))
    return [section(path.relative_to(tree).as_posix(), path.read_text()) for path in paths]


def breaches(sections: Sequence[Section], uses: Sequence[Use]) -> Iterator[Breach]:
    """Return the names that are wrong, or in only one of source and catalogue, or there twice."""
    owner: dict[str, str] = {}
    used = {use.name for use in uses}
    for each in sections:
        for entry in each.entries:
            if entry.name in owner:
                problem = f"{entry.name} is in {owner[entry.name]} too"
                yield Breach(each.file, 1, problem, "keep one of the two")
            elif entry.name not in used:
                yield Breach(each.file, 1, f"no error is named {entry.name}", "remove the entry")
            owner.setdefault(entry.name, each.file)
    for use in uses:
        if not NAME.fullmatch(use.name):
            fix = "write E-AREA-THING, in capitals and digits"
            yield Breach(use.file, use.line, f"{use.name!r} is not the name of an error", fix)
        elif use.name not in owner:
            problem = f"{use.name} is not in the catalogue"
            yield Breach(use.file, use.line, problem, f"add it to a file of {CATALOGUE}")


def page(sections: Sequence[Section], uses: Sequence[Use]) -> str:
    """Return the manual page."""
    messages: dict[str, set[Message]] = {}
    for use in uses:
        messages.setdefault(use.name, set()).update(use.messages)
    body = "".join(
        part for each in sections if each.entries for part in _section(each, messages)
    )  # fmt: skip
    return HEAD + body.rstrip("\n") + "\n" + TAIL


def _section(each: Section, messages: Mapping[str, set[Message]]) -> Iterator[str]:
    heading = marked(each.heading)
    yield f"\n{heading}\n{'-' * len(heading)}\n\n"
    for entry in each.entries:
        # An anchor for the site, where a name is looked up by its address.
        yield f".. _{entry.name.lower()}:\n\n**{entry.name}**\n"
        known = sorted(messages.get(entry.name, ()))
        for message in known:
            fix = f" (fix: {message.fix})" if message.fix else ""
            yield _wrapped(f"{message.problem}{fix}", "    - ")
        if known:
            yield "\n"
        yield _wrapped(entry.cause, "    ", "*Cause*: ")
        yield _wrapped(entry.remedy, "    ", "*What to do*: ")


def _wrapped(text: str, indent: str, label: str = "") -> str:
    lines = textwrap.wrap(
        label + marked(" ".join(text.split())),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) + ("\n" if indent.endswith("- ") else "\n\n")


def marked(text: str) -> str:
    """Return a text as reStructuredText: code is literal, placeholders are in italics."""
    joined = ""
    for part, is_markup in _parts(text):
        is_apart = part[0] in AFTER if not is_markup else not joined or joined[-1] in BEFORE
        joined += part if is_apart or not joined else rf"\ {part}"
    return joined


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Return the parts of a text that are not empty, and whether each is markup."""
    end = 0
    for found in PIECES.finditer(text):
        if plain := text[end : found.start()]:
            yield MARKUP.sub(r"\\\1", plain), False
        code, variable = found.groups()
        yield (f"*{variable}*" if variable else f"``{code.translate(UNMARKED)}``"), True
        end = found.end()
    if plain := text[end:]:
        yield MARKUP.sub(r"\\\1", plain), False


def main(argv: list[str]) -> int:
    """Exit status: 0 written, or up to date; 1 breaches, or with `--check` the page is old."""
    parser = argparse.ArgumentParser(prog="make errors-page", description=__doc__)
    parser.add_argument("--tree", type=Path, default=TOP, help="another checkout")
    parser.add_argument("--check", action="store_true", help="write nothing; 1: the page is old")
    options = parser.parse_args(argv)
    sections, uses = read(options.tree), error_calls.read(options.tree)
    found = sorted(breaches(sections, uses))
    for breach in found:
        print(breach, file=sys.stderr)
    path, text = options.tree / PAGE, page(sections, uses)
    if not options.check:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        print(f"{path}: is not of this tree; run `make errors-page`", file=sys.stderr)
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
