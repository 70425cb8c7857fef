"""YAML tree: unambiguous YAML has positions; any other is refused with its position."""

import re

import pytest

from mcpwrap.config.policy.errors import Flaw, SourcePosition
from mcpwrap.config.policy.yaml_tree import (
    MAX_BYTES,
    MAX_DEPTH,
    Items,
    Node,
    Scalar,
    Table,
    read_tree,
)

LAUGHS = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]"


def read(text: str | bytes) -> tuple[Node | None, list[Flaw]]:
    flaws: list[Flaw] = []
    content = text if isinstance(text, bytes) else text.encode()
    return read_tree("f.yaml", content, flaws), flaws


def test_a_tree_has_places() -> None:
    tree, flaws = read("# ü\nä: 'x'\nb:\n  - 5\n  - |\n    two\n    lines\n")
    assert flaws == []
    assert isinstance(tree, Table)
    (key, value), (_, items) = tree.entries
    assert key == Scalar(SourcePosition("f.yaml", 2, 1), "ä", is_quoted=False)
    assert value == Scalar(SourcePosition("f.yaml", 2, 4), "x", is_quoted=True)
    assert isinstance(items, Items)
    assert items.items == (
        Scalar(SourcePosition("f.yaml", 4, 5), "5", is_quoted=False),
        Scalar(SourcePosition("f.yaml", 5, 5), "two\nlines\n", is_quoted=True),
    )


@pytest.mark.parametrize("text", ["%YAML 1.2\n---\na: 1\n...\n", "\ufeffa: 1", "{a: 1}", "a: ''"])
def test_what_is_allowed(text: str) -> None:
    tree, flaws = read(text)
    assert isinstance(tree, Table)
    assert flaws == []


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "the file is empty"),
        ("# only this", 1, 1, "the file is empty"),
        ("a: [1", 2, 1, "not YAML"),
        ("a: 'x", 1, 6, "not YAML"),
        ("\ta: 1", 1, 1, "not YAML"),
        ("a: b: c", 1, 5, "not YAML"),
        ("a: 1\nb: \x07", 1, 1, "not YAML: unacceptable character"),
        (b"a: 1\nb: \xff", 2, 1, "not UTF-8"),
        ("a: 1\na: 2", 2, 1, "'a' appears twice, first in line 1"),
        ('a: {"b": 1, b: 2}', 1, 13, "'b' appears twice"),
        ("a: 1\n---\nb: 2", 2, 1, "a second document"),
        (LAUGHS, 1, 4, "anchors (`&`) and aliases (`*`)"),
        ("a: *x", 1, 4, "anchors (`&`) and aliases (`*`)"),
        ("tool: *", 1, 8, "not YAML"),
        ("a: !!int 5", 1, 4, "the tag 'tag:yaml.org,2002:int'"),
        ("a: !!python/object:os.system x", 1, 4, "the tag"),
        ("a: ! x", 1, 4, "the tag"),
        ("? [a]\n: b", 1, 3, "a list or table as a key"),
        ("a: " + "[" * 500, 1, 36, "nested over 32 levels deep"),
        ("- " * 500 + "x", 1, 67, "nested over 32 levels deep"),
        ("#" * (MAX_BYTES + 1), 1, 1, "over 1 MiB"),
    ],
)
def test_what_is_refused(text: str | bytes, line: int, column: int, problem: str) -> None:
    _, [flaw] = read(text)
    assert problem in flaw.problem
    assert flaw.mark == SourcePosition("f.yaml", line, column)
    assert flaw.fix


def test_a_star_alone_wants_quotes() -> None:
    _, [flaw] = read("tool: *\n")
    assert flaw.fix == 'put a text that begins with `*` in quotes: `"*"`'


def test_what_is_deeper_than_the_parser_goes_is_refused_too() -> None:
    """PyYAML 6.0.4 looks ahead, and stops at 1000 levels before it emits the first event."""
    _, [flaw] = read("a: " + "[" * 100_000)
    assert re.search("nested over 32 levels deep|not YAML: .*nesting depth", flaw.problem)


def test_there_is_a_last_level() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH)[1] == []
    assert read("[" * MAX_DEPTH + "[]" + "]" * MAX_DEPTH)[1] == []
    assert len(read("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2))[1]) == 1
