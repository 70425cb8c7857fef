"""Resolution of held symbolic links, before anything is mounted."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.core.mount_layout import MountKind, WorkspaceMount, layers
from mcpwrap.core.wire.server_files import Folder, Workspaces
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.mount import held_names

Make = Callable[[Path], object]


def link(name: str, text: str) -> Make:
    def make(top: Path) -> None:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(text.replace("TOP", str(top)))

    return make


def found(top: Path, *makes: Make) -> dict[str, str]:
    """Return the paths that held links lead to or through, with the link, relative to the top."""
    for make in makes:
        make(top)
    folder = Folder(str(top), is_writable=True)
    given = Workspaces(folders=(folder,), protect=True, uids=(), gids=())
    links = held_names.links_of(layers(given))
    ends = {
        end.replace(f"{top}/", ""): one.replace(f"{top}/", "")
        for end, one in links.link_by_end.items()
    }
    return {end: one for end, one in ends.items() if end != one}


@pytest.mark.parametrize(
    ("makes", "expected"),
    [
        ([], {}),
        ([link("src/x", "y"), link("README", "src")], {}),  # not held
        ([link("CLAUDE.md", "AGENTS.md")], {"AGENTS.md": "CLAUDE.md"}),
        ([link(".codex", "./src/../docs//")], {"docs": ".codex"}),
        ([link(".codex", "TOP/docs")], {"docs": ".codex"}),
        ([link(".codex", "/nowhere")], {"/nowhere": ".codex"}),
        # a server could replace each link on the path
        ([link(".codex", "a"), link("a", "b"), link("b", "c")], dict.fromkeys("abc", ".codex")),
        ([link(".codex", "up/x"), link("up", "..")], {"up": ".codex", "TOP/../x": ".codex"}),
        # after a link, `..` is the parent of its target, not of the link
        ([link(".codex", "a/../x"), link("a", "b/c")], {"a": ".codex", "b/x": ".codex"}),
        # in a held folder, and in a folder in it
        ([link(".git/hooks/pre-commit", "../../s")], {"s": ".git/hooks/pre-commit"}),
        ([link(".claude/a/b", "../../s")], {"s": ".claude/a/b"}),
        ([link(".claude/a/b/c", "../../../s")], {}),  # SECURITY.md: no deeper
    ],
)
def test_each_step_of_a_held_link_is_found(
    tmp_path: Path, makes: list[Make], expected: dict[str, str]
) -> None:
    absolute = {end.replace("TOP/..", str(tmp_path.parent)): one for end, one in expected.items()}
    assert found(tmp_path, *makes) == absolute


def test_a_loop_and_too_many_links_are_refused(tmp_path: Path) -> None:
    with pytest.raises(McpwrapError, match=r"/\.codex is a loop of symbolic links"):
        found(tmp_path, link(".codex", ".codex"))
    (tmp_path / ".codex").unlink()
    with pytest.raises(McpwrapError, match="one of too many files or links in held folders"):
        found(tmp_path, *(link(f".codex/{number}", "x") for number in range(257)))


def test_a_link_that_cannot_be_resolved_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(McpwrapError, match=r"/\.codex cannot be resolved: File name too long"):
        found(tmp_path, link(".codex", "x" * 300))


def test_a_name_that_is_not_text_is_escaped(tmp_path: Path) -> None:
    name = ".codex/\x1b[2J\udcff"
    with pytest.raises(
        McpwrapError, match=r"/\.codex/\\x1b\[2J\\udcff is a loop of symbolic links"
    ):
        found(tmp_path, link(name, "\x1b[2J\udcff"))


def test_long_ways_of_many_links_are_refused(tmp_path: Path) -> None:
    """Each of these paths is short enough for the kernel; to follow all would take minutes."""
    long = "/".join(["x/.."] * 700)
    links = [link(f".github/{number}", f"{long}/end") for number in range(30)]
    with pytest.raises(McpwrapError, match="one of too many links with long paths"):
        found(tmp_path, lambda top: (top / ".github/x").mkdir(parents=True), *links)


def test_names_that_exist_are_those_of_the_open_folder(tmp_path: Path) -> None:
    """Also when another folder has its path meanwhile."""
    for name in (".git/config", "a/file", "CLAUDE.md"):
        (tmp_path / "top" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "top" / name).touch()
    (tmp_path / "top/.envrc").symlink_to("nowhere")
    fd = os.open(tmp_path / "top", os.O_PATH)
    (tmp_path / "top").rename(tmp_path / "moved")
    (tmp_path / "top").mkdir()
    top = str(tmp_path / "top")
    given = (".git", ".git/config", ".git/hooks", "CLAUDE.md/x", ".envrc", "AGENTS.md")
    wanted = [WorkspaceMount(f"{top}/{name}", MountKind.HOLD) for name in given]
    found = [layer.path.removeprefix(f"{top}/") for layer in held_names.existing(wanted, top, fd)]
    os.close(fd)
    assert found == [".git", ".git/config", ".envrc"]


def test_a_name_of_which_the_kernel_does_not_tell_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".envrc").symlink_to(".envrc")
    fd = os.open(tmp_path, os.O_PATH)
    wanted = [WorkspaceMount(f"{tmp_path}/.envrc/x", MountKind.HOLD)]
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        held_names.existing(wanted, str(tmp_path), fd)
    os.close(fd)
