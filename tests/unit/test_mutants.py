"""Mutants: the line that each changes is still there."""

import pytest

from tests.system.tools.mutants import MUTANTS, TOP, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_is_there_once(mutant: Mutant) -> None:
    assert (TOP / mutant.file).read_text().count(mutant.text) == 1
    assert (TOP / "tests/system" / mutant.room).is_dir()
