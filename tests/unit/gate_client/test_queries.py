"""Queries to the gate: refusals."""

import socket
import threading
from pathlib import Path

import pytest

from mcpwrap.core.wire import session_socket
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import queries


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
    path = str(tmp_path / "gate")
    monkeypatch.setattr(queries, "_GATE", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen()

        def refuse() -> None:
            with listening.accept()[0] as gate:
                gate.recv(99)
                gate.send(session_socket.encode(session_socket.SessionRefused(77, why)))

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(McpwrapError) as refused:
            queries.stats_text()
        thread.join()
    assert refused.value.lines()[0] == first
    assert refused.value.fix.startswith(fix)
