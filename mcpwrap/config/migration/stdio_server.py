"""Conversion of a program that an agent starts into a server definition.

Notes warn why the program may not work under an account of its own, as far as its entry shows.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration import path_grants, projects
from mcpwrap.config.migration.draft import Draft, EntryContext, MigrationError
from mcpwrap.config.migration.secret_detection import secret_arguments
from mcpwrap.config.migration.variable_expansion import (
    ExtractedSecrets,
    filled_in,
    secret_variable,
    template,
)
from mcpwrap.config.model import Destination, Group, Local, Server, Template, Workspace
from mcpwrap.core import environment
from mcpwrap.core.environment import PATH

# Programs that download what they run, and the registry.
_FETCHERS = {
    **dict.fromkeys(("npx", "npm", "pnpx", "bunx", "bun", "pnpm", "yarn"), "npm"),
    **dict.fromkeys(("uvx", "uv", "pipx"), "pypi"),
}
_PRIVILEGED = {"sudo", "pkexec", "flatpak", "snap"}
_DAEMONS = {"docker", "podman", "nerdctl"}
_SHELLS = {"sh", "bash", "dash", "zsh", "fish"}
_SHELL_LINE_OPTION = re.compile(r"-[a-z]*c")  # with it a shell runs its argument, not a file
_URL = re.compile(
    r"[a-z][a-z+]*://([^/@\s]*@)?(?P<host>[A-Za-z0-9.-]+(:[0-9]+)?)(?=[/?#]|$)(?!\S*@)"
)
_THIS_MACHINE = re.compile(r"localhost\b|127\.")


def expanded(launch: StdioTransport, context: EntryContext) -> StdioTransport:
    """Return an entry with the values that its agent fills into command, arguments and folder.

    Raises:
        MigrationError: a value is not known, or can be a secret.
    """
    own = context.variables
    filled = projects.in_arguments(launch, context)
    args = [_known(arg, f"argument {n}", filled) for n, arg in enumerate(launch.args, start=1)]
    command = _known(launch.command, "command", own)
    cwd = "" if context.access else _known(launch.cwd, "folder", own)  # it is the project's
    return replace(
        launch,
        command=path_grants.at_home(command, context),
        args=tuple(path_grants.at_home(arg, context) for arg in args),
        env={name: path_grants.at_home(text, context) for name, text in launch.env.items()},
        cwd=path_grants.absolute(cwd, context),
    )


def _known(text: str, what: str, variables: Mapping[str, str]) -> str:
    if name := secret_variable(text, variables):
        raise MigrationError(
            f"its {what} has your variable {name}, which can be a secret that every account could "
            "read there; pass it as a variable, if the server takes one",
            code="E-MIGRATE-ARGUMENT-SECRET",
        )
    value = filled_in(text, variables)
    if value is None:
        raise MigrationError(
            f"its {what} has a reference that only the agent can resolve; write the value",
            code="E-MIGRATE-REFERENCE",
        )
    return value


def draft(
    name: str,
    launch: StdioTransport,
    context: EntryContext,
    egress: tuple[Destination | Group, ...] = (),
) -> Draft:
    """Return the server that an `expanded` entry becomes.

    Raises:
        MigrationError: the entry cannot be converted.
    """
    program = context.program
    if is_container(launch):
        raise MigrationError(
            "a daemon would start its container as root, not under the server's account; "
            "install the program without a container, if that exists",
            code="E-MIGRATE-CONTAINER",
        )
    if posixpath.basename(launch.command) == "env":
        raise MigrationError(
            "env starts another program; write that as `command`", code="E-MIGRATE-ENV-COMMAND"
        )
    expect_no_privileges(launch)
    if program is None:
        raise MigrationError(
            f"{launch.command!a} is not found in PATH; install it, or write its absolute path",
            code="E-MIGRATE-NOT-FOUND",
        )
    if found := secret_arguments(launch.args):
        raise MigrationError(
            f"its argument {found[0]} holds a secret, and every account can read arguments; "
            "pass it as a variable, if the server takes one",
            code="E-MIGRATE-ARGUMENT-SECRET",
        )
    launch, context = projects.beside(launch, context, _workspace(launch, context, program.folders))
    kept = ExtractedSecrets()
    env = {key: template(key, text, context.variables, kept) for key, text in launch.env.items()}
    group = _FETCHERS.get(posixpath.basename(launch.command))
    any_value = tuple(name for name in launch.inherits if _is_of_no_kind(name, context))
    server = Server(
        name=name,
        runs=Local(
            command=program.path,
            args=launch.args,
            cwd=_folder(launch, context),
            env=_with_search(env, program.search),
            inherits=tuple(name for name in launch.inherits if name not in any_value),
            inherits_any=any_value,
        ),
        agents=(context.account,),
        egress=tuple(dict.fromkeys([*((Group(group),) if group else ()), *egress])),
        workspace=_workspace(launch, context, program.folders),
        projects=projects.settings(context),
        cache=group is not None,
    )
    return Draft(
        server=server, value_by_key=kept.value_by_key, missing=tuple(kept.missing),
        variables_by_key=kept.variables_by_key,
        notes=(
            *_migration_notes(launch, server.egress, context.variables),
            *projects.notes(context),
            *_relative_path_notes(launch, context),
            *_folders_of_files(launch, context),
            *(f"your agent chooses the value of {name} at each start" for name in any_value),
        ),
    )  # fmt: skip


def is_fetcher(command: str) -> bool:
    """Return whether a program downloads what it runs."""
    return posixpath.basename(command) in _FETCHERS


def is_container(launch: StdioTransport) -> bool:
    """Return whether a daemon runs the server in a container."""
    return posixpath.basename(launch.command) in _DAEMONS


def is_shell_line(launch: StdioTransport) -> bool:
    """Return whether a shell runs one of the arguments as a line."""
    is_shell = posixpath.basename(launch.command) in _SHELLS
    return is_shell and any(map(_SHELL_LINE_OPTION.fullmatch, launch.args))


def expect_no_privileges(launch: StdioTransport) -> None:
    """Refuse programs that need privileges.

    Raises:
        MigrationError: it is such a program.
    """
    name = posixpath.basename(launch.command)
    if name in _PRIVILEGED or launch.command.startswith("/snap/"):
        raise MigrationError(
            f"{name} needs privileges, which a server never gets; install the program without it",
            code="E-MIGRATE-PRIVILEGED",
        )


def _is_of_no_kind(name: str, context: EntryContext) -> bool:
    """Return whether `inherits` does not accept this variable, or not its present value."""
    return environment.why_not(name, context.variables.get(name, "")) != ""


def _with_search(env: Mapping[str, Template], search: tuple[str, ...]) -> dict[str, Template]:
    """Return the variables with a PATH in which the server finds the same interpreter."""
    if not search or "PATH" in env:
        return dict(env)
    return {**env, "PATH": (":".join([*search, PATH]),)}


def _folder(launch: StdioTransport, context: EntryContext) -> str:
    """Return the folder to start in: its `cwd`, or the agent's if it has relative paths, or ""."""
    if launch.cwd or context.access:
        return launch.cwd
    is_needed = any(path_grants.seems_relative(arg) for arg in launch.args)
    return context.base if context.base and is_needed else ""


