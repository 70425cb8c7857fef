"""Fixtures that the approval tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.as_gate.approving_world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path, monkeypatch)
    yield made
    made.close()
