"""Mount layout of a wrapper, in order: agents' folders, and the names in them that are read-only.

Names that an agent's own tools run code from are held: they are read-only, and cannot be moved. A
folder that leads to one is pinned, because a server that renames it could put another in its place.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from msgspec.structs import replace

from mcpwrap.core.wire.server_files import Folder, Workspaces

# A folder in which git, or jj by git, keeps a repository. `commondir` leads to another folder's
# hooks and configuration; `modules` and `worktrees` have such files of their own.
_GIT = ("hooks", "config", "config.worktree", "commondir", "modules", "worktrees")
# Names at the top of a folder from which an agent, or a program of its account, runs code without
# being asked to. Files that are run on request are not included: sources, Makefiles, package.json.
# An agent's own folder is held as a whole. `config/agent_files/known_agents` takes no other file.
HELD = (
    # git and its like. With HEAD a folder without `.git` can be made a bare repository. `.bare` is
    # where worktrees side by side have theirs, and `.gitconfig` what `include.path` mostly names.
    *(f".git/{name}" for name in _GIT), *(f".bare/{name}" for name in _GIT), "HEAD", ".gitconfig",
    ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".sl/config", ".jj/repo/config.toml",
    ".jj/workspace-config.toml", ".jj/repo/store/git_target",
    *(f".jj/repo/store/git/{name}" for name in _GIT),
    # programs that the hooks of git run
    ".githooks", ".git-hooks", ".hooks", ".husky", ".pre-commit-config.yaml",
    ".pre-commit-config.yml", "prek.toml", ".overcommit.yml", ".trunk",
    "lefthook.yml", "lefthook.yaml",
    "lefthook.json", "lefthook.toml", "lefthook-local.yml", "lefthook-local.yaml", ".lefthook.yml",
    ".lefthook.yaml", ".lefthook-local.yml", ".lefthook-local.yaml", ".lefthook",
    # shells, when a user enters the folder. `.config` has mise's, lefthook's and others' too.
    ".envrc", ".direnv", ".config", "mise.toml", "mise.local.toml", "mise", ".mise.toml",
    ".mise.local.toml", ".mise", ".miserc.toml", ".tool-versions", ".autoenv", ".autoenv.zsh",
    "flake.nix", "flake.lock", "shell.nix", "devenv.nix", "devenv.local.nix", "devenv.yaml",
    "devbox.json",
    # agents
    ".mcp.json", ".claude", ".codex", ".github", ".cursor", ".gemini", ".agents", ".agent",
    ".devin", ".windsurf", "opencode.json", "opencode.jsonc", ".opencode", ".amp", ".qwen", ".kiro",
    ".clinerules", ".continue", ".roo", ".kilocode", ".junie", ".amazonq", ".factory",
    ".crush.json", "crush.json", ".crush", ".aider.conf.yml", ".aider.model.settings.yml",
    ".aider.model.metadata.json", ".goose", ".cline", ".roomodes", ".kilo", "kilo.json",
    "kilo.jsonc", ".kilocodemodes", ".aiassistant", ".augment", ".continuerc.json", ".openhands",
    ".warp", ".trae", ".tabnine", ".rovodev", ".vibe", ".idx",
    # editors
    ".vscode", ".idea", ".zed", ".devcontainer", ".devcontainer.json", ".helix", ".exrc", ".nvimrc",
    ".nvim.lua", ".lazy.lua", ".vimrc", ".gvimrc", ".lvimrc", ".dir-locals.el",
    ".dir-locals-2.el", ".run", ".fleet", ".theia",
    # package managers, compilers and build tools: which programs, plugins and sources they use
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnpmfile.cjs", ".pnpmfile.mjs",
    "pnpm-workspace.yaml", ".python-version", ".python-versions", "hatch.toml", "poetry.toml",
    "pdm.toml", ".pdm-python",
    "bunfig.toml", ".cargo", "rust-toolchain", "rust-toolchain.toml", "pyproject.toml", "uv.toml",
    ".bundle", ".mvn", ".bazelrc", ".bazeliskrc", ".bazelversion",
    # interpreters, when they are started in the folder
    ".Rprofile", ".Renviron", ".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".iex.exs", ".octaverc",
)  # fmt: skip
# Files that agents read as a person's instructions: all later sessions obey what a server writes.
INSTRUCTIONS = (
    "AGENTS.md", "AGENTS.override.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md",
    "QWEN.md", "WARP.md", "AmazonQ.md", "CRUSH.md", "CRUSH.local.md", ".rules", ".cursorrules",
    ".windsurfrules", ".goosehints", ".roorules", ".kilocoderules", ".continuerules",
    ".augment-guidelines", ".openhands_instructions", ".agent.md",
    # in other capitals, which Crush reads as well
    "agents.md", "Agents.md", "gemini.md", "crush.md", "crush.local.md", "Crush.md",
    "Crush.local.md",
)  # fmt: skip


REPORTS = "/run/mcpwrap/ws"  # in the wrapper's mount namespace alone
REPORT = f"{REPORTS}/refused"  # why workspaces cannot be shown; empty if they are
# Of each folder in `projects` that is mounted, the UID of its owner: JSON, by path.
PROJECTS_REPORT = f"{REPORTS}/projects"
# In the folder of a wrapper's first session slot: that wrapper cannot make a mount namespace, so
# the folders of `projects` are not mounted.
NO_NAMESPACES = "no-namespaces"


class MountKind(Enum):
    """Operation at a path."""

    SHOW_WRITABLE = "show, writable"
    SHOW = "show, read-only"
    PIN = "pin"  # a folder stays writable; a plain file in its place is held
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class WorkspaceMount:
    """One mount. A pinned or held path need not exist."""

    path: str
    kind: MountKind


@lru_cache(maxsize=1)
def layers(workspaces: Workspaces) -> tuple[WorkspaceMount, ...]:
    """Return the mounts in the order in which they are made: deeper paths come later."""
    names: tuple[str, ...] = HELD if workspaces.protect else ()
    if workspaces.protect_instructions:
        names += INSTRUCTIONS
    made: dict[WorkspaceMount, None] = {}  # in order, each once
    shown = sorted((*workspaces.folders, *workspaces.projects), key=_parts)
    for folder in shown:
        around = [other for other in workspaces.folders if is_below(folder.path, other.path)]
        if around and (innermost := max(around, key=_parts)).is_writable:
            made |= dict.fromkeys(_pins(innermost.path, folder.path))
        kind = MountKind.SHOW_WRITABLE if folder.is_writable else MountKind.SHOW
        made[WorkspaceMount(folder.path, kind)] = None
        if folder.is_writable and folder not in workspaces.projects:  # each session holds its own
            made |= dict.fromkeys(_held(folder, names))
    return tuple(made)


def _parts(folder: Folder) -> list[str]:
    return folder.path.split("/")


def of_project(workspaces: Workspaces, project: Folder) -> Workspaces:
    """Return the workspaces of one session within its project: the project, and those in it."""
    inside = (each for each in workspaces.folders if is_below(each.path, project.path))
    return replace(workspaces, folders=(project, *inside), projects=())


def leads_to_workspace(workspaces: Workspaces, target: str) -> bool:
    """Return whether a held link of a project leads to what the server can write in a workspace.

    To hold it there would be of no use: sessions in other projects see the same workspace.
    """
    try:
        return bool(linked(replace(workspaces, projects=()), target))
    except ValueError:
        return True


def is_writable_at(workspaces: Workspaces, project: str) -> bool:
    """Return whether the innermost listed folder or workspace around a project may be written."""
    around = (
        each
        for each in (*workspaces.folders, *workspaces.projects)
        if each.path == project or is_below(project, each.path)
    )
    return max(around, key=_parts).is_writable


def held_in_project(
    workspaces: Workspaces, among: Iterable[WorkspaceMount]
) -> list[WorkspaceMount]:
    """Return those of the mounts that pin or hold a name of what `of_project` returned.

    Those in a workspace inside the project are held in the wrapper's namespace already.
    """
    _, *inside = workspaces.folders
    return [
        layer
        for layer in among
        if (layer.kind is MountKind.PIN or layer.kind is MountKind.HOLD)
        and not any(is_below(layer.path, folder.path) for folder in inside)
    ]


def is_held(path: str) -> bool:
    """Return whether `protect` holds this path, relative to a workspace, or a folder above it."""
    return any(path == name or is_below(path, name) for name in HELD)


def linked(workspaces: Workspaces, target: str) -> list[WorkspaceMount]:
    """Return the further mounts if a held name is a symbolic link to `target`, which is absolute.

    Raises:
        ValueError: a server can write there, and that cannot be held.
    """
    held = [layer.path for layer in layers(workspaces) if layer.kind is MountKind.HOLD]
    if any(path == target or is_below(target, path) for path in held):
        return []
    writable = [folder.path for folder in workspaces.folders if folder.is_writable]
    if any(path == target or is_below(path, target) for path in writable):
        raise ValueError("it leads to a folder that the server can write to")
    around = [folder for folder in workspaces.folders if is_below(target, folder.path)]
    innermost = max(around, key=lambda folder: len(folder.path), default=None)
    if innermost is None or not innermost.is_writable:
        return []
    return [*_pins(innermost.path, target), WorkspaceMount(target, MountKind.HOLD)]


def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies in a folder; a folder does not lie in itself."""
    return path.startswith(f"{folder}/")


def _held(folder: Folder, names: tuple[str, ...]) -> Iterator[WorkspaceMount]:
    for name in names:
        path = f"{folder.path}/{name}"
        yield from _pins(folder.path, path)
        yield WorkspaceMount(path, MountKind.HOLD)


def _pins(folder: str, path: str) -> Iterator[WorkspaceMount]:
    """Yield a pin for every folder between the two."""
    *between, _ = path.removeprefix(f"{folder}/").split("/")
    for count in range(1, len(between) + 1):
        yield WorkspaceMount("/".join([folder, *between[:count]]), MountKind.PIN)
