"""A front for each test, which must expect each line that the front logs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.as_front.world import World

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[MakeWorld]:
    """Return a function that makes a world with its own limits."""
    made: list[World] = []

    def make(**limits: float) -> World:
        made.append(World(tmp_path, **limits))
        return made[-1]

    yield make
    for world in made:
        world.stop()


@pytest.fixture
def world(make_world: MakeWorld) -> Iterator[World]:
    """Return a world in which the front does not run yet, and will have nothing to log."""
    world = make_world()
    yield world
    if world.journal.exists():
        assert world.journal.read_text() == ""
