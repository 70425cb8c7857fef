"""Figures of a tree: its sizes, rooms, shared names, fragments, questions, cycles and contracts."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from tests.project.graph import Pair, sibling_cycles
from tests.project.imports import Imports, Verdict
from tests.project.rooms import sizes
from tests.project.sources import PACKAGE, Class, Module

FRAGMENT_LINES = 60
SHARED_BY = 3  # modules that define a class of the same name
# The first line of a package may name its account before.
QUESTION = re.compile(
    r"(?:(?:RUNS AS [^:]*|PURE): *)?(What|Which|Whom|Whose|Who|How|Where)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Figures:
    """Counts of one tree; names where a count alone does not help."""

    modules: int
    lines: int
    median_lines: float
    rooms: int
    largest_room: str
    largest_room_modules: int
    shared_classes: dict[str, int]  # modules that define each
    fragments: tuple[str, ...]
    questions: dict[str, int]  # by folder at the top
    cycles: dict[str, list[tuple[str, ...]]]
    contracts: tuple[Verdict, ...]


def is_question(first_line: str) -> bool:
    """State whether a first line begins with a question word, rather than names a thing."""
    return QUESTION.match(first_line) is not None


def shared_classes(modules: Iterable[Module]) -> dict[str, list[tuple[Module, Class]]]:
    """Return the public classes whose name three or more modules define, by that name."""
    found: dict[str, list[tuple[Module, Class]]] = defaultdict(list)
    for module in modules:
        for name, one in {one.name: one for one in module.classes}.items():
            if not name.startswith("_"):
                found[name].append((module, one))
    return {name: many for name, many in sorted(found.items()) if len(many) >= SHARED_BY}


def fragments(modules: Iterable[Module], pairs: Iterable[Pair]) -> tuple[str, ...]:
    """Return the short modules that exactly one other imports."""
    importers = Counter(imported for _, imported in set(pairs))
    return tuple(
        module.name
        for module in modules
        if not module.is_package and module.lines < FRAGMENT_LINES and importers[module.name] == 1
    )


def measured(modules: Iterable[Module], imports: Imports) -> Figures:
    """Return the figures of the package among some modules; questions of all of them."""
    every = list(modules)
    inside = [module for module in every if module.name.partition(".")[0] == PACKAGE]
    files = [module for module in inside if not module.is_package]
    by_room = sizes(inside)
    room, count = max(by_room.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    questions = Counter(
        module.name.partition(".")[0]
        for module in every
        for line in module.first_lines
        if is_question(line.text)
    )
    return Figures(
        modules=len(files),
        lines=sum(module.lines for module in inside),
        median_lines=median([module.lines for module in files] or [0]),
        rooms=len(by_room),
        largest_room=room,
        largest_room_modules=count,
        shared_classes={name: len(many) for name, many in shared_classes(inside).items()},
        fragments=fragments(inside, imports.pairs),
        questions=dict(sorted(questions.items())),
        cycles=sibling_cycles(imports.pairs),
        contracts=imports.verdicts,
    )


def lines(figures: Figures) -> Iterator[str]:
    """Return the figures as text, one a line."""
    names = sorted(figures.shared_classes.items(), key=lambda one: (-one[1], one[0]))
    questions = ", ".join(f"{folder} {count}" for folder, count in figures.questions.items())
    rows = {
        "modules": f"{figures.modules}",
        "lines": f"{figures.lines}",
        "median module": f"{figures.median_lines:g} lines",
        "rooms": f"{figures.rooms}",
        "largest room": f"{figures.largest_room}, {figures.largest_room_modules} modules",
        f"class names in {SHARED_BY} or more modules": str(len(names)),
        f"modules with one importer, under {FRAGMENT_LINES} lines": str(len(figures.fragments)),
        "first lines that begin with a question word": questions or "0",
        "cycles among siblings": str(sum(map(len, figures.cycles.values()))),
    }
    width = max(map(len, rows)) + 2
    for label, value in rows.items():
        yield f"{label:{width}}{value}"
        if label.startswith("class names") and names:
            yield "  " + ", ".join(f"{name} {count}" for name, count in names)
        if label.startswith("cycles"):
            for package, groups in figures.cycles.items():
                yield from (f"  {package}: {', '.join(group)}" for group in groups)
    yield "import contracts"
    for contract in figures.contracts:
        problem = f" ({contract.problem})" if contract.problem else ""
        yield f"  {'kept' if contract.is_kept else 'BROKEN':8}{contract.name}{problem}"
