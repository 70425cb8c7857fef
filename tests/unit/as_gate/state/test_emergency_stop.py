"""Emergency stop of servers.

A file that cannot be read, or that others could have written, stops all servers.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.as_gate.state import emergency_stop
from mcpwrap.as_gate.state.refusal import RefusalError

NOW, KEPT = "run/panic.json", "lib/panic.json"


def text(content: str, mode: int = 0o644) -> Callable[[Path], None]:
    """Return a function that writes the file."""

    def make(path: Path) -> None:
        path.write_text(content)
        path.chmod(mode)

    return make


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make the folders of both files, without the files."""
    for path in (NOW, KEPT):
        (tmp_path / path).parent.mkdir()
    monkeypatch.setattr(emergency_stop, "PANIC", (tmp_path / NOW, tmp_path / KEPT))
    monkeypatch.setattr(emergency_stop, "SERVERS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("where", [NOW, KEPT])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (text('{"everything":true}'), "stopped in an emergency"),
        (text('{"names":["git"]}'), "stopped in an emergency"),
        (text(""), "stopped in an emergency"),  # truncated by a full disk
        (text('{"names":"git"'), "stopped in an emergency"),
        (text('{"later":1}'), "stopped in an emergency"),  # of another version
        (text("\udcff".encode(errors="surrogateescape").decode("latin-1")), "emergency"),
        (text('{"names":[]}', 0o666), "(mode 0666)"),
        (text('{"names":[]}', 0o664), "(mode 0664)"),
        (lambda path: os.chown(path, 1000, 0) if path.write_text("{}") else None, "owner 1000"),
        (lambda path: path.symlink_to("/dev/null"), "not a plain file"),
        (lambda path: path.symlink_to("nowhere"), "not a plain file"),
        (os.mkfifo, "not a plain file"),  # a FIFO, which is not opened
        (Path.mkdir, "not a plain file"),
        (lambda path: path.parent.chmod(0o777), "accounts other than root can change its content"),
    ],
)
def test_a_file_that_may_be_a_stop_refuses_sessions(
    folder: Path, where: str, make: Callable[[Path], None], why: str
) -> None:
    make(folder / where)
    with pytest.raises(RefusalError) as refused:
        emergency_stop.expect_no_panic("git")
    assert why in refused.value.why


@pytest.mark.parametrize("where", [NOW, KEPT])
@pytest.mark.parametrize("make", [lambda _: None, text('{"names":["time"]}'), text("{}", 0o600)])
def test_without_a_stop_sessions_are_admitted(
    folder: Path, where: str, make: Callable[[Path], None]
) -> None:
    make(folder / where)
    emergency_stop.expect_no_panic("git")
