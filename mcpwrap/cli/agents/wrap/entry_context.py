"""Context of an entry that is wrapped: its person's variables, programs, files and folders."""

from dataclasses import replace
from pathlib import Path

from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.env_file import parse_env_file
from mcpwrap.config.migration import entry, stdio_server
from mcpwrap.config.migration.draft import Draft, EntryContext, MigrationError
from mcpwrap.config.migration.variable_expansion import filled_in
from mcpwrap.core.secrets.at_rest import MAX_SECRET_BYTES
from mcpwrap.errors import UsageError
from mcpwrap.machine.agent_files import files, programs

_RUN_PROJECTS = {"uv", "poetry"}  # with what is in `.venv`


def around(who: FileOwner, found: DiscoveredFile, listed: ListedServer) -> EntryContext:
    """Return what surrounds an entry, as far as its file and its person say it."""
    home = who.variables["HOME"]
    project = base = listed.at[1] if listed.at[0] == "projects" else found.project
    if isinstance(listed.launch, StdioTransport) and listed.launch.cwd.startswith("/"):
        base = listed.launch.cwd
    given = {"userHome": home} | ({"workspaceFolder": project} if project else {})
    known = EntryContext(
        account=who.account,
        home=home,
        base=base,
        variables={**who.environ, **given},
    )
    within = Path(found.project or base or home)  # a project's file says `cwd` as it likes
    return replace(known, env_file=_env_file(listed, known, within, who.uid))


def _env_file(
    listed: ListedServer, context: EntryContext, within: Path, uid: int
) -> dict[str, str] | None:
    """Return the variables of the file that an entry names, below the folder that it belongs to."""
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
    """Refuse alone what root would refuse with all that is proposed beside it.

    Raises:
        MigrationError: a folder that it is given is behind a link.
    """
    for folder in draft.server.workspace:
        if (real := programs.real(folder.path)) != folder.path:
            raise MigrationError(
                f"it would be given {folder.path!a}, which is behind a symbolic link, and none is "
                f"followed; write what it leads to, {real!a}"
            )


def seen(launch: StdioTransport, context: EntryContext, who: FileOwner) -> EntryContext:
    """Return what surrounds a program, with what the machine says of it."""
    search = who.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    base = context.base or context.home
    paths = [*stdio_server.named_paths(launch, context), *([context.base] if context.base else [])]
    program = programs.program(launch.command, base, context.home, search)
    if program and Path(program.path).name in _RUN_PROJECTS:
        program = programs.with_environments(program, paths, context.home, search)
    return replace(
        context,
        program=program,
        places=programs.path_infos(paths, context.home, who.uid),
    )
