"""The glossary: each path, class, unit and word in it is compared with the tree."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.project import sources
from tests.unit.project import trees

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"
DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md")),
    ROOT / "docs" / "proofs.md",
    *sorted((ROOT / "docs").glob("*/*.md")),
)
ROW = re.compile(r"\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \| (.*?) ?\|")
NAME = re.compile(r"(set )?`([^`]+)`")  # a set is of nftables/mcpwrap.nft
UNIT = re.compile(r"mcpwrap[\w@-]*\.(service|socket|path|timer)")


@dataclass(frozen=True)
class Row:
    """One concept."""

    section: str
    term: str
    definition: str
    where: tuple[str, ...]
    sets: tuple[str, ...]
    before: str


def rows(text: str) -> Iterator[Row]:
    """Return the rows of all tables.

    Raises:
        ValueError: a line of a table is not a row.
    """
    section = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| **"):
            row = ROW.fullmatch(line)
            if not row:
                raise ValueError(line)
            term, definition, where, before = row.groups()
            found = NAME.findall(where)
            names = tuple(name for is_set, name in found if not is_set)
            sets = tuple(name for is_set, name in found if is_set)
            yield Row(section, term, definition, names, sets, before)


@cache
def defined(path: Path) -> frozenset[str]:
    """Return the classes, functions and constants at the top level of a module."""
    names = set[str]()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(one.id for one in targets if isinstance(one, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return frozenset(names)


def is_there(name: str, tree: Path) -> bool:
    """Return whether a tree has a unit, path, module, or name in a module."""
    if UNIT.fullmatch(name):
        return (tree / "units" / name).exists()
    package = tree / "mcpwrap"
    if (tree / name).exists() or (package / name).exists() or (package / f"{name}.py").exists():
        return True
    module, _, inside = name.rpartition(".")
    path = package / f"{module}.py"
    return path.exists() and inside in defined(path)


def faults(text: str, tree: Path) -> list[str]:
    """Return what of a glossary is not so in a tree."""
    every = list(rows(text))
    found = [
        f"defined twice: {term}" for term, n in Counter(r.term for r in every).items() if n > 1
    ]
    rules = (tree / "nftables/mcpwrap.nft").read_text()
    by_section = defaultdict[str, list[str]](list)
    for row in every:
        by_section[row.section].append(row.term)
        found += [f"{row.term}: no {name}" for name in row.where if not is_there(name, tree)]
        found += [f"{row.term}: no set {s}" for s in row.sets if f"    set {s} {{" not in rules]
        if not row.definition.endswith("."):
            found.append(f"{row.term}: not a sentence")
    for section, terms in by_section.items():
        if terms != sorted(terms, key=str.casefold):
            found.append(f"not in order: {section}")
    return found


ROWS = list(rows(GLOSSARY.read_text()))


def test_it_is_of_this_tree() -> None:
    assert len(ROWS) > 100
    assert faults(GLOSSARY.read_text(), ROOT) == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["**gate** | Judge. | `core/gate.Gate`, `mcpwrap-gate.service`, `units/` | "], []),
        (["**a** | A. | `core/` | ", "**B** | B. | set `b` | "], []),  # order has no capitals
        (["**gate** | Judge. | `core/gone` | "], ["gate: no core/gone"]),
        (["**gate** | Judge. | `core/gate.Other` | "], ["gate: no core/gate.Other"]),
        (["**gate** | Judge. | `mcpwrap-web.service` | "], ["gate: no mcpwrap-web.service"]),
        (["**a** | A. | set `b`, set `c` | "], ["a: no set c"]),
        (["**b** | B. | set `b` | ", "**a** | A. | set `a` | "], ["not in order: Words"]),
        (["**a** | A. | set `a` | ", "**a** | A. | set `a` | "], ["defined twice: a"]),
        (["**a** | A | set `a` | "], ["a: not a sentence"]),
    ],
)
def test_a_fault_is_found(tmp_path: Path, lines: list[str], expected: list[str]) -> None:
    texts = {
        "mcpwrap/core/gate.py": '"""Gate."""\n\n\nclass Gate:\n    """Judge."""\n',
        "units/mcpwrap-gate.service": "",
        "nftables/mcpwrap.nft": "    set a { type uid; }\n    set b { type uid; }\n",
    }
    text = "\n".join(["## Words", *(f"| {line}|" for line in lines)])
    assert faults(text, trees.write(tmp_path, texts)) == expected


def test_a_line_that_is_not_a_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="gate"):
        list(rows("| **gate** | Judge. |"))


def test_a_former_name_is_gone() -> None:
    paths = sorted((ROOT / "mcpwrap").rglob("*.py"))
    there = {path.stem for path in paths}.union(*map(defined, paths))
    before = {name for row in ROWS for is_set, name in NAME.findall(row.before) if not is_set}
    assert len(before) > 40
    assert before & there == set()


def test_a_former_word_is_gone() -> None:
    words = [word for row in ROWS for word in re.findall(r"\*([^*]+)\*", row.before)]
    assert words
    paths = [*(ROOT / "mcpwrap").rglob("*.py"), *DOCUMENTS]
    text = " ".join(" ".join(path.read_text().split()).lower() for path in paths)
    assert [word for word in words if re.search(rf"\b{word}", text)] == []


def test_a_class_in_two_modules_has_its_reason_here() -> None:
    by_name = defaultdict[str, set[str]](set)
    for module in sources.read(ROOT):
        for one in module.classes:
            if not one.name.startswith("_"):
                by_name[one.name].add(module.path)
    twice = {name for name, modules in by_name.items() if len(modules) > 1}
    text = GLOSSARY.read_text()
    assert {name for name in twice if f"`{name}`" not in text} == set()
