"""Records of `wrap`: read back as they were written, or reported as damaged."""

import json
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from mcpwrap.errors import McpwrapError
from mcpwrap.linux import remove_tree
from mcpwrap.machine.agent_files import wrap_records
from mcpwrap.machine.agent_files.wrap_records import (
    WrapRecord,
    backup_of,
    folder,
    forget,
    forget_but_backup,
    records,
    save,
)
from tests.unit.plain_account import NOBODY, without_root

ONE = WrapRecord(
    path=Path("/home/alice/.claude.json"),
    agent="claude-code",
    entries=(("mcpServers", "git"), ("projects", "/p", "mcpServers", "ä\n")),
    before=b"\xef\xbb\xbf{}\r\n\xff",
    after_sha256=sha256(b"after").hexdigest(),
)
OTHER = replace(ONE, path=Path("/home/alice/.codex/config.toml"), agent="codex")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "state/mcpwrap"


@pytest.fixture
def top() -> Iterator[Path]:
    """Return a folder of an account that is not root."""
    made = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(made, NOBODY, NOBODY)
    yield made
    remove_tree.remove(str(made))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"HOME": "/home/alice"}, "/home/alice/.local/state/mcpwrap"),
        ({"HOME": "/h", "XDG_STATE_HOME": ""}, "/h/.local/state/mcpwrap"),
        ({"HOME": "/h", "XDG_STATE_HOME": "rel"}, "/h/.local/state/mcpwrap"),  # XDG ignores it
        ({"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/mcpwrap"),
    ],
)
def test_the_folder_is_where_xdg_has_it(variables: dict[str, str], expected: str) -> None:
    assert folder(variables) == Path(expected)


def test_a_record_is_kept_for_its_account_alone(kept: Path) -> None:
    umask = os.umask(0)
    try:
        backup = save(kept, ONE)
    finally:
        os.umask(umask)
    assert backup == kept / "backup-0001-.claude.json"
    assert backup.read_bytes() == ONE.before
    assert names_in(kept) == [backup.name, "record-0001-.claude.json.json"]
    assert {path.stat().st_mode & 0o7777 for path in kept.iterdir()} == {0o600}
    assert kept.stat().st_mode & 0o7777 == 0o700
    assert records(kept) == [ONE]
    assert backup_of(kept, ONE) == backup


def test_a_folder_that_others_could_look_into_is_closed(kept: Path) -> None:
    kept.mkdir(parents=True)
    kept.chmod(0o755)
    save(kept, ONE)
    assert kept.stat().st_mode & 0o7777 == 0o700


def test_records_are_returned_oldest_first(kept: Path) -> None:
    assert records(kept) == []
    many = [replace(ONE if n % 3 else OTHER, before=b"%d" % n) for n in range(12)]
    for record in many:
        save(kept, record)
    (kept / "proposal-0123456789ab.toml").touch()  # `wrap` writes these beside them
    (kept / "record-x.json").touch()
    assert records(kept) == many


def test_the_programs_of_records_are_returned_of_sound_records_alone(kept: Path) -> None:
    assert wrap_records.run_programs(kept) == frozenset()
    mine = replace(ONE, run_program="/home/alice/venv/bin/mcpwrap")
    save(kept, mine)
    save(kept, OTHER)
    (kept / "record-0009-x.json").write_text("{")
    (kept / "record-0010-x.json").mkdir()
    assert wrap_records.run_programs(kept) == {"/home/alice/venv/bin/mcpwrap"}
    for left in kept.glob("record-00??-x.json"):
        left.rmdir() if left.is_dir() else left.unlink()
    assert records(kept) == [mine, OTHER]
    text = (kept / "record-0002-config.toml.json").read_text()
    assert "run_program" not in text  # an older version reads it


def test_no_backup_is_overwritten(kept: Path) -> None:
    first, second = save(kept, ONE), save(kept, ONE)
    assert [first.name[:11], second.name[:11]] == ["backup-0001", "backup-0002"]
    forget_but_backup(kept, ONE)  # the second
    assert save(kept, replace(ONE, before=b"new")).name == "backup-0003-.claude.json"
    assert first.read_bytes() == second.read_bytes() == ONE.before
    assert len(records(kept)) == 2


