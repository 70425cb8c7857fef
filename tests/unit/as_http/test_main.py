"""Main program of the listener: root's file, signals, and exit when idle."""

import asyncio
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_http import main as main_module
from mcpwrap.as_http.application import Application
from mcpwrap.as_http.main import main, read_listener, serve
from mcpwrap.as_http.state import ListenerSettings
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.errors import EXIT_USAGE, UsageError
from tests.shared import pace
from tests.unit.as_http.agent import Agent, running
from tests.unit.as_http.standing_gate import StandingGate
from tests.unit.http_service import Silent

LISTENER = Listener(server="notes", uid=1000, address="127.0.0.1", is_remote=False)


def test_an_idle_listener_ends(tmp_path: Path) -> None:
    settings = ListenerSettings(gate=str(tmp_path / "none.sock"), idle_s=0.05)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        asyncio.run(serve((listening, LISTENER), settings, asyncio.Event(), Silent()))  # returns


def test_an_instance_reads_its_own_file(tmp_path: Path) -> None:
    file = tmp_path / "listener"
    file.write_bytes(msgspec.json.encode(LISTENER))
    assert read_listener(file, ["mcpwrap-http", "notes.1000"]) == LISTENER
    for argv in (["x"], ["x", "notes.1001"], ["x", "notes.1000", "y"]):
        with pytest.raises(UsageError, match=r"is for notes\.1000.*E-HTTP-LISTENER-FILE"):
            read_listener(file, argv)
    file.write_bytes(b"{}")
    with pytest.raises(UsageError, match="cannot be read"):
        read_listener(file, ["x", "notes.1000"])


def test_a_missing_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.setattr("mcpwrap.linux.isolation.prctl.forbid_dumps", lambda: None)
    assert main() == EXIT_USAGE
    logged = capsys.readouterr().err
    assert "cannot be read: " in logged
    assert "[E-HTTP-LISTENER-FILE]" in logged


def test_a_signal_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: StandingGate
) -> None:
    (tmp_path / "listener").write_bytes(msgspec.json.encode(LISTENER))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["mcpwrap-http", "notes.1000"])
    monkeypatch.setattr("mcpwrap.linux.isolation.prctl.forbid_dumps", lambda: None)
    monkeypatch.setattr(main_module, "Notifier", Silent)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        monkeypatch.setattr(main_module, "listening_socket", lambda _: listening)
        settings = ListenerSettings(gate=gate.path, port=port)
        monkeypatch.setattr(main_module, "ListenerSettings", lambda: settings)

        def stop() -> None:
            with Agent(port).begin() as begun:
                assert begun.status == 200
            os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=stop)
        thread.start()
        assert main() == 0
        thread.join(pace.WAIT_S)


def test_a_bug_ends_one_request_and_no_other(
    gate: StandingGate, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("of a test")

    with running({"gate": gate.path}) as port:
        monkeypatch.setattr(Application, "_answer", fail)
        broken = Agent(port).begin()
        assert broken.status == 500
        assert "of a test" not in broken.text()
        monkeypatch.undo()
        assert Agent(port).begin().status == 200
    assert "a bug in mcpwrap-http" in capfd.readouterr().err


def test_a_bug_in_one_session_ends_no_other(
    gate: StandingGate, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("of a test")

    with running({"gate": gate.path}) as port:
        agent = Agent(port)
        agent.begin().text()
        with monkeypatch.context() as patch:
            patch.setattr("mcpwrap.as_http.mcp_session.McpSession._route", fail)
            answer = agent.post(agent.request("tools/list"))
            told = answer.json() if answer.kind == "application/json" else answer.messages()[0]
            assert "error" in told
        assert Agent(port).begin().status == 200
    assert "of a test" in capfd.readouterr().err
