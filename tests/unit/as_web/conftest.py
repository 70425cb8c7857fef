"""Approval page between a scripted gate and people with different rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.as_web.connections import WebConnectionLimits
from mcpwrap.as_web.state import WebSettings
from mcpwrap.as_web.viewer import Viewer
from tests.shared import pace
from tests.unit.as_web.browser import Browser, running
from tests.unit.as_web.scripted_gate import AGENT_UID, ScriptedGate, scripted_gate

CONNECTIONS = 8
VIEWERS = {
    "carol": Viewer("carol", 1001, sees_all=True),
    "alice": Viewer("alice", AGENT_UID, sees_all=False),  # the owner of the agent
}


class Clock:
    """Clock that stands still until a test moves it."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[ScriptedGate]:
    with scripted_gate(tmp_path) as gate:
        yield gate


@pytest.fixture
def browser(gate: ScriptedGate, clock: Clock) -> Iterator[Browser]:
    """Return a new browser."""
    limits = WebConnectionLimits(connections=CONNECTIONS, head_s=0.3)
    around = WebSettings(gate=gate.path, viewer_of=VIEWERS.get, clock=clock, limits=limits)
    with running(around) as port:
        assert gate.is_watched.wait(pace.WAIT_S)
        yield Browser(port)


@pytest.fixture
def logged_in(browser: Browser) -> Browser:
    """Return a browser that an approver has logged in with."""
    assert browser.log_in().status == 303
    return browser
