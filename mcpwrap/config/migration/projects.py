"""Projects that a converted server may see: whether its entry needs the open one, and `projects`.

An agent starts a raw server in the folder that is open. With `projects` the server starts there
too, and sees that project and no sibling.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mcpwrap.config import value_parsers
from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration import path_grants
from mcpwrap.config.migration.draft import Draft, EntryContext, ProjectAccess
from mcpwrap.config.migration.variable_expansion import PROJECT_VARIABLES, filled_in, names_in
from mcpwrap.config.model import Server, Workspace
from mcpwrap.core.mount_layout import is_below
from mcpwrap.core.project import PROJECT_REFERENCE, is_in

_Need = Literal["none", "project", "code"]
# Servers in common use, by package, program or command: what they need of the folder in which they
# are started. Those with "code" run code of it: dependencies, scripts, settings that are programs.
_NEED_BY_NAME: Mapping[str, _Need] = {
    **dict.fromkeys(
        (
            *("mcp-server-git", "serena", "serena-agent", "semgrep", "semgrep-mcp"),
            *("@modelcontextprotocol/server-filesystem", "mcp-server-filesystem"),
            *("@playwright/mcp", "mcp-server-playwright", "chrome-devtools-mcp"),
            *("task-master-ai", "cocoindex-code", "code-review-graph"),
        ),
        "project",
    ),
    **dict.fromkeys(
        (
            *("@eslint/mcp", "shadcn", "nx-mcp", "boost:mcp", "@angular/cli", "ng", "dart"),
            *("next-devtools-mcp", "prisma", "storybook-mcp", "@storybook/mcp", "devenv"),
            *("@biomejs/biome", "biome-mcp-server"),
        ),
        "code",
    ),
    **dict.fromkeys(
        (
            *("@upstash/context7-mcp", "@modelcontextprotocol/server-github", "mcp-server-fetch"),
            *("mcp-server-time", "@modelcontextprotocol/server-sequential-thinking"),
            *("@modelcontextprotocol/server-memory", "@modelcontextprotocol/server-slack"),
            *("@modelcontextprotocol/server-brave-search", "@brave/brave-search-mcp-server"),
            *("exa-mcp-server", "tavily-mcp", "firecrawl-mcp", "@notionhq/notion-mcp-server"),
            *("@sentry/mcp-server", "figma-developer-mcp", "mcp-atlassian", "@stripe/mcp"),
            *("@supabase/mcp-server-supabase", "awslabs.aws-documentation-mcp-server"),
        ),
        "none",
    ),
}
# Words between a launcher and the package that it starts, and options whose value is no package.
_BEFORE_PACKAGE = {"exec", "dlx", "x", "run", "tool", "artisan"}
_WITH_VALUE = {"--from", "--package", "-p", "-m", "--with", "--python", "--directory", "--project"}
_MODULES = "node_modules/"
_SPECIFIER = re.compile(r"[\[=<>~!;]")
# With one of these an argument is code, in which a path could be more than a path.
_CODE_OPTION = re.compile(r"-[a-z]*[ce]|--eval")
_HERE = {".", "./"}
_FROM_FOLDER = "--project-from-cwd"
# Folders in which nothing is a person's project.
_PROGRAMS = ("/usr/", "/bin/", "/opt/", "/etc/", "/snap/", "/nix/")
_MAX_LISTS = 4  # a longer list is no proposal that a person judges
_FOR_ROOT = "it is started in an empty folder: "


def access_for(launch: StdioTransport, context: EntryContext) -> ProjectAccess | None:
    """Return the access to the open project that an entry needs, still without lists.

    None: it needs none, or is for another fixed folder.
    """
    if launch.cwd and not _is_open_folder(launch.cwd, context):
        return None
    words = list(_words(launch))
    need = next((_NEED_BY_NAME[word] for word in words if word in _NEED_BY_NAME), None)
    is_needed = _names_open_folder(launch)
    if context.project:
        is_needed |= need != "none"
    else:
        is_needed |= need in {"project", "code"} and not _names_folder(launch)
    return ProjectAccess(runs_code=need == "code") if is_needed else None


def _is_open_folder(cwd: str, context: EntryContext) -> bool:
    folder = filled_in(cwd, {**context.variables, **dict.fromkeys(PROJECT_VARIABLES, ".")})
    if folder in _HERE:
        return True
    return bool(folder and context.project) and posixpath.normpath(folder or "") == context.project


def _names_open_folder(launch: StdioTransport) -> bool:
    """Return whether an entry names the folder that is open: `.`, or by the agent's variables."""
    values = (*map(_value, launch.args), launch.cwd)
    texts = (*values, *launch.env.values(), launch.command)
    return (
        _FROM_FOLDER in launch.args
        or any(value in _HERE for value in values)
        or any(name in PROJECT_VARIABLES for text in texts for name in names_in(text))
    )


def _value(arg: str) -> str:
    return arg.partition("=")[2] if arg.startswith("-") else arg


def _names_folder(launch: StdioTransport) -> bool:
    """Return whether an argument is a path of a person's: the server is for that one."""
    values = (_value(arg) for arg in launch.args if _MODULES not in arg)
    return any(value.startswith(("/", "~")) and not value.startswith(_PROGRAMS) for value in values)


