"""Removal from the audit, while an attacker with the gate's account places obstacles."""

import os
import time
from pathlib import Path

import pytest

from mcpwrap.as_root import audit_epochs
from mcpwrap.core.audit.records import Keys
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import root_files
from mcpwrap.plan import paths

OLD = 1_700_000_000
KEYS = Keys(root_key=bytes(32), epochs=3)
FIRST = ["00000001/1-1.jsonl", "00000001/1-2.jsonl", "00000001/master.jsonl"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an audit of three epochs, beside a folder that must stay."""
    folder = tmp_path / "audit"
    monkeypatch.setattr(paths, "AUDIT", str(folder))
    monkeypatch.setattr(paths, "AUDIT_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.setattr(paths, "AUDIT_LOCK", str(tmp_path / "lock"))
    root_files.replace(paths.AUDIT_KEYS, audit_epochs.encode(KEYS), mode=0o600)
    for top in ("audit/00000001", "audit/00000002", "audit/00000003", "outside"):
        (tmp_path / top).mkdir(parents=True)
        for name in ("1-1.jsonl", "1-2.jsonl", "master.jsonl"):
            (tmp_path / top / name).write_text(top)
    return folder


@pytest.fixture
def outside(folder: Path) -> Path:
    return folder.parent / "outside"


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob("*/*"))


def test_files_are_removed_and_noted_as_removed(folder: Path) -> None:
    audit_epochs.remove(OLD, FIRST[:1])
    assert left(folder)[0] == "00000001/1-2.jsonl"
    assert len(left(folder)) == 8
    assert (audit_epochs.keys().removed_before, audit_epochs.keys().first_epoch) == (OLD, 1)
    audit_epochs.remove(OLD - 5, FIRST[:1])  # missing already; the noted time is kept
    assert audit_epochs.keys().removed_before == OLD


def test_a_run_goes_with_its_folder(folder: Path) -> None:
    audit_epochs.remove(OLD, FIRST)
    assert not (folder / "00000001").exists()
    assert (audit_epochs.keys().first_epoch, len(left(folder))) == (2, 6)


def test_a_foreign_file_keeps_its_folder_and_the_rest_goes(folder: Path) -> None:
    (folder / "00000001/other").write_text("")
    audit_epochs.remove(OLD, FIRST)
    assert left(folder)[0] == "00000001/other"
    (folder / "00000001/other").unlink()
    (folder / "00000001/1-1.jsonl").write_text("")  # as an interrupted removal leaves it
    audit_epochs.remove(OLD, FIRST[:1])
    assert not (folder / "00000001").exists()


def test_the_removal_is_noted_before_the_first_file_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def leave(*_: str) -> bool:
        seen.append(audit_epochs.keys())
        return True

    monkeypatch.setattr(audit_epochs, "_is_gone", leave)
    audit_epochs.remove(OLD, FIRST)
    assert [keys.first_epoch for keys in seen] == [2, 2, 2]
    assert len(left(folder)) == 9


@pytest.mark.parametrize(
    ("before", "names", "said"),
    [
        (OLD, ["00000001/../../outside/1-1.jsonl"], "not a file of the audit"),
        (OLD, ["../outside/1-1.jsonl"], "not a file of the audit"),
        (OLD, ["/etc/passwd"], "not a file of the audit"),
        (OLD, ["00000001/1-1.jsonl\n"], "not a file of the audit"),
        (OLD, ["00000001/x.jsonl"], "not a file of the audit"),
        (OLD, ["00000001/1-1.jsonl/"], "not a file of the audit"),
        (
            OLD,
            ["00000001/\u0661-1.jsonl"],
            "not a file of the audit",
        ),  # a digit of Unicode, not of ASCII
        (OLD, [*FIRST, "x"], "not a file of the audit"),
        (OLD, [*FIRST, "00000002/master.jsonl", "00000003/master.jsonl"], "is not over"),
        (OLD, ["99999999/master.jsonl"], "is not over"),
        (OLD, ["00000002/master.jsonl"], "an older epoch would stay"),
        pytest.param(int(time.time()) + 3600, FIRST, "is not past", id="to-come"),
    ],
)
def test_a_refused_request_changes_nothing(
    folder: Path, before: int, names: list[str], said: str
) -> None:
    with pytest.raises(McpwrapError, match=said):
        audit_epochs.remove(before, names)
    assert audit_epochs.keys() == KEYS
    assert len(left(folder)) == 9


def test_without_an_audit_nothing_is_noted(folder: Path) -> None:
    Path(paths.AUDIT_KEYS).unlink()
    with pytest.raises(McpwrapError, match="is not over"):
        audit_epochs.remove(OLD, FIRST)
    assert not Path(paths.AUDIT_KEYS).exists()
    assert len(left(folder)) == 9


class TestObstacles:
    """Obstacles to a removal: nothing outside the audit goes, and every other file does."""

    def remove(self, *stays: str) -> None:
        names = ["00000002/1-1.jsonl", *FIRST[:2]]
        with pytest.raises(McpwrapError, match=f"{stays[0]} cannot be removed; {3 - len(stays)} "):
            audit_epochs.remove(OLD, [*FIRST[:2], *names[:1]])
        for name in {*names} - {*stays}:
            assert not os.path.lexists(Path(paths.AUDIT, name))

    def test_an_epoch_that_is_a_link(self, folder: Path, outside: Path) -> None:
        (folder / "00000001").rename(folder / "away")
        (folder / "00000001").symlink_to(outside)
        self.remove(*FIRST[:2])
        assert len(list(outside.iterdir())) == 3
        assert len(list((folder / "away").iterdir())) == 3

    def test_an_epoch_that_is_a_link_goes_as_a_whole(self, folder: Path, outside: Path) -> None:
        """rmdir(2) does not follow the link, even if its target is empty."""
        (folder / "00000001").rename(folder / "away")
        for path in outside.iterdir():
            path.unlink()
        (folder / "00000001").symlink_to(outside)
        with pytest.raises(McpwrapError, match="0 of 3 files were"):
            audit_epochs.remove(OLD, FIRST)
        assert outside.is_dir()
        assert (folder / "00000001").is_symlink()

    def test_an_epoch_that_is_a_file(self, folder: Path) -> None:
        (folder / "00000001").rename(folder / "away")
        (folder / "00000001").write_text("")
        self.remove(*FIRST[:2])

    def test_an_epoch_that_is_a_pipe_is_not_waited_for(self, folder: Path) -> None:
        (folder / "00000001").rename(folder / "away")
        os.mkfifo(folder / "00000001")
        self.remove(*FIRST[:2])

    @pytest.mark.parametrize("target", ["1-1.jsonl", ".", "missing"])
    def test_a_file_that_is_a_link(self, folder: Path, outside: Path, target: str) -> None:
        path = folder / FIRST[0]
        path.unlink()
        path.symlink_to(outside / target)
        audit_epochs.remove(OLD, FIRST[:1])
        assert not path.is_symlink()
        assert len(list(outside.iterdir())) == 3

    def test_a_file_that_has_another_name(self, folder: Path, outside: Path) -> None:
        path = folder / FIRST[0]
        path.unlink()
        path.hardlink_to(outside / "1-1.jsonl")
        audit_epochs.remove(OLD, FIRST[:1])
        assert not path.exists()
        assert (outside / "1-1.jsonl").read_text() == "outside"

    @pytest.mark.parametrize("within", [[], ["1-1.jsonl"]])
    def test_a_file_that_is_a_folder(self, folder: Path, within: list[str]) -> None:
        path = folder / FIRST[0]
        path.unlink()
        path.mkdir()
        for name in within:
            (path / name).write_text("")
        self.remove(FIRST[0])
        assert [entry.name for entry in path.iterdir()] == within

    def test_an_epoch_that_becomes_a_link_meanwhile(
        self, folder: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The exchange is between open and unlink: the opened folder counts."""
        unlink = os.unlink

        def later(name: str, *, dir_fd: int) -> None:
            if not (folder / "away").exists():
                (folder / "00000001").rename(folder / "away")
                (folder / "00000001").symlink_to(outside)
            unlink(name, dir_fd=dir_fd)

        monkeypatch.setattr(os, "unlink", later)
        with pytest.raises(McpwrapError, match="1 of 2 files were"):
            audit_epochs.remove(OLD, FIRST[:2])
        assert len(list(outside.iterdir())) == 3
        assert len(list((folder / "away").iterdir())) == 2
