"""Queries to the gate: refusals."""

import socket
from pathlib import Path

import pytest

from mcpwrap.core.wire import session_socket
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import queries
from tests.unit.gate_client.scripted_gate import gate_that


@pytest.mark.parametrize(
    ("why", "first", "fix"),
    [
        ("only root may", "the gate: only root may [E-STATS-REFUSED]", "run it as root"),
        ("it is full [E-SESSION-LIMIT-GATE]", "the gate: it is full [E-SESSION-LIMIT-GATE]", "fix"),
    ],
)
def test_a_refusal_keeps_the_name_of_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str, first: str, fix: str
) -> None:
    def refuse(gate: socket.socket) -> None:
        gate.recv(99)
        gate.send(session_socket.encode(session_socket.SessionRefused(77, why)))

    with gate_that(refuse, tmp_path, monkeypatch), pytest.raises(McpwrapError) as refused:
        queries.stats_text()
    assert refused.value.lines()[0] == first
    assert refused.value.fix.startswith(fix)
