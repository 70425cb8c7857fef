"""Probe for paths that the server's account can write, which leaves no trace."""

import sys
from pathlib import Path

import pytest

from mcpwrap.as_wrapper import network_probe
from mcpwrap.linux.mount import mountinfo
from mcpwrap.linux.mount.mountinfo import Mount
from mcpwrap.machine.doctor.live_probes import TrialStatus


def written(monkeypatch: pytest.MonkeyPatch, path: Path | str) -> TrialStatus:
    """Probe a path."""
    monkeypatch.setattr(sys, "argv", ["mcpwrap-try-reach", "write", str(path)])
    return TrialStatus(network_probe.main())


def test_a_folder_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").write_text("mine")
    assert written(monkeypatch, tmp_path) is TrialStatus.WORKED
    assert capsys.readouterr().out == "worked\n"
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_name_that_cannot_be_given_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def rename(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "rename", rename)
    assert written(monkeypatch, tmp_path) is TrialStatus.REFUSED
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/proc/self", "/nowhere/at/all"])
def test_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    assert written(monkeypatch, path) in {TrialStatus.REFUSED, TrialStatus.OTHERWISE}


def test_a_file_stays_what_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("mine")
    before = file.stat()
    assert written(monkeypatch, file) is TrialStatus.WORKED
    # As in a wrapper: the file is a mount point, which rename(2) does not replace.
    mount = Mount(1, str(file), "/notes", "ext4")
    monkeypatch.setattr(mountinfo, "at_or_below", lambda _: {str(file): mount})
    assert written(monkeypatch, file) is TrialStatus.IN_PLACE
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_in_a_folder_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert written(monkeypatch, "/proc/self/comm") is TrialStatus.IN_PLACE
    assert capsys.readouterr().out != "worked\n"