def test_two_at_a_time_get_names_of_their_own(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another `wrap` makes its backup when this one has just chosen the same name."""
    real, others = os.open, iter([True])

    def slow(path: str | Path, *rest: int, **more: int) -> int:
        if Path(path).name.startswith("backup") and next(others, False):
            Path(path).write_bytes(b"the other's")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", slow)
    assert save(kept, ONE).name == "backup-0002-.claude.json"
    assert (kept / "backup-0001-.claude.json").read_bytes() == b"the other's"


def test_what_is_forgotten_is_gone_and_no_other(kept: Path) -> None:
    for record in (ONE, OTHER, ONE):
        save(kept, record)
    forget(kept, ONE)
    assert records(kept) == [ONE, OTHER]  # the newest of two that are the same
    assert names_in(kept)[:2] == ["backup-0001-.claude.json", "backup-0002-config.toml"]
    forget_but_backup(kept, ONE)
    assert records(kept) == [OTHER]
    assert (kept / "backup-0001-.claude.json").read_bytes() == ONE.before
    for forgotten in (forget, forget_but_backup):
        forgotten(kept, ONE)  # again does no harm
    assert records(kept) == [OTHER]
    assert backup_of(kept, ONE) is None


@pytest.mark.parametrize(
    ("name", "backup"),
    [
        ("record-0001-x.json", "backup-0001-record-0001-x.json"),
        ("a b\n\x1bä", "backup-0001-a_b___"),
        ("n" * 255, f"backup-0001-{'n' * 100}"),
    ],
)
def test_any_name_of_a_file_will_do(kept: Path, name: str, backup: str) -> None:
    record = replace(ONE, path=Path("/home/alice", name))
    assert save(kept, record) == kept / backup
    assert records(kept) == [record]


def test_a_name_that_is_not_utf_8_is_reported(kept: Path) -> None:
    with pytest.raises(McpwrapError, match="an entry's name, is not UTF-8; nothing was changed"):
        save(kept, replace(ONE, path=Path("/home/alice/\udcff")))
    with pytest.raises(McpwrapError, match="an entry's name, is not UTF-8"):
        save(kept, replace(ONE, entries=(("mcpServers", "\ud800"),)))
    assert not kept.exists()


def _edited(**changes: object) -> Callable[[Path, Path], None]:
    def edit(record: Path, _: Path) -> None:
        record.write_text(json.dumps(json.loads(record.read_text()) | changes))

    return edit


def _writes(content: bytes) -> Callable[[Path, Path], None]:
    def write(record: Path, _: Path) -> None:
        record.write_bytes(content)

    return write


def _link(record: Path, _: Path) -> None:
    record.rename(record.with_name("other"))
    record.symlink_to("other")


@pytest.mark.parametrize(
    ("damage", "file", "problem"),
    [
        (_writes(b""), "record", "is not a record: "),
        (_writes(b'{"path": '), "record", "not a record: "),
        (_writes(b'"\xff"'), "record", "not a record: "),
        (_edited(later=1), "record", "not a record: .*`later`"),
        (_edited(entries=[[]]), "record", "not a record: .*entries"),
        (_edited(after_sha256="0"), "record", "not a record: .*after_sha256"),
        (_edited(agent="none"), "record", "not a record of this version"),
        (_edited(path=".claude.json"), "record", "not a record of this version"),
        (_edited(before_sha256="0" * 64), "backup", "is not the backup that `wrap` wrote"),
        (_link, "record", "is a symbolic link to 'other', which is not followed"),
        (lambda _, backup: backup.unlink(), "backup", "does not exist any more"),
        (lambda _, backup: backup.write_bytes(b"{}"), "backup", "is not the backup that `wrap`"),
        (lambda _, backup: backup.write_bytes(ONE.before + b" "), "backup", "is not the backup"),
    ],
)
def test_what_is_damaged_is_named(
    kept: Path, damage: Callable[[Path, Path], None], file: str, problem: str
) -> None:
    save(kept, OTHER)
    backup = save(kept, ONE)
    record = kept / "record-0002-.claude.json.json"
    damage(record, backup)
    with pytest.raises(McpwrapError, match=problem) as caught:
        records(kept)
    assert caught.value.where == str(record if file == "record" else backup)
    assert caught.value.problem.endswith("; nothing was changed")
    shutil.move(record, kept.parent)  # the printed fix helps
    assert records(kept) == [OTHER]


def test_a_full_disk_leaves_nothing_of_a_record(top: Path) -> None:
    kept = top / "mcpwrap"
    save(kept, OTHER)
    if os.geteuid() == 0:
        for path in (kept, *kept.iterdir()):
            os.chown(path, NOBODY, NOBODY)
    big = replace(ONE, before=b"x" * 100_000)
    long = replace(ONE, entries=(("mcpServers", "x" * 100_000),))

    def attempt() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for record in (big, long):
            with pytest.raises(McpwrapError, match="a backup cannot be written: File too large"):
                save(kept, record)
            assert records(kept) == [OTHER]
            assert len(names_in(kept)) == 2

    without_root(attempt)


def test_a_folder_that_cannot_be_written_to_is_reported(top: Path) -> None:
    kept = top / "mcpwrap"

    def attempt() -> None:
        save(kept, ONE)
        kept.chmod(0o500)
        top.chmod(0o500)
        for forgotten in (forget, forget_but_backup):
            with pytest.raises(McpwrapError, match="cannot be removed: Permission denied"):
                forgotten(kept, ONE)
        assert records(kept) == [ONE]
        with pytest.raises(McpwrapError, match="cannot be written: Permission denied"):
            save(top / "new", OTHER)

    without_root(attempt)


def test_a_file_in_the_place_of_the_state_folder_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert wrap_records.records(tmp_path / "file") == []
    with pytest.raises(McpwrapError, match="a backup cannot be written"):
        save(tmp_path / "file", ONE)
