"""Main program of the page: exit when idle, and service without a gate."""

import asyncio
import os
import pwd
import socket
from pathlib import Path

from mcpwrap.as_web import viewer
from mcpwrap.as_web.connections import WebConnectionLimits
from mcpwrap.as_web.main import serve
from mcpwrap.as_web.state import WebSettings
from tests.shared import pace
from tests.unit.as_web.browser import Browser, running
from tests.unit.http_service import Silent


def test_who_is_needed_by_nobody_ends(tmp_path: Path) -> None:
    around = WebSettings(gate=str(tmp_path / "none.sock"), idle_s=0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(serve(listener, around, asyncio.Event(), Silent()))  # returns


def test_without_a_gate_the_page_is_there_and_says_so(tmp_path: Path) -> None:
    with running(WebSettings(gate=str(tmp_path / "none.sock"))) as port:
        refused = Browser(port).log_in()
        assert refused.status == 503
        assert "systemctl status mcpwrap-gate" in refused.said


def test_a_connection_that_takes_too_long_is_cut_off(tmp_path: Path) -> None:
    limits = WebConnectionLimits(head_s=3600.0, whole_s=0.05)
    with (
        running(WebSettings(gate=str(tmp_path / "none.sock"), limits=limits)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=pace.WAIT_S) as silent,
    ):
        assert silent.recv(1) == b""


def test_root_sees_all_and_an_account_that_is_none_is_nobody() -> None:
    assert viewer.viewer_of("root") == viewer.Viewer("root", 0, sees_all=True)
    assert viewer.viewer_of("no-such-account") is None
    assert viewer.viewer_of("daemon") == viewer.Viewer("daemon", 1, sees_all=False)
    assert viewer.name_of(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name
    assert viewer.name_of(3_999_999_999) == "3999999999"
