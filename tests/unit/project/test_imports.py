"""Imports of a tree: those of its own modules, whatever the caller imported, and its contracts."""

from pathlib import Path
from typing import Any

import pytest

import mcpwrap
from tests.project import imports
from tests.project.imports import UnreadableTreeError, Verdict
from tests.unit.project import trees

KEPT = (Verdict("Data flows down", is_kept=True), Verdict("core is alone", is_kept=True))


def test_the_imports_are_those_of_the_tree(tmp_path: Path) -> None:
    assert mcpwrap.__file__  # another tree's, in this process
    found = imports.read(trees.write(tmp_path, trees.TEXTS))
    assert found.pairs == (
        ("mcpwrap.as_root.main", "mcpwrap.core.names"),
        ("mcpwrap.cli.main", "mcpwrap.core.gate.calls"),
        ("mcpwrap.cli.main", "mcpwrap.errors"),
        ("mcpwrap.core.gate.calls", "mcpwrap.core.names"),
        ("mcpwrap.core.names", "mcpwrap.errors"),
    )
    assert found.verdicts == KEPT
    assert found.layers == (
        ("mcpwrap.cli", "mcpwrap.as_root"),
        ("mcpwrap.core",),
        ("mcpwrap.errors",),
    )


@pytest.mark.parametrize(
    ("path", "text", "kept"),
    [
        ("mcpwrap/core/names.py", "import socket", [True, False]),
        ("mcpwrap/core/names.py", "from mcpwrap.cli import main", [False, True]),
        ("mcpwrap/core/names.py", "from mcpwrap import errors", [True, True]),
    ],
)
def test_a_broken_contract_is_reported(
    tmp_path: Path, path: str, text: str, kept: list[bool]
) -> None:
    found = imports.read(trees.write(tmp_path, {**trees.TEXTS, path: text}))
    assert [one.is_kept for one in found.verdicts] == kept


def test_a_contract_of_a_module_that_is_gone_is_broken_with_its_reason(tmp_path: Path) -> None:
    pyproject = trees.PYPROJECT.replace('["mcpwrap.core"]', '["mcpwrap.policy"]')
    found = imports.read(trees.write(tmp_path, trees.TEXTS, pyproject))
    kept, broken = found.verdicts
    assert (kept.is_kept, broken.is_kept) == (True, False)
    assert "mcpwrap.policy" in broken.problem


def test_a_tree_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTreeError, match=str(tmp_path)):
        imports.read(tmp_path)


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        ({"layers": ["m.a | m.b", "m.c"]}, [["m.a", "m.b"], ["m.c"]]),
        ({"layers": ["m.a : m.b", "(m.c)"]}, [["m.a", "m.b"], ["m.c"]]),
        ({"containers": ["m"], "layers": ["a|b", "c"]}, [["m.a", "m.b"], ["m.c"]]),
    ],
)
def test_layers_are_read(contract: dict[str, Any], expected: list[list[str]]) -> None:
    assert imports.layer_names(contract) == expected
