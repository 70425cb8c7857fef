"""A front for each test; a test has to expect each line that it writes to its journal."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.as_front.world import World

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[MakeWorld]:
    """Return what makes a world with its own limits."""
    made: list[World] = []

    def make(**limits: float) -> World:
        made.append(World(tmp_path, **limits))
        return made[-1]

    yield make
    for world in made:
        world.stop()


@pytest.fixture
def world(make_world: MakeWorld) -> Iterator[World]:
    """Return a world with nothing running yet, in which the front has no reason to complain."""
    world = make_world()
    yield world
    if world.journal.exists():
        assert world.journal.read_text() == ""
