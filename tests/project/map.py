"""`make map`: figures of the tree's rooms, names and imports, and the drawings in docs/."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from tests.project import imports, sources
from tests.project.drawing import drawn
from tests.project.figures import lines, measured
from tests.project.imports import TOP, Imports
from tests.project.sources import PACKAGE, Module

DOCS = "docs"
# A drawing shows the children of a package.
DRAWINGS = {"rooms.svg": PACKAGE, "rooms-core.svg": f"{PACKAGE}.core"}
# Packages whose first lines name a thing.
FOLDERS = (PACKAGE, "tests", "benchmarks", "packaging")


def drawings(modules: list[Module], found: Imports) -> dict[str, str | None]:
    """Return the drawings by the names of their files; None of a package without folders."""
    return {
        file: drawn(package, modules, found.pairs, found.layers)
        for file, package in DRAWINGS.items()
    }


def outdated(wanted: Mapping[str, str | None], docs: Path) -> Iterator[str]:
    """Return the files of a folder that are not their drawing."""
    for file, text in wanted.items():
        path = docs / file
        if (path.read_text() if path.exists() else None) != text:
            yield file


def write(wanted: Mapping[str, str | None], docs: Path) -> None:
    """Write the drawings into a folder."""
    docs.mkdir(exist_ok=True)
    for file, text in wanted.items():
        if text is None:
            (docs / file).unlink(missing_ok=True)
        else:
            (docs / file).write_text(text)


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="make map", description=__doc__)
    parser.add_argument("--tree", type=Path, default=TOP, help="another checkout")
    parser.add_argument("--docs", type=Path, help="the drawings' folder; else docs/ of the tree")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--check", action="store_true", help="write nothing; 1: a drawing is old")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Exit status: 0 printed and drawn; 1 with `--check`, a drawing does not match the tree."""
    asked = arguments(argv)
    docs = asked.docs or asked.tree / DOCS
    every = sources.read(asked.tree, FOLDERS)
    found = imports.read(asked.tree)
    figures = measured(every, found)
    print(json.dumps(asdict(figures), indent=2) if asked.json else "\n".join(lines(figures)))
    wanted = drawings(every, found)
    if not asked.check:
        write(wanted, docs)
        return 0
    old = list(outdated(wanted, docs))
    for file in old:
        print(f"{docs / file}: is not the drawing of this tree; run `make map`", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
