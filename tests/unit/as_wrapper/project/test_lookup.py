"""Lookup of a session's project, in folders that another process changes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.as_wrapper.project import agent_folder, lookup
from mcpwrap.as_wrapper.project.agent_folder import AgentFolder
from mcpwrap.as_wrapper.project.lookup import ProjectQuery
from mcpwrap.core.project import NoProjectError
from mcpwrap.core.wire.server_files import Folder, Workspaces

ME = os.geteuid()


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """Return a listed folder with a repository, a worktree, a folder and links."""
    top = tmp_path / "src"
    (top / "repo/.git").mkdir(parents=True)
    (top / "repo/sub/deep").mkdir(parents=True)
    (top / "repo/inner/.jj").mkdir(parents=True)
    (top / "work").mkdir()
    (top / "work/.git").write_text("gitdir: /elsewhere\n")
    (top / "plain/sub").mkdir(parents=True)
    (top / "link").symlink_to("repo")
    (tmp_path / "other").mkdir()
    return top


def listing(path: str) -> Workspaces:
    listed = Folder(path, is_writable=True)
    return Workspaces(folders=(), projects=(listed,), protect=True, uids=(), gids=())


def found(src: Path, folder: Path | str, *, of: Path | None = None) -> tuple[str, str]:
    """Return project and current folder of an agent in `folder`; `of` is what it has open."""
    info = (of or Path(folder)).stat()
    query = ProjectQuery(path=str(folder), device=info.st_dev, inode=info.st_ino)
    with lookup.found("files", query, listing(str(src))) as (project, fd):
        assert os.path.samestat(os.fstat(fd), Path(project.path).stat())
        return project.path.removeprefix(str(src)), project.cwd.removeprefix(str(src))


@pytest.mark.parametrize(
    ("folder", "project"),
    [
        ("repo", "/repo"),
        ("repo/sub/deep", "/repo"),
        ("repo/inner", "/repo/inner"),  # the innermost repository
        ("work", "/work"),  # a worktree's `.git` is a file, which is not read
        ("plain/sub", "/plain/sub"),
    ],
)
def test_the_project_is_the_innermost_repository_or_the_folder(
    src: Path, folder: str, project: str
) -> None:
    assert found(src, src / folder) == (project, f"/{folder}")


def test_the_list_itself_is_a_project_only_as_a_repository(src: Path) -> None:
    with pytest.raises(NoProjectError, match="src has all projects in it: start the agent in one"):
        found(src, src)
    (src / ".git").mkdir()
    assert found(src, src) == ("", "")
    assert found(src, src / "plain") == ("", "/plain")


REFUSED: list[tuple[str, Callable[[Path], object], str]] = [
    ("link", lambda _: None, "src/link: is behind a symbolic link"),
    ("link/sub", lambda _: None, "src/link/sub: is behind a symbolic link"),
    ("gone", lambda src: (src / "repo/sub/gone").mkdir(), "src/gone: does not exist"),
    ("repo/../../other", lambda _: None, "is not a path in its shortest form"),
    ("repo/./sub", lambda _: None, "is not a path in its shortest form"),
    ("plain\n", lambda src: (src / "plain\n").touch(), r"src/plain\\n: is behind a symbolic link"),
]


@pytest.mark.parametrize(("folder", "make", "why"), REFUSED, ids=[str(n) for n in range(6)])
def test_a_path_is_followed_name_by_name_and_never_by_a_link(
    src: Path, folder: str, make: Callable[[Path], object], why: str
) -> None:
    make(src)
    with pytest.raises(NoProjectError, match=why):
        found(src, f"{src}/{folder}", of=src / "repo")


def test_another_folder_in_its_place_is_no_project(src: Path) -> None:
    with pytest.raises(NoProjectError, match="is another file system, or was replaced"):
        found(src, src / "plain", of=src / "repo")


@pytest.mark.parametrize(
    ("path", "proposed"),
    [
        ("/home/alice/other", "/home/alice/other:rw"),  # a home cannot be listed
        ("/home/alice/code/x", "/home/alice/code:rw"),
        ("/home/alice/source", "/home/alice/source:rw"),
        ("/", "/:rw"),
    ],
)
def test_a_folder_outside_of_the_list_is_told_with_the_line_to_add(
    path: str, proposed: str
) -> None:
    with (
        pytest.raises(NoProjectError) as refused,
        lookup.found("files", ProjectQuery(path=path), listing("/home/alice/src")),
    ):
        pass
    line = f'have root add "{proposed}" to `projects` of [mcp_servers.files.mcpwrap]'
    assert str(refused.value) == (
        f"{path} is in no folder of `projects`: {line}, and run `sudo mcpwrap apply`"
    )


# ------------------------------------------------------------------------------ agent's folder
def query(fd: int | None, *, pinned: str = "", of_others: str = "") -> ProjectQuery:
    folder = AgentFolder(fd=fd, pinned=pinned, agent_uid=ME)
    return agent_folder.query(folder, {of_others: ME + 1} if of_others else {})


def test_an_agents_folder_is_looked_for_where_the_kernel_shows_it(src: Path) -> None:
    fd = os.open(src / "repo", os.O_RDONLY | os.O_DIRECTORY)
    info = os.fstat(fd)
    expected = ProjectQuery(path=f"{src}/repo", device=info.st_dev, inode=info.st_ino)
    assert query(fd) == expected
    (src / "repo").rename(src / "moved")
    assert query(fd).path == f"{src}/moved"
    assert query(None, pinned="/home/alice/src/a") == ProjectQuery(path="/home/alice/src/a")


def test_an_agent_without_a_folder_or_of_another_account_has_no_project(src: Path) -> None:
    with pytest.raises(NoProjectError, match="has no current folder that it may read"):
        query(None)
    fd = os.open(src, os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(NoProjectError, match=r"/src belongs to another account than this agent's"):
        query(fd, of_others=str(src))
    odd = src / "a\nb"
    odd.mkdir()
    with pytest.raises(NoProjectError, match="a character that is not printable"):
        query(os.open(odd, os.O_RDONLY | os.O_DIRECTORY))
    for fd in (os.open(src, os.O_PATH), os.pipe()[0]):
        with pytest.raises(ValueError, match="a descriptor that"):
            query(fd)
