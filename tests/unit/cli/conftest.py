"""Fixtures of the commands: a gate, root, and a home."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.root import Root
from tests.unit.cli.scripted_gate import ScriptedGate, scripted


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedGate]:
    with scripted(tmp_path, monkeypatch) as gate:
        yield gate


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    return Root.that_agrees(tmp_path / "root", monkeypatch)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "shop").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "shop")
    return home
