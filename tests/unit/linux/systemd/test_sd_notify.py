"""Rate of watchdog notifications to systemd."""

import socket
import time
from pathlib import Path

import pytest

from mcpwrap.linux.systemd.sd_notify import Notifier


# sdnotify never closes its socket.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_watchdog_is_notified_no_more_often_than_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(0)
        told = Notifier()
        for now_s in (100.0, 100.1, 104.9, 105.1, 110.0, 110.2):
            clock_s.append(now_s)
            told.alive()
        assert [systemd.recv(99) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        with pytest.raises(BlockingIOError):
            systemd.recv(99)
