"""A gate for the commands that ask it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.scripted_gate import ScriptedGate, scripted


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedGate]:
    with scripted(tmp_path, monkeypatch) as gate:
        yield gate
