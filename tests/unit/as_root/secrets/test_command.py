"""Setting secrets on a file system that fails: all are set or none, and the error says which."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mcpwrap.as_root.secrets import command, store
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.root_files import NewFile
from mcpwrap.plan import paths

pytestmark = pytest.mark.usefixtures("store_folder")
LONG = "x" * 2048  # sealed, it is longer than any other file of the store


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """Have the kernel refuse to write more to a file, as it does where a disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def seen(folder: Path) -> dict[str, str]:
    """Return all files by their paths; locks are empty."""
    return {str(p): p.read_text() for p in folder.rglob("*") if p.is_file() and p.stat().st_size}


VERBS: dict[str, Callable[[], None]] = {
    "set": lambda: command.set_one("a", "KEY", LONG),
    "set another": lambda: command.set_one("a", "OTHER", LONG),
    "remove": lambda: command.remove("a", "KEY"),
    "rekey": lambda: command.rekey(None),
    "rotate": lambda: command.rotate("a", "KEY", LONG),
}


@pytest.mark.parametrize("size", [1, 600])  # nothing at all; all but the sealed value
@pytest.mark.parametrize("verb", VERBS)
def test_a_failed_write_changes_nothing(store_folder: Path, verb: str, size: int) -> None:
    command.set_one("a", "KEY", LONG)
    before = seen(store_folder)
    if (verb, size) != ("remove", 600):  # remove seals nothing
        with no_file_over(size), pytest.raises(McpwrapError, match="; nothing was changed"):
            VERBS[verb]()
        assert seen(store_folder) == before
    VERBS[verb]()  # the twin
    assert seen(store_folder) != before


def test_the_first_secret_leaves_no_store_key_behind(store_folder: Path) -> None:
    with no_file_over(600), pytest.raises(McpwrapError, match="; nothing was changed"):
        command.set_one("a", "KEY", LONG)
    assert seen(store_folder) == {}
    command.set_one("a", "KEY", LONG)
    assert store.take("a", ["KEY"])["KEY"].value == LONG


def test_of_several_values_all_are_set_or_none(store_folder: Path) -> None:
    values = {("a", "KEY"): "short value", ("b", "KEY"): LONG}
    with no_file_over(600), pytest.raises(OSError, match="File too large"):
        command.set_all(values)
    assert seen(store_folder) == {}
    command.set_all(values)
    assert store.take("a", ["KEY"])["KEY"].value == "short value"


@pytest.mark.parametrize(("in_the_way", "is_there"), [("SECRETS", False), ("", True)])
def test_files_beside_the_secrets_are_replaced_with_them(
    store_folder: Path, in_the_way: str, *, is_there: bool
) -> None:
    if in_the_way:
        (store_folder / f".{in_the_way}.new").mkdir()  # in the way of the temporary file
    beside = [NewFile(path=str(store_folder / "a.toml"), text="[mcp_servers.a]")]
    with suppress(IsADirectoryError):
        command.set_all({("a", "KEY"): LONG}, beside)
    assert (str(store_folder / "a.toml") in seen(store_folder)) == is_there
    assert (len(seen(store_folder)) > 1) == is_there


def test_a_rekey_that_cannot_drop_the_old_key_says_so(
    store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.set_one("a", "KEY", LONG)
    keys_file = store.keys_file

    def and_the_disk_is_full(keys: list[bytes]) -> NewFile:
        if len(keys) == 1:
            Path(paths.STORE).unlink()
            Path(paths.STORE).mkdir()
        return keys_file(keys)

    monkeypatch.setattr(store, "keys_file", and_the_disk_is_full)
    monkeypatch.setattr(store, "is_wrapped", lambda: False)
    with pytest.raises(
        McpwrapError, match="sealed with the new key, and the file still has the old"
    ):
        command.rekey(None)