def _words(launch: StdioTransport) -> Iterator[str]:
    """Yield the names by which an entry may start a known server: program, package, module."""
    yield posixpath.basename(launch.command)
    before = ""
    for arg in launch.args:
        yield _name(_value(arg) or arg)
        is_value = arg.startswith("-") or before in _WITH_VALUE
        if not is_value and arg not in _BEFORE_PACKAGE:
            return
        before = arg


def _name(word: str) -> str:
    """Return the name of a package without version and extras; of a path or URL, its last part."""
    if _MODULES in word:
        first, *rest = word.rpartition(_MODULES)[2].split("/")
        return f"{first}/{rest[0]}" if first.startswith("@") and rest else first
    name = word[:1] + word[1:].partition("@")[0]
    if "://" in name or name.startswith("/"):
        name = posixpath.basename(name).removesuffix(".git")
    return _SPECIFIER.split(name)[0].replace("_", "-").lower()


def known_to_agent(data: object) -> list[str]:
    """Return the projects that an agent's file lists: Claude Code and Codex do, by their paths."""
    listed = data.get("projects") if isinstance(data, Mapping) else None
    paths = listed if isinstance(listed, Mapping) else ()
    return [path for path in paths if isinstance(path, str) and path.startswith("/")]


def is_usual(path: str, home: str) -> bool:
    """Return whether a known project is below the home, and not in a hidden folder."""
    return is_below(path, home) and "/." not in path.removeprefix(home)


def proposed(folders: Iterable[str], context: EntryContext) -> tuple[str, ...]:
    """Return the folders to list, none in another; empty if they are too many to judge."""
    found = outermost(path for path in folders if _may_be_listed(path, context.home))
    return found if len(found) <= _MAX_LISTS else ()


def _may_be_listed(path: str, home: str) -> bool:
    try:
        value_parsers.workspace(f"{path}:rw")
    except value_parsers.BadValueError:
        return False
    return not is_in(home, path) and path_grants.is_harmless(path, home)


def outermost(folders: Iterable[str]) -> tuple[str, ...]:
    """Return the sorted folders without those that are in another."""
    found = sorted(set(folders))
    return tuple(path for path in found if not any(is_below(path, other) for other in found))


def in_arguments(launch: StdioTransport, context: EntryContext) -> Mapping[str, str]:
    """Return the variables for the arguments of an entry.

    The wrapper fills in the path of the project, which is the agent's choice: not into code.
    """
    if context.access is None:
        return context.variables
    is_code = any(map(_CODE_OPTION.fullmatch, launch.args))
    here = PROJECT_REFERENCE if context.access.lists and not is_code else "."
    return {**context.variables, **dict.fromkeys(PROJECT_VARIABLES, here)}


def is_shown(path: str, context: EntryContext) -> bool:
    """Return whether a session in the entry's own project sees a path anyway."""
    has_lists = context.access is not None and bool(context.access.lists)
    return has_lists and bool(context.project) and is_in(path, context.project)


def beside(
    launch: StdioTransport, context: EntryContext, workspace: Iterable[Workspace]
) -> tuple[StdioTransport, EntryContext]:
    """Return an entry without the lists of which a workspace shows all projects anyway."""
    access = context.access
    if access is None or not access.lists:
        return launch, context
    folders = [one.path for one in workspace]
    lists = tuple(path for path in access.lists if not any(is_in(path, one) for one in folders))
    if lists:
        return launch, replace(context, access=replace(access, lists=lists))
    args = tuple(arg.replace(PROJECT_REFERENCE, ".") for arg in launch.args)
    return replace(launch, args=args), replace(context, access=None)


def settings(context: EntryContext) -> tuple[Workspace, ...]:
    """Return the value of `projects`."""
    lists = context.access.lists if context.access else ()
    return tuple(Workspace(path, is_writable=True) for path in lists)


def notes(context: EntryContext) -> Iterator[str]:
    """Yield notes on the project, for the person and for root."""
    access = context.access
    if access is None:
        return
    if not access.lists:
        yield (
            f"{_FOR_ROOT}it needs the project that is open, so root adds the folder above your"
            f' projects to /etc/mcpwrap/conf.d/NAME.toml, as `projects = ["{context.home}/src:rw"]`'
        )
    for path in access.lists:
        yield f"it may write the project in {path} in which its agent starts it, and sees no other"
    if access.runs_code:
        yield "it runs code of that project: dependencies, scripts, settings"


def unseen(server: Server, wanted: Server) -> list[str]:
    """Return the lists of a wanted server in which an existing one sees no project."""
    there = [one.path for one in server.projects]
    return [one.path for one in wanted.projects if not any(is_in(one.path, path) for path in there)]


def merged(one: Draft, other: Draft) -> Draft:
    """Return one draft for two that differ only in the projects that they may see."""
    lists = outermost(each.path for each in (*one.server.projects, *other.server.projects))
    both: Sequence[str] = list(dict.fromkeys((*one.notes, *other.notes)))
    if lists:
        both = [note for note in both if not note.startswith(_FOR_ROOT)]
    projects = tuple(Workspace(path, is_writable=True) for path in lists)
    return replace(one, server=replace(one.server, projects=projects), notes=tuple(both))
