"""Collection of `samples.py` by pytest, as that of the system tests: with their conftest."""

from pathlib import Path

import pytest

SAMPLES = Path(__file__).with_name("samples.py")


class Collected:
    """Plugin that keeps the cases."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def collected(tier: str) -> list[pytest.Item]:
    """Return the cases that a tier has."""
    found = Collected()
    options = ["--collect-only", "-q", "-p", "tests.system.conftest", f"--tier={tier}"]
    assert pytest.main([*options, str(SAMPLES)], [found]) == 0
    return found.items
