"""Pinned versions: the tested ones are the shipped ones, in both files."""

from tests.system.bed import roots
from tests.system.tools.pins import TOP, pins


def test_what_is_shipped_is_what_is_tested() -> None:
    shipped = pins(TOP / "packaging/site.txt")
    tested = pins(roots.PIP_CONSTRAINTS)
    assert "pyyaml" in shipped
    assert {name: tested.get(name) for name in shipped} == shipped


def test_what_a_recipe_names_with_a_version_is_pinned_there_alone() -> None:
    tested = pins(roots.PIP_CONSTRAINTS)
    # A lock has all packages of one environment, at the versions that its server pins.
    lists = (path for path in roots.RECIPES.glob("*.txt") if not path.name.endswith(".lock.txt"))
    named = (TOP / "tests/requirements.txt", *lists)
    assert [name for path in named for name in pins(path) if name in tested] == []
