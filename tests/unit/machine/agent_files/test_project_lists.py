"""Folder to list for a project, by the folders of a real home."""

import os
from pathlib import Path

import pytest

from mcpwrap.machine.agent_files.project_lists import lists_for, top_of_project

MINE = os.geteuid()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "alice"
    for folder in (
        "src/app/.git", "src/app/sub/deep", "src/notes", "own/.hg", "plain", "data/team/x/.jj",
    ):  # fmt: skip
        (home / folder).mkdir(parents=True)
    (home / "src/worktree").mkdir()
    (home / "src/worktree/.git").touch()
    (home / "link").symlink_to("src")
    (home / "src/file").touch()
    return home


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("src/app", "src"),
        ("src/app/sub/deep", "src"),  # in a repository
        ("src/worktree", "src"),
        ("src/notes", "src"),
        ("link/app", "src"),  # a list is without links
        ("data/team/x", "data/team"),
        ("own", "own"),  # the folder above is the home
        ("plain", None),  # it would not count as one project
        ("", None),
        ("..", None),
        ("src/gone", None),
        ("src/file", None),
        ("a\0b", None),
    ],
)
def test_the_folder_to_list(home: Path, folder: str, expected: str | None) -> None:
    found = lists_for([f"{home}/{folder}".rstrip("/")], str(home), MINE)
    assert found == ([f"{home}/{expected}"] if expected else [])


def test_each_is_listed_once(home: Path) -> None:
    folders = [f"{home}/{name}" for name in ("src/app", "own", "src/notes", "plain")]
    assert lists_for(folders, str(home), MINE) == [f"{home}/src", f"{home}/own"]


def test_nothing_of_another_account_is_listed(home: Path) -> None:
    assert lists_for([f"{home}/src/app"], str(home), MINE + 1) == []


def test_a_project_in_another_accounts_folder_is_listed_itself(home: Path, tmp_path: Path) -> None:
    """Outside the home."""
    (tmp_path / "shared/p/.git").mkdir(parents=True)
    expected = [f"{tmp_path}/shared"]
    assert lists_for([f"{tmp_path}/shared/p"], str(home), MINE) == expected
    if MINE == 0:  # only root gives folders away
        os.chown(tmp_path / "shared", 1, 1)
        assert lists_for([f"{tmp_path}/shared/p"], str(home), MINE) == [f"{tmp_path}/shared/p"]


def test_the_home_is_no_repository_of_all(home: Path) -> None:
    """Dotfiles are often one."""
    (home / ".git").mkdir()
    assert top_of_project(f"{home}/src/notes", str(home)) == f"{home}/src/notes"
    assert top_of_project(f"{home}/src/app/sub", str(home)) == f"{home}/src/app"
