"""Rules for names and rooms, as a part of `make check`: each breach with its file and line."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.project import imports, sources
from tests.project import map as rooms_map
from tests.project.figures import is_question, shared_classes
from tests.project.imports import TOP
from tests.project.rooms import sizes
from tests.project.sources import PACKAGE, Module

MAX_MODULES = 15  # of a room: as many as a reader can take in as a list


@dataclass(frozen=True, order=True)
class Breach:
    """Breach of a rule, and its correction."""

    file: str
    line: int
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}; {self.fix}"


def shared_names(modules: Iterable[Module]) -> Iterator[Breach]:
    """Return the classes of the package whose name three or more modules define."""
    for name, many in shared_classes(_ours(modules)).items():
        for module, one in many:
            problem = f"{len(many)} modules define a class {name}"
            yield Breach(module.path, one.line, problem, "name each after its subject")


def questions(modules: Iterable[Module]) -> Iterator[Breach]:
    """Return the first lines that are an indirect question."""
    for module in modules:
        for first_line in module.first_lines:
            if is_question(first_line.text):
                problem = f"a first line asks: {first_line.text!r}"
                yield Breach(module.path, first_line.line, problem, "begin with a noun")


def missing_docstrings(modules: Iterable[Module]) -> Iterator[Breach]:
    """Return the modules of the package without a docstring."""
    for module in _ours(modules):
        if module.first_line is None:
            yield Breach(module.path, 1, "no docstring", "name the module's subject in one line")


def crowded_rooms(modules: Iterable[Module]) -> Iterator[Breach]:
    """Return the folders of the package with too many modules directly in them."""
    for room, count in sizes(_ours(modules)).items():
        if count > MAX_MODULES:
            problem = f"{count} modules in one room, and {MAX_MODULES} are the most"
            fix = "put those of one subject into a folder of their own"
            yield Breach(f"{room.replace('.', '/')}/__init__.py", 1, problem, fix)


def _ours(modules: Iterable[Module]) -> list[Module]:
    return [module for module in modules if module.path.startswith(f"{PACKAGE}/")]


RULES: tuple[Callable[[Iterable[Module]], Iterator[Breach]], ...] = (
    shared_names,
    questions,
    missing_docstrings,
    crowded_rooms,
)


def breaches(modules: list[Module]) -> list[Breach]:
    """Return each breach of a rule about modules, in the order of files and lines."""
    return sorted(breach for rule in RULES for breach in rule(modules))


def old_drawings(tree: Path, modules: list[Module]) -> list[Breach]:
    """Return the drawings that do not match the tree."""
    wanted = rooms_map.drawings(modules, imports.read(tree))
    return [
        Breach(f"{rooms_map.DOCS}/{file}", 1, "is not the drawing of this tree", "run `make map`")
        for file in rooms_map.outdated(wanted, tree / rooms_map.DOCS)
    ]


def report(found: Sequence[Breach], subject: str) -> int:
    """Print each breach of the rules for a subject, and how many there are; return 1 if any."""
    for breach in found:
        print(breach)
    print(f"{len(found)} breaches of the rules for {subject}")
    return 1 if found else 0


def main(tree: Path = TOP) -> int:
    """Exit status: 0 no breach; 1 each is printed."""
    modules = sources.read(tree, rooms_map.FOLDERS)
    return report([*breaches(modules), *old_drawings(tree, modules)], "names and rooms")


if __name__ == "__main__":
    sys.exit(main())
