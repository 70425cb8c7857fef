"""Pairs of errors in two trees: those that a module has, and those at the same place."""

from pathlib import Path

import pytest

from tests.project.pages import error_changes
from tests.project.pages.error_changes import Error


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('raise UsageError("no", where=w, fix="do", code="E-A-B")', [("no", "do", "E-A-B")]),
        ('BadValueError(f"{x!r} is bad", "write " + "1")', [("… is bad", "write 1", "")]),
        ('reader.note("key", "twice", "once", code="E-A-B")', [("twice", "once", "E-A-B")]),
        ('Problem(file, table, key, "no", "do")', [("no", "do", "")]),
        ('raise ValueError("no")', []),  # not an operator's: it has no fix
        ("raise UsageError(problem, where=w, fix=fix)", []),
        ('log("no", "do")', []),
        ('_Error("b", "2")\n_Error("a", "1")', [("b", "2", ""), ("a", "1", "")]),
    ],
)
def test_errors_of_a_module(source: str, expected: list[tuple[str, str, str]]) -> None:
    assert [*error_changes.errors("f", source)] == [Error("f", *one) for one in expected]


def test_a_pair_is_of_one_place(tmp_path: Path) -> None:
    for tree, words in (("before", ("a", "b")), ("after", ("A", "B"))):
        folder = tmp_path / tree / "mcpwrap"
        folder.mkdir(parents=True)
        (folder / "f.py").write_text("".join(f'UsageError("{w}", fix="do")\n' for w in words))
    more = tmp_path / "before/mcpwrap/g.py"
    more.write_text('UsageError("gone", fix="do")')
    (tmp_path / "after/mcpwrap/g.py").write_text("")
    found = error_changes.pairs(tmp_path / "before", tmp_path / "after")
    assert [(old.problem, new.problem) for old, new in found] == [("a", "A"), ("b", "B")]
