"""`make error-changes AGAINST=COMMIT`: errors of that commit and of this tree, in pairs.

The calls of one file are paired in their order; a file with another number of them is left out.
"""

import argparse
import ast
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.project.imports import TOP
from tests.project.language import facts
from tests.project.pages.error_calls import NAMED, PACKAGE, PROBLEM_AT

Pair = tuple["Error", "Error"]


@dataclass(frozen=True)
class Error:
    """Error as its call has it; `…` stands for a part that only the run knows."""

    file: str
    problem: str
    fix: str
    name: str

    def __str__(self) -> str:
        name = f" [{self.name}]" if self.name else ""
        return f"{self.problem}{name}\n    fix: {self.fix}"


def errors(file: str, source: str) -> Iterator[Error]:
    """Return the errors of a module whose problem is written in the call."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        callee = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        if NAMED.fullmatch(callee):
            first = PROBLEM_AT.get(callee, 0)
            keys = {keyword.arg: _text(keyword.value) for keyword in call.keywords}
            listed = [*map(_text, call.args[first : first + 2]), "", ""]
            fix = keys.get("fix", listed[1])
            if listed[0] and fix:
                yield Error(file, listed[0], fix, keys.get("code", ""))


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) or "…" for part in parts)
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
        case _:
            return ""


def pairs(before: Path, after: Path) -> Iterator[Pair]:
    """Return the errors of two trees that stand at the same place of the same file."""
    for path in sorted((before / PACKAGE).rglob("*.py")):
        file = path.relative_to(before).as_posix()
        if (after / file).exists():
            old = list(errors(file, path.read_text()))
            new = list(errors(file, (after / file).read_text()))
            if len(old) == len(new):
                yield from zip(old, new, strict=True)


def main(argv: list[str]) -> int:
    """Exit status: 0 printed."""
    parser = argparse.ArgumentParser(prog="make error-changes", description=__doc__)
    parser.add_argument("--against", required=True, metavar="COMMIT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        facts.extract(asked.against, Path(folder))
        found = list(pairs(Path(folder), TOP))
    chosen = random.Random(asked.seed).sample(found, min(asked.count, len(found)))
    for old, new in sorted(chosen, key=lambda pair: pair[0].file):
        print(f"{old.file}\n  - {old}\n  + {new}")
    changed = sum(old.problem != new.problem or old.fix != new.fix for old, new in found)
    print(f"{len(chosen)} of {len(found)} pairs, {changed} of which have other words")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
