"""Order among tests: permitted imports, and the place of code that runs inside a machine."""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# A program of more lines is a file of `guest/`, where it is linted and typed.
MAX_LINES = 5
# Code that stories submit to `run_python` is their input: wrong code is part of it.
SUBMITTED = {
    Path("system/execution/ordinary_programs.py"),
    Path("system/execution/submitted_code.py"),
}
FILES = [path.relative_to(TESTS) for path in sorted(TESTS.rglob("*.py"))]
STORIES = [path for path in FILES if path.parts[0] == "system"]


def parsed(path: Path) -> ast.Module:
    return ast.parse((TESTS / path).read_text())


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
    """Return whether it parses as Python, with a value in each place that is filled in later."""
    try:
        body = ast.parse(textwrap.dedent(text.strip("\n")).replace("{}", "0")).body
    except SyntaxError:
        return False
    compound = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.For | ast.While | ast.With
    return any(isinstance(node, compound | ast.Try) for node in body)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_test_imports_a_test(path: Path) -> None:
    names = [name for name in imported(parsed(path)) if name.startswith("tests.")]
    assert [name for name in names if ".test_" in name] == []


@pytest.mark.parametrize("path", STORIES, ids=str)
def test_what_a_file_of_stories_may_have(path: Path) -> None:
    tree = parsed(path)
    assert [name for name in imported(tree) if name.startswith("tests.unit")] == []
    if "guest" not in path.parts and path not in SUBMITTED:
        assert list(programs(tree)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os\nos.kill(1, 9)\n", True),
        ("\n    import os\n    os.kill({}, 9)\n", True),
        ("[mcp_servers.x]\ncommand = 1\n", False),
        ("version: 1\nrules: []\n", False),
        ("a = 1\nb = 2\n", False),  # so is TOML
    ],
)
def test_a_program_is_told_from_a_configuration(text: str, *, expected: bool) -> None:
    assert is_program(text) is expected
