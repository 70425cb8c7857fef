"""Fixture of the attack stories: one machine, and one set of sessions a story."""

from collections.abc import Iterator

import pytest

from tests.system.bed.machine import Machine
from tests.system.egress.battlefield import Battlefield


@pytest.fixture
def field(stage: Battlefield, machine: Machine) -> Iterator[Battlefield]:
    """Lend the stage of a module whose STAGE is `battlefield.booted`, with its records cleared."""
    assert stage.machine is machine
    stage.seen()
    yield stage
    stage.end_sessions()