def _workspace(
    launch: StdioTransport, context: EntryContext, code: tuple[str, ...]
) -> tuple[Workspace, ...]:
    """Return its workspaces: its code read-only, and writable the paths that its entry names."""
    found = {path: False for path in code if not projects.is_shown(path, context)}
    base = _folder(launch, context)
    if base in context.places:
        found[base] = True
    for named in path_grants.paths_in(launch, context):
        place = context.places.get(named.path)
        if place and not projects.is_shown(named.path, context):
            folder = path_grants.given(named, place, context)
            is_read = place.is_code or path_grants.is_key(named)
            found[folder] = found.get(folder, False) or not is_read
    advice = "root has to write it: `man mcpwrap.toml`, workspace"
    path_grants.expect_harmless(found, context.home, advice)
    return tuple(
        Workspace(path, is_writable=is_writable)
        for path, is_writable in path_grants.without_covered(found).items()
    )


def _folders_of_files(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield a note for each folder that is writable because of one file in it."""
    for named in path_grants.paths_in(launch, context):
        place = context.places.get(named.path)
        if not place or place.is_code or projects.is_shown(named.path, context):
            continue
        if path_grants.needs_folder(named, place):
            yield f"it may write all of {place.top}, which it needs to save {named.path}"


def _relative_path_notes(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield a note for each relative path without a base. `uv` takes such paths, and npx names."""
    is_in_folder = context.base or launch.cwd or context.access
    if not is_in_folder and not is_fetcher(launch.command):
        for arg in filter(path_grants.seems_relative, launch.args):
            yield f"it is started in an empty folder: write the absolute path of {arg!a}"


def _migration_notes(
    launch: StdioTransport, egress: Sequence[Destination | Group], variables: Mapping[str, str]
) -> Iterator[str]:
    """Yield notes on network and shell. They have no values of variables, except names of hosts."""
    listed = {entry.host for entry in egress if isinstance(entry, Destination)}
    if not egress:
        yield "it has no network; `wrap --egress HOST` allows one host"
    elif not listed:
        yield "it reaches its package registry, and no other host; `wrap --egress HOST` adds one"
    for host in hosts(launch, variables):
        if _THIS_MACHINE.match(host):
            yield f"it names {host}, and on this machine it reaches only what `direct` lists"
        elif host.partition(":")[0] not in listed:
            yield f"it names {host}, and does not reach it"
    if is_shell_line(launch):
        yield "it is a line for a shell, and what that needs of your home was not examined"


def hosts(launch: StdioTransport, variables: Mapping[str, str]) -> dict[str, None]:
    """Return the hosts of all URLs in an entry."""
    values = [filled_in(text, variables) or "" for text in launch.env.values()]
    texts = (*launch.args, *values)
    return dict.fromkeys(found["host"] for text in texts for found in _URL.finditer(text))
