"""Desktop notification by a program: texts are arguments, and a failure is reported."""

from pathlib import Path

import pytest

from mcpwrap.core.notify.desktop import DesktopNotification
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import desktop_notify

SHOWN = DesktopNotification("--urgency=low", "line\nline")


def program(folder: Path, text: str) -> str:
    file = folder / "notify-send"
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def test_the_texts_are_arguments_and_no_options(tmp_path: Path) -> None:
    written = tmp_path / "shown"
    desktop_notify.show(SHOWN, program(tmp_path, f"#!/bin/sh\nprintf '%s\\0' \"$@\" > {written}\n"))
    assert written.read_text().split("\0") == ["--app-name=mcpwrap", "--", *SHOWN, ""]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\nexit 3\n", "cannot show the notification: status 3"),
        ("#!/none\n", "cannot show the notification: No such file or directory"),
        ("#!/bin/sh\nexec sleep 60\n", "cannot show the notification: no answer within 0.5 s"),
    ],
)
def test_a_failure_is_reported(
    tmp_path: Path, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desktop_notify, "_TIMEOUT_S", 0.5 if "sleep" in text else 10.0)
    name = program(tmp_path, text)
    desktop_notify.expect(name)
    with pytest.raises(McpwrapError) as failed:
        desktop_notify.show(SHOWN, name)
    assert failed.value.problem == why


def test_a_missing_program_is_reported_before(tmp_path: Path) -> None:
    with pytest.raises(McpwrapError, match="libnotify-bin"):
        desktop_notify.expect(str(tmp_path / "none"))
