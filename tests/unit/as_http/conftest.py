"""Listener with a gate behind it that applies no policy, and an agent as its client."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.as_http.agent import Agent, running
from tests.unit.as_http.servers import notes
from tests.unit.as_http.standing_gate import StandingGate, standing_gate


class Clock:
    """Clock that stands still until it is moved."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[StandingGate]:
    with standing_gate(tmp_path, notes) as gate:
        yield gate


@pytest.fixture
def agent(gate: StandingGate) -> Iterator[Agent]:
    """Return an agent of a server with a command."""
    with running({"gate": gate.path}) as port:
        yield Agent(port)


@pytest.fixture
def remote(gate: StandingGate) -> Iterator[Agent]:
    """Return an agent of a server with a URL."""
    with running({"gate": gate.path}, is_remote=True) as port:
        yield Agent(port)
