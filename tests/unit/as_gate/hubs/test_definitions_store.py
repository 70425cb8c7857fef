"""Files with members' definitions, written by processes of their own."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_gate.hubs import definitions_store
from mcpwrap.as_gate.hubs.definitions_store import DefinitionsWriter
from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import Definitions
from mcpwrap.core.wire.server_files import AccessList, AccessRule
from tests.unit.as_gate.hub_world import ADMISSIONS, ALICE, BOB

GIT = (ALICE, "git")


def listing(*tools: str) -> bytes:
    raws = tuple(msgspec.Raw(b'{"name":"%s"}' % tool.encode()) for tool in tools)
    return hub_catalogue.encode_definitions(Definitions(tools=raws))


class Store:
    """Writer with a clock, and the sessions that write."""

    def __init__(self) -> None:
        self.writer = DefinitionsWriter()
        self.now_s = 100.0

    def give(self, content: bytes, key: tuple[int, str] = GIT, session: int = 1) -> None:
        os.write(self.writer.pages.new(session), content)
        self.writer.take(session, key)

    def run(self) -> None:
        """Start what is due, and wait for its end."""
        self.writer.catch_up(self.now_s)
        self.end_all()

    def end_all(self) -> None:
        for pid in list(self.writer._key_by_pid):
            os.waitpid(pid, 0)
            self.writer.ended(pid)

    def due_in_s(self) -> float | None:
        return self.writer.due_in_s(self.now_s)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(definitions_store, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    made = Store()
    yield made
    made.end_all()
    for fd in [*made.writer._waiting.values(), *made.writer.pages._page_by_session.values()]:
        os.close(fd)


def test_definitions_are_stored_and_read_by_agent_and_member(store: Store, folder: Path) -> None:
    assert store.due_in_s() is None
    store.give(listing("a"))
    assert store.due_in_s() == 0.0
    store.run()
    assert definitions_store.read(*GIT) == hub_catalogue.decode_definitions(listing("a"))
    assert definitions_store.read(BOB, "git") is None
    assert definitions_store.read(ALICE, "notes") is None
    assert [path.name for path in (folder / str(ALICE)).iterdir()] == ["git.json"]
    assert (folder / str(ALICE)).stat().st_mode & 0o777 == 0o700


def test_a_file_is_replaced_only_by_another_content(store: Store, folder: Path) -> None:
    file = folder / str(ALICE) / "git.json"
    identities = []
    for tool in ("a", "a", "b"):
        store.give(listing(tool))
        store.run()
        store.now_s += 1.0
        identities.append(file.stat().st_ino)
    assert identities[0] == identities[1] != identities[2]
    assert file.read_bytes() == listing("b")


def test_only_the_latest_version_is_written_once_a_second(store: Store, folder: Path) -> None:
    store.give(listing("a"))
    store.run()
    for tool in ("b", "c"):
        store.give(listing(tool))
    store.give(listing("x"), (BOB, "git"))  # the file of another agent does not wait
    store.run()
    assert (folder / str(ALICE) / "git.json").read_bytes() == listing("a")
    assert (folder / str(BOB) / "git.json").read_bytes() == listing("x")
    assert store.due_in_s() == 1.0
    store.now_s += 1.0
    assert store.due_in_s() == 0.0
    store.run()
    assert (folder / str(ALICE) / "git.json").read_bytes() == listing("c")


def test_a_few_processes_write_at_a_time(
    monkeypatch: pytest.MonkeyPatch, store: Store, folder: Path
) -> None:
    monkeypatch.setattr(definitions_store, "MAX_WRITERS", 1)
    for uid in (ALICE, BOB):
        store.give(listing("a"), (uid, "git"))
    store.writer.catch_up(store.now_s)
    assert (len(store.writer._key_by_pid), store.due_in_s()) == (1, None)
    store.end_all()
    assert store.due_in_s() == 0.0
    store.run()
    assert len(list(folder.glob("*/git.json"))) == 2


def test_what_is_too_long_or_too_much_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    store: Store,
) -> None:
    monkeypatch.setattr(definitions_store, "MAX_DEFINITIONS_BYTES", 10)
    monkeypatch.setattr(definitions_store, "MAX_WAITING", 1)
    store.give(b"x" * 11)
    assert "'git' are not kept: they have 11 bytes" in capsys.readouterr().err
    store.give(b"x" * 10)
    store.give(b"y" * 10)  # another version of the same
    assert len(store.writer._waiting) == 1
    store.give(b"x", (BOB, "git"))
    assert list(store.writer._waiting) == [GIT]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tools":7}', b"\xff", b"[" * 100_000])
def test_a_file_that_cannot_be_read_is_no_definition(folder: Path, content: bytes) -> None:
    (folder / str(ALICE)).mkdir()
    (folder / str(ALICE) / "git.json").write_bytes(content)
    assert definitions_store.read(*GIT) is None


def test_a_file_over_the_bound_is_not_read(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / str(ALICE)).mkdir()
    (folder / str(ALICE) / "git.json").write_bytes(listing("a"))
    assert definitions_store.read(*GIT) is not None
    monkeypatch.setattr(definitions_store, "MAX_DEFINITIONS_BYTES", len(listing("a")) - 2)
    assert definitions_store.read(*GIT) is None


def test_files_of_former_members_and_agents_are_removed(store: Store, folder: Path) -> None:
    plain = AccessRule(uids=(ALICE,), gids=(), inherits=())
    closed = AccessRule(uids=(BOB,), gids=(), inherits=(), is_member=True)
    unlisted = AccessRule(uids=(), gids=(7,), inherits=(), is_member=True)
    by_server = {**ADMISSIONS.by_server, "plain": plain, "closed": closed, "unlisted": unlisted}
    kept = ["1000/git.json", "1001/closed.json", "1000/unlisted.json", "1002/git.json"]
    removed = [
        "1000/plain.json",  # no hub has it now
        "1000/closed.json",  # another agent's
        "1000/no-server.json",
        "1000/.git.json",  # of a writer that was killed
        "4711/git.json",
        "x/git.json",
    ]
    for name in (*kept, *removed):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(listing("a"))
    store.writer.prune(AccessList(by_server=by_server))
    assert store.due_in_s() == 0.0
    store.run()
    found = [str(path.relative_to(folder)) for path in folder.glob("*/*")]
    assert sorted(found) == sorted(kept)
    assert not (folder / "4711").exists()


def test_no_file_is_written_while_others_are_removed(store: Store, folder: Path) -> None:
    store.give(listing("a"))
    store.writer.catch_up(store.now_s)
    store.writer.prune(ADMISSIONS)
    store.writer.catch_up(store.now_s)
    assert list(store.writer._key_by_pid.values()) == [GIT]
    store.end_all()
    store.give(listing("b"), (BOB, "notes"))
    store.writer.catch_up(store.now_s)
    store.writer.catch_up(store.now_s)
    assert list(store.writer._key_by_pid.values()) == [definitions_store._PRUNE]
    store.end_all()
    store.run()
    assert len(list(folder.glob("*/*.json"))) == 2


def test_without_the_folder_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, store: Store, folder: Path
) -> None:
    monkeypatch.setattr(definitions_store, "FOLDER", folder / "none")
    store.writer.prune(ADMISSIONS)
    store.run()
    store.give(listing("a"))
    store.run()
    assert definitions_store.read(*GIT) is None
