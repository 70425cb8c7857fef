"""Order among stories: what may import what, and where code that runs inside a machine is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SYSTEM = Path(__file__).parents[1] / "system"
# A program of more lines is a file of `guest/`, where it is linted and typed.
MAX_LINES = 5
FILES = sorted(SYSTEM.rglob("*.py"))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def programs(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return the texts in a file that are Python programs of too many lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                pass
            case ast.JoinedStr():
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "0"
                    for part in node.values
                )
            case _:
                continue
        if text.strip().count("\n") >= MAX_LINES and is_program(text):
            yield node.lineno, text


def is_program(text: str) -> bool:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    compound = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.For | ast.While | ast.With
    return any(isinstance(node, compound | ast.Try) for node in body)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SYSTEM)))
def test_what_a_file_of_stories_may_have(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = list(imported(tree))
    assert [name for name in names if name.startswith("tests.unit")] == []
    assert [name for name in names if any(p.startswith("test_") for p in name.split("."))] == []
    if "guest" not in path.parts:
        assert list(programs(tree)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os\nos.kill(1, 9)\n", True),
        ("[mcp_servers.x]\ncommand = 1\n", False),
        ("version: 1\nrules: []\n", False),
        ("a = 1\nb = 2\n", False),  # so is TOML
    ],
)
def test_a_program_is_told_from_a_configuration(text: str, *, expected: bool) -> None:
    assert is_program(text) is expected
