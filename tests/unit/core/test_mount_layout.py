"""Mounts of a wrapper, in order."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mcpwrap.core.mount_layout import (
    HELD,
    INSTRUCTIONS,
    MountKind,
    WorkspaceMount,
    held_in_project,
    is_held,
    is_writable_at,
    layers,
    leads_to_workspace,
    linked,
    of_project,
)
from mcpwrap.core.wire.server_files import Folder, Workspaces

MANUAL = Path(__file__).parents[3] / "docs/mcpwrap.toml.5.rst"
RW, RO, PIN, HOLD = MountKind.SHOW_WRITABLE, MountKind.SHOW, MountKind.PIN, MountKind.HOLD


def workspaces(
    *folders: tuple[str, bool], protect: bool = False, instructions: bool = False
) -> Workspaces:
    wanted = tuple(Folder(path, is_writable) for path, is_writable in folders)
    return Workspaces(
        folders=wanted, protect=protect, protect_instructions=instructions, uids=(), gids=()
    )


def made(
    *folders: tuple[str, bool], protect: bool = False, instructions: bool = False
) -> list[tuple[str, MountKind]]:
    all_of_them = layers(workspaces(*folders, protect=protect, instructions=instructions))
    return [(layer.path, layer.kind) for layer in all_of_them]


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ([("/a/b", True)], [("/a/b", RW)]),
        ([("/a/b", False)], [("/a/b", RO)]),
        ([("/a/c", True), ("/a/b", False)], [("/a/b", RO), ("/a/c", RW)]),
        # deeper paths come later, whatever the order in the file
        ([("/a/b/c", False), ("/a/b", True)], [("/a/b", RW), ("/a/b/c", RO)]),
        # a name with the same beginning is a sibling, although its text sorts between
        (
            [("/a/b/c", True), ("/a/b-c", True), ("/a/b", True)],
            [("/a/b", RW), ("/a/b/c", RW), ("/a/b-c", RW)],
        ),
        # a server that may rename d could put another c/d/e in place of the read-only one
        (
            [("/a/b", True), ("/a/b/c/d/e", False)],
            [("/a/b", RW), ("/a/b/c", PIN), ("/a/b/c/d", PIN), ("/a/b/c/d/e", RO)],
        ),
        # no server renames anything in a read-only one
        ([("/a/b", False), ("/a/b/c/d", True)], [("/a/b", RO), ("/a/b/c/d", RW)]),
        # the innermost decides
        (
            [("/a/b", False), ("/a/b/c", True), ("/a/b/c/d/e", False)],
            [("/a/b", RO), ("/a/b/c", RW), ("/a/b/c/d", PIN), ("/a/b/c/d/e", RO)],
        ),
        # two paths through one folder pin it once, before both
        (
            [("/a/b", True), ("/a/b/c/d", False), ("/a/b/c/e", False)],
            [("/a/b", RW), ("/a/b/c", PIN), ("/a/b/c/d", RO), ("/a/b/c/e", RO)],
        ),
    ],
)
def test_what_lies_deeper_comes_later(
    folders: list[tuple[str, bool]], expected: list[tuple[str, MountKind]]
) -> None:
    assert made(*folders) == expected


def test_in_a_writable_folder_what_runs_code_is_held_and_pinned() -> None:
    held = made(("/a/b", True), protect=True)
    assert held[:3] == [("/a/b", RW), ("/a/b/.git", PIN), ("/a/b/.git/hooks", HOLD)]
    assert [path for path, kind in held if kind is HOLD] == [f"/a/b/{name}" for name in HELD]
    pinned = {path for path, kind in held if kind is PIN}
    store = {"/a/b/.jj", "/a/b/.jj/repo", "/a/b/.jj/repo/store", "/a/b/.jj/repo/store/git"}
    assert pinned == {"/a/b/.git", "/a/b/.bare", "/a/b/.hg", "/a/b/.sl", *store}


def test_what_instructs_agents_has_a_switch_of_its_own() -> None:
    held = [("/a/b", RW), *[(f"/a/b/{name}", HOLD) for name in INSTRUCTIONS]]
    assert made(("/a/b", True), instructions=True) == held
    both = made(("/a/b", True), protect=True, instructions=True)
    assert both == made(("/a/b", True), protect=True) + held[1:]
    assert made(("/a/b", True)) == [("/a/b", RW)]  # the twin: both off


NAMED = """
.gemini .codex .kiro opencode.json .opencode .qwen .zed .amp .github/mcp.json .agents .devin .husky
.idea .devcontainer .yarnrc.yml .cargo/config.toml mise.toml .pre-commit-config.yaml .npmrc
pyproject.toml .envrc .mcp.json .claude/settings.json .cursor/mcp.json .vscode/tasks.json
.git/hooks/pre-commit .git/config .github/workflows .direnv lefthook.yml .bazelrc
HEAD .gitconfig .bare/config .bare/hooks/pre-commit .hg/hgrc-not-shared .sl/config
.jj/repo/store/git_target .jj/repo/store/git/config .tool-versions .python-version flake.nix
.vimrc .run/x.xml .goose/skills .cline/skills .crush/commands .openhands/setup.sh .warp/.mcp.json
.trae/mcp.json .kilo/kilo.json .roomodes .aiassistant/rules .Rprofile .irbrc .ghci .pdm-python
"""
OBEYED = """
AGENTS.md agents.md CLAUDE.md gemini.md WARP.md AmazonQ.md crush.md CRUSH.local.md .roorules
.augment-guidelines .continuerules .goosehints
"""
FREE = """
src/main.py Makefile package.json .git .git/index .git/HEAD .bare/HEAD .codexx a/.codex
config/app.toml hooks/use.ts objects/a tools/x
"""


def test_what_runs_code_by_being_there_is_held() -> None:
    assert [name for name in NAMED.split() if not is_held(name)] == []
    assert [name for name in OBEYED.split() if name not in INSTRUCTIONS] == []
    assert not set(HELD) & set(INSTRUCTIONS)
    assert len({*HELD, *INSTRUCTIONS}) == len(HELD) + len(INSTRUCTIONS)
    assert [name for name in FREE.split() if is_held(name)] == []


def test_the_manual_lists_what_is_held() -> None:
    manual = MANUAL.read_text()
    assert [name for name in HELD + INSTRUCTIONS if f"*{name}*" not in manual] == []


LINKED = [  # the target, and what is held besides
    ("/a/b/AGENTS.md", []),  # is held itself
    ("/a/b/.github/AGENTS.md", []),
    ("/a/b/docs", [("/a/b/docs", HOLD)]),
    ("/a/b/c/d/e", [("/a/b/c", PIN), ("/a/b/c/d", PIN), ("/a/b/c/d/e", HOLD)]),
    ("/a/b/ro/x", []),  # the server cannot write to any of these
    ("/etc/x", []),
    ("/a/b-x", []),
]


@pytest.mark.parametrize(("target", "expected"), LINKED)
def test_what_a_held_link_leads_to_is_held(
    target: str, expected: list[tuple[str, MountKind]]
) -> None:
    given = workspaces(
        ("/a/b", True), ("/a/b/ro", False), ("/a/x", True), protect=True, instructions=True
    )
    assert [(layer.path, layer.kind) for layer in linked(given, target)] == expected


@pytest.mark.parametrize("target", ["/a/b", "/a", "/a/x"])
def test_what_a_server_writes_to_as_a_whole_is_not_held_by_a_link(target: str) -> None:
    with pytest.raises(ValueError, match="it leads to a folder that the server can write to"):
        linked(workspaces(("/a/b", True), ("/a/x", True), protect=True), target)


def test_in_a_read_only_folder_nothing_need_be_held() -> None:
    assert made(("/a/b", False), protect=True) == [("/a/b", RO)]


def test_what_is_given_by_name_lies_over_what_is_held() -> None:
    given = made(("/a/b", True), ("/a/b/.vscode", True), protect=True)
    assert given.index(("/a/b/.vscode", HOLD)) < given.index(("/a/b/.vscode", RW))
    assert given.count(("/a/b/.git", PIN)) == 1


def test_a_layer_is_known_by_path_and_kind() -> None:
    assert WorkspaceMount("/a", PIN) != WorkspaceMount("/a", HOLD)


def test_in_a_listed_folder_nothing_is_held_for_the_wrapper() -> None:
    listed = Folder("/a/src", is_writable=True)
    given = replace(workspaces(("/a/src/x/.git", True), protect=True), projects=(listed,))
    made_of = [(layer.path, layer.kind) for layer in layers(given)]
    assert made_of[:2] == [("/a/src", RW), ("/a/src/x/.git", RW)]
    assert all(path.startswith("/a/src/x/.git/") for path, _ in made_of[2:])


def test_a_session_holds_the_names_of_its_project() -> None:
    listed = (Folder("/a/src", is_writable=True), Folder("/a/ro", is_writable=False))
    given = replace(workspaces(("/a/src/x/sub/w", True), ("/a/o", True)), projects=listed)
    given = replace(given, protect=True)
    own = of_project(given, Folder("/a/src/x", is_writable=True))
    assert own.folders == (Folder("/a/src/x", is_writable=True), given.folders[0])
    held = held_in_project(own, layers(own))
    assert [layer.path for layer in held if layer.kind is HOLD] == [f"/a/src/x/{n}" for n in HELD]
    assert WorkspaceMount("/a/src/x/sub", PIN) in held  # which leads to a workspace in it
    read_only = of_project(given, Folder("/a/ro/y", is_writable=False))
    assert held_in_project(read_only, layers(read_only)) == []


@pytest.mark.parametrize(
    ("target", "leads"),
    [
        ("/a/tools/hooks", True),  # sessions in other projects see it too
        ("/a/tools", True),
        ("/a/tools/.envrc", False),  # is held for all of them
        ("/a/ro/x", False),
        ("/a/src/x/y", False),
    ],
)
def test_a_held_link_of_a_project_leads_to_no_workspace(target: str, *, leads: bool) -> None:
    given = workspaces(("/a/tools", True), ("/a/ro", False), protect=True)
    given = replace(given, projects=(Folder("/a/src", is_writable=True),))
    assert leads_to_workspace(given, target) is leads


@pytest.mark.parametrize(
    ("project", "is_writable"),
    [("/a/ro/x", False), ("/a/ro/app", True), ("/a/ro/app/sub", True), ("/a/src/x/fix", False)],
)
def test_the_innermost_folder_says_whether_a_project_may_be_written(
    project: str, *, is_writable: bool
) -> None:
    lists = (Folder("/a/ro", is_writable=False), Folder("/a/src", is_writable=True))
    given = replace(workspaces(("/a/ro/app", True), ("/a/src/x/fix", False)), projects=lists)
    assert is_writable_at(given, project) is is_writable
