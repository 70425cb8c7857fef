"""Context of an entry that is wrapped: variables, programs, files, folders of its person."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.env_file import parse_env_file
from mcpwrap.config.migration import entry, path_grants, projects, unprivileged
from mcpwrap.config.migration.draft import (
    Draft,
    EntryContext,
    MigrationError,
    ResolvedCommand,
)
from mcpwrap.config.migration.variable_expansion import PROJECT_VARIABLES, filled_in
from mcpwrap.core.secrets.at_rest import MAX_SECRET_BYTES
from mcpwrap.errors import UsageError
from mcpwrap.machine.agent_files import files, own_program, programs, project_lists

_RUN_PROJECTS = {"uv", "poetry"}  # these run programs from `.venv`


def around(who: FileOwner, found: DiscoveredFile, listed: ListedServer) -> EntryContext:
    """Return the context of an entry, as far as its file and its person's environment give it."""
    home = who.variables["HOME"]
    project = base = listed.at[1] if listed.at[0] == "projects" else found.project
    if isinstance(listed.launch, StdioTransport) and listed.launch.cwd.startswith("/"):
        base = listed.launch.cwd
    # The folder that is open in the agent which may have started this program is not the entry's.
    own = {name: text for name, text in who.environ.items() if name not in PROJECT_VARIABLES}
    given = {"userHome": home} | (dict.fromkeys(PROJECT_VARIABLES, project) if project else {})
    known = EntryContext(
        account=who.account,
        home=home,
        base=base,
        project=project,
        variables={**own, **given},
    )
    within = Path(found.project or base or home)  # a project's file may name any `cwd`
    return replace(known, env_file=_env_file(listed, known, within, who.uid))


def with_projects(
    context: EntryContext, found: DiscoveredFile, listed: ListedServer, uid: int
) -> EntryContext:
    """Return the context with the access to the open project that an entry needs.

    An entry of a project for which no folder can be listed gets a fixed folder, as far as it names
    one.

    Raises:
        MigrationError: it is a line of `mcpwrap run` without a command.
    """
    launch = listed.launch
    if isinstance(launch, StdioTransport):
        launch = entry.without_run(launch)
    if not isinstance(launch, StdioTransport):
        return context
    if (access := projects.access_for(launch, context)) is None:
        return context
    project, home = context.project, context.home
    known = [project] if project else _known_projects(found, home)
    lists = projects.proposed(project_lists.lists_for(known, home, uid), context)
    if not project:
        here = dict.fromkeys(PROJECT_VARIABLES, ".")  # with `projects` it is started there
        variables = {**context.variables, **here}
        return replace(context, access=replace(access, lists=lists), variables=variables)
    if not lists:
        return context
    top = project_lists.top_of_project(project, home)
    return replace(context, access=replace(access, lists=lists), project=top)


def _known_projects(found: DiscoveredFile, home: str) -> list[str]:
    data = found.opened.document.data if found.opened else None
    return [path for path in projects.known_to_agent(data) if projects.is_usual(path, home)]


def _env_file(
    listed: ListedServer, context: EntryContext, within: Path, uid: int
) -> dict[str, str] | None:
    """Return the variables of the env file that an entry names, if it is below `within`."""
    value = listed.entry.value
    said = value.get(entry.ENV_FILE) if isinstance(value, dict) else None
    path = filled_in(said, context.variables) if isinstance(said, str) else None
    if not path:
        return None
    whole = Path(context.base or context.home, path)
    content = files.read(whole, uid, within=within, max_bytes=MAX_SECRET_BYTES)
    if not isinstance(content, bytes):
        return None
    try:
        return parse_env_file(content.decode(), path)
    except (UnicodeDecodeError, UsageError):
        return None


def expect_no_links(draft: Draft) -> None:
    """Refuse one entry here for which root would refuse the whole proposal.

    Raises:
        MigrationError: a workspace folder is behind a symbolic link.
    """
    for folder in (*draft.server.workspace, *draft.server.projects):
        if (real := programs.real(folder.path)) != folder.path:
            raise MigrationError(
                f"the folder {folder.path!a} is behind a symbolic link, and links are not followed;"
                f" write the path that it leads to, {real!a} [E-WRAP-LINKED-FOLDER]"
            )


def seen(launch: StdioTransport, context: EntryContext, who: FileOwner) -> EntryContext:
    """Return the context with the program and the paths of a stdio entry, as they are on disk."""
    search = who.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    base = context.base or context.home
    paths = [*path_grants.named_paths(launch, context), *([context.base] if context.base else [])]
    program = programs.program(launch.command, base, context.home, search)
    if program and Path(program.path).name in _RUN_PROJECTS:
        program = programs.with_environments(program, paths, context.home, search)
    return replace(
        context,
        program=program,
        places=programs.path_infos(paths, context.home, who.uid),
    )


def seen_by_run(launch: StdioTransport, context: EntryContext, who: FileOwner) -> EntryContext:
    """Return the context of a program that `mcpwrap run` will start under the person's account.

    Its program has the folders of the environments that it runs: `run` finds only its own.
    """
    command = unprivileged.launcher_of(launch)
    search = who.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    base = context.base or context.home
    paths = [*path_grants.named_paths(launch, context), *([context.base] if context.base else [])]
    program = None
    if programs.is_found(command, base, search):
        program = ResolvedCommand(command)
        if Path(command).name in _RUN_PROJECTS:
            with suppress(MigrationError):  # of use only where another account starts it
                program = programs.with_environments(program, paths, context.home, search)
    own = programs.path_infos(paths, context.home, who.uid)
    return replace(
        context,
        program=program,
        places={**programs.folders_of_others(paths), **own},
        own_code=own_program.own_code(sys.argv[0]),
    )
