"""Tier and release of a story follow from its marks."""

import pytest

from tests.system.bed import nspawn
from tests.system.support import tiers
from tests.system.tools import proofs
from tests.unit.support.collection import collected

# Each case, its release, and whether the fast tier has it.
CASES = {
    "test_unmarked[bookworm]": ("bookworm", True),
    "test_unmarked[trixie]": ("trixie", False),
    "test_without_a_machine": (None, True),
    "test_on_one_release[bookworm]": ("bookworm", True),
    "test_on_trixie[trixie]": ("trixie", True),  # there is no other
    "test_on_each_release[bookworm]": ("bookworm", True),
    "test_on_each_release[trixie]": ("trixie", True),
    "test_only_in_test_all[bookworm]": ("bookworm", False),
    "test_only_in_test_all[trixie]": ("trixie", False),
    "test_only_on_trixie[trixie]": ("trixie", False),
    "test_of_rows[bookworm-kept]": ("bookworm", True),
    "test_of_rows[bookworm-left]": ("bookworm", False),  # the mark of a row
    "test_of_rows[trixie-kept]": ("trixie", False),
    "test_of_rows[trixie-left]": ("trixie", False),
    "test_needs_limits[bookworm]": ("bookworm", True),
    "test_needs_limits[trixie]": ("trixie", False),
}


@pytest.fixture(scope="module")
def of_all() -> dict[str, pytest.Item]:
    return {item.name: item for item in collected(tiers.ALL)}


def test_test_all_has_each_case(of_all: dict[str, pytest.Item]) -> None:
    assert of_all.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_the_marks_decide(of_all: dict[str, pytest.Item], name: str) -> None:
    item = of_all[name]
    assert (tiers.suite_of(item), tiers.is_fast(item)) == CASES[name]


def test_the_fast_tier_is_a_part_of_all(of_all: dict[str, pytest.Item]) -> None:
    fast = {item.name for item in collected(tiers.FAST)}
    assert fast == {name for name, (_, is_fast) in CASES.items() if is_fast}
    assert fast < of_all.keys()


def test_without_limits_what_needs_them_is_left_out_by_name(
    of_all: dict[str, pytest.Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nspawn, "has_limits", lambda suite: suite == "bookworm")
    items = collected(tiers.ALL)
    assert {item.name for item in items} == of_all.keys() - {"test_needs_limits[trixie]"}
    [(case, instead)] = items[0].config.stash[tiers.WITHOUT_LIMITS].items()
    assert case.endswith("samples.py::test_needs_limits[trixie]")
    assert instead == tiers.LIMITS_OF_RUNS


def test_its_stories_elsewhere_exist() -> None:
    named = {tiers.LIMITS_OF_RUNS, tiers.LIMITS_OF_SESSIONS, tiers.PRINCIPALS}
    assert named <= proofs.written_stories()
