"""Stories with each mark of `tests/system/support/tiers.py`. They are collected, never run."""

import pytest

from tests.system.support import tiers


def test_unmarked(suite: str) -> None: ...


def test_without_a_machine() -> None: ...


@tiers.ON_ONE_RELEASE
def test_on_one_release(suite: str) -> None: ...


@tiers.on_release("trixie")
def test_on_trixie(suite: str) -> None: ...


@tiers.on_each_release("sample")
def test_on_each_release(suite: str) -> None: ...


@tiers.only_in_test_all("sample")
def test_only_in_test_all(suite: str) -> None: ...


@tiers.only_in_test_all("sample")
@tiers.on_release("trixie")
def test_only_on_trixie(suite: str) -> None: ...


@pytest.mark.parametrize(
    "row", ["kept", pytest.param("left", marks=tiers.only_in_test_all("sample"))]
)
def test_of_rows(suite: str, row: str) -> None: ...


@tiers.needs_limits("sample", tiers.LIMITS_OF_RUNS)
def test_needs_limits(suite: str) -> None: ...
