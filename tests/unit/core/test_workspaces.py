"""Which mounts a wrapper gets, in which order."""

import pytest

from mcpwrap.core.spec import Folder, Workspaces
from mcpwrap.core.workspaces import HELD, Kind, Layer, layers

RW, RO, PIN, HOLD = Kind.SHOW_WRITABLE, Kind.SHOW, Kind.PIN, Kind.HOLD


def made(*folders: tuple[str, bool], protect: bool = False) -> list[tuple[str, Kind]]:
    wanted = tuple(Folder(path, is_writable) for path, is_writable in folders)
    all_of_them = layers(Workspaces(folders=wanted, protect=protect, uids=(), gids=()))
    return [(layer.path, layer.kind) for layer in all_of_them]


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ([("/a/b", True)], [("/a/b", RW)]),
        ([("/a/b", False)], [("/a/b", RO)]),
        ([("/a/c", True), ("/a/b", False)], [("/a/b", RO), ("/a/c", RW)]),
        # what lies deeper comes later, whatever the order in the file
        ([("/a/b/c", False), ("/a/b", True)], [("/a/b", RW), ("/a/b/c", RO)]),
        # a name that only begins alike lies beside, although its text sorts between
        (
            [("/a/b/c", True), ("/a/b-c", True), ("/a/b", True)],
            [("/a/b", RW), ("/a/b/c", RW), ("/a/b-c", RW)],
        ),
        # who may rename d could put another c/d/e in place of the one that is read-only
        (
            [("/a/b", True), ("/a/b/c/d/e", False)],
            [("/a/b", RW), ("/a/b/c", PIN), ("/a/b/c/d", PIN), ("/a/b/c/d/e", RO)],
        ),
        # nobody renames anything in a read-only one
        ([("/a/b", False), ("/a/b/c/d", True)], [("/a/b", RO), ("/a/b/c/d", RW)]),
        # the innermost decides
        (
            [("/a/b", False), ("/a/b/c", True), ("/a/b/c/d/e", False)],
            [("/a/b", RO), ("/a/b/c", RW), ("/a/b/c/d", PIN), ("/a/b/c/d/e", RO)],
        ),
        # two ways through one folder pin it once, before both
        (
            [("/a/b", True), ("/a/b/c/d", False), ("/a/b/c/e", False)],
            [("/a/b", RW), ("/a/b/c", PIN), ("/a/b/c/d", RO), ("/a/b/c/e", RO)],
        ),
    ],
)
def test_what_lies_deeper_comes_later(
    folders: list[tuple[str, bool]], expected: list[tuple[str, Kind]]
) -> None:
    assert made(*folders) == expected


def test_in_a_writable_folder_what_runs_code_is_held_and_pinned() -> None:
    held = made(("/a/b", True), protect=True)
    assert held[:3] == [("/a/b", RW), ("/a/b/.git", PIN), ("/a/b/.git/hooks", HOLD)]
    assert held[3:] == [(f"/a/b/{name}", HOLD) for name in HELD[1:]]


def test_in_a_read_only_folder_nothing_need_be_held() -> None:
    assert made(("/a/b", False), protect=True) == [("/a/b", RO)]


def test_what_is_given_by_name_lies_over_what_is_held() -> None:
    given = made(("/a/b", True), ("/a/b/.vscode", True), protect=True)
    assert given.index(("/a/b/.vscode", HOLD)) < given.index(("/a/b/.vscode", RW))
    assert given.count(("/a/b/.git", PIN)) == 1


def test_a_layer_is_known_by_path_and_kind() -> None:
    assert Layer("/a", PIN) != Layer("/a", HOLD)
