"""Fixtures that several tests share: approvals, and hubs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.as_gate.approving_world import World
from tests.unit.as_gate.hub_world import HubWorld, know_hubs


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def hubs(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubWorld]:
    know_hubs(monkeypatch)
    made = HubWorld()
    yield made
    made.close()
