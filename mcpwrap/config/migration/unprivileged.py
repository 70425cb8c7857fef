"""Conversion of an agent's entry into arguments of `mcpwrap run`, for a person without root.

The agent goes on to fill in the values of the entry: its variables stay where they are, and so do
references in its arguments.
"""

import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, count

from mcpwrap.config import value_parsers
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport
from mcpwrap.config.migration import entry, path_grants, remote_server, stdio_server
from mcpwrap.config.migration.draft import EntryContext, MigrationError
from mcpwrap.config.migration.variable_expansion import filled_in, secret_variable
from mcpwrap.config.model import RemoteServer

_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)  # of env(1)
_BEARER = re.compile(r"Bearer (?P<token>\S+)")
_NO_VARIABLE = re.compile(r"[^A-Z0-9_]")
# `mcpwrap run` searches programs in the PATH that its agent gives it.
_TAKEN_ANYWAY = frozenset({"PATH"})
# `mcpwrap run` itself finds its policy and its state by these.
_OF_RUN = frozenset({"XDG_CONFIG_HOME", "XDG_STATE_HOME"})
_BY_HAND = "write the line of `mcpwrap run` by hand, with `--read` or `--write`"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDraft:
    """Arguments of `run` for one entry, but for the server's name, and what the person is told."""

    options: tuple[str, ...]
    command: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)  # for the headers of a server at a URL
    inherits: tuple[str, ...] = ()


def draft_remote(listed: ListedServer, launch: HttpTransport, context: EntryContext) -> RunDraft:
    """Return the arguments for a server at a URL. The values of its headers become variables.

    Raises:
        MigrationError: `run` cannot reach it, or it needs a login.
    """
    value = listed.entry.value
    keys = value if isinstance(value, dict) else {}
    remote = remote_server.draft("server", launch, keys, context).server.runs
    if not isinstance(remote, RemoteServer) or remote.oauth:
        raise MigrationError(
            "it needs a login, and without root mcpwrap has none; give it a token in a header, or"
            " use `mcpwrap wrap`, where root has installed mcpwrap",
            code="E-WRAP-RUN-LOGIN",
        )
    own, bearer = keys.get("env_http_headers"), keys.get("bearer_token_env_var")
    variables = {str(name): str(own[name]) for name in own} if isinstance(own, dict) else {}
    taken = dict.fromkeys([*variables.values(), *([str(bearer)] if bearer else [])])
    options, env = ["--url", remote.url], dict[str, str]()
    for name, text in launch.headers.items():
        token = _BEARER.fullmatch(text) if name.lower() == "authorization" else None
        variable = _free_variable(name, {*taken, *env}, is_bearer=token is not None)
        env[variable] = token["token"] if token else text
        options += _header_option(name, variable, is_bearer=token is not None)
    for name, variable in variables.items():
        options += _header_option(name, variable, is_bearer=False)
    if bearer:
        options += _header_option("", str(bearer), is_bearer=True)
    return RunDraft(
        options=tuple(options),
        notes=tuple(_notes_of_remote(has_values=bool(env), has_headers=bool(env or taken))),
        env=env,
        inherits=tuple(taken),
    )


def _notes_of_remote(*, has_values: bool, has_headers: bool) -> Iterator[str]:
    if has_values:
        yield "its headers stay in the file, as variables: the server at the URL gets them"
    if not has_headers:
        yield (
            "it gets no token; if it needs a login, restore its entry: a login needs the installed"
            " package"
        )


def _free_variable(header: str, taken: Collection[str], *, is_bearer: bool) -> str:
    """Return a variable for the value of a header, with a number where another one has the name."""
    name = "BEARER_TOKEN" if is_bearer else f"HEADER_{_NO_VARIABLE.sub('_', header.upper())}"
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(one for one in names if one not in taken)


def _header_option(name: str, variable: str, *, is_bearer: bool) -> tuple[str, str]:
    return ("--bearer-from", variable) if is_bearer else ("--header-from", f"{name}={variable}")


def draft_program(listed: ListedServer, launch: StdioTransport, context: EntryContext) -> RunDraft:
    """Return the arguments for a program.

    Raises:
        MigrationError: `run` cannot start it, or it would get what it should not have.
    """
    named = filled(launch, context)
    name = posixpath.basename(launcher_of(named))
    _expect_startable(replace(named, command=launcher_of(named)))
    if context.program is None:
        raise MigrationError(
            f"{launch.command!a} is not found in PATH; install it, or write its absolute path",
            code="E-MIGRATE-NOT-FOUND",
        )
    variables = _variables(listed, launch, context)
    grants = _grants(named, context)
    has_network = stdio_server.is_fetcher(name)
    return RunDraft(
        options=(
            *(("--network",) if has_network else ()),
            *(word for variable in variables for word in ("--inherit", variable)),
            *(
                word
                for path, is_writable in grants.items()
                for word in ("--write" if is_writable else "--read", path)
            ),
        ),
        command=(
            path_grants.at_home(launch.command, context),
            *(path_grants.at_home(arg, context) for arg in launch.args),
        ),
        notes=(
            _network_note(named, context, name if has_network else ""),
            *(f"it may {'write' if grants[path] else 'read'} {path}" for path in grants),
            *_notes(launch, named),
        ),
    )


def launcher_of(launch: StdioTransport) -> str:
    """Return the command of an entry, or the command that env(1) starts."""
    if posixpath.basename(launch.command) != "env":
        return launch.command
    words = (word for word in launch.args if not _ASSIGNMENT.match(word))
    return next((word for word in words if word and not word.startswith("-")), launch.command)


def filled(launch: StdioTransport, context: EntryContext) -> StdioTransport:
    """Return a program with the values that are known here; unknown ones and secrets are empty.

    It has no `cwd`, which `run` lets it read and not write.
    """
    args = tuple(_known(arg, context) for arg in launch.args)
    env = {name: _known(text, context) for name, text in launch.env.items()}
    return replace(launch, command=_known(launch.command, context), args=args, env=env, cwd="")


def _known(text: str, context: EntryContext) -> str:
    if secret_variable(text, context.variables):
        return ""
    return path_grants.at_home(filled_in(text, context.variables) or "", context)


def _expect_startable(launch: StdioTransport) -> None:
    if stdio_server.is_container(launch):
        raise MigrationError(
            "it starts a container by a daemon, whose socket `mcpwrap run` does not give to it; "
            "install the program without a container, if that exists",
            code="E-MIGRATE-CONTAINER",
        )
    stdio_server.expect_no_privileges(launch)


def _variables(
    listed: ListedServer, launch: StdioTransport, context: EntryContext
) -> dict[str, None]:
    """Return the variables that the agent gives the server: those of its entry, and of its files.

    Raises:
        MigrationError: `run` refuses to pass on one of them.
    """
    names = dict.fromkeys([*entry.with_variables(launch, listed, context).env, *launch.inherits])
    for name in names:
        if name not in _TAKEN_ANYWAY and (why := _why_refused(name)):
            raise MigrationError(
                f"{why}; remove it, or let the command set it: `env` as the command, and"
                f" `{name}=VALUE` before the program in its arguments",
                code="E-WRAP-RUN-VARIABLE",
            )
    return {name: None for name in names if name not in _TAKEN_ANYWAY}


def _why_refused(name: str) -> str:
    if name in _OF_RUN:
        return f"`mcpwrap run` itself finds its policy or its state by {name}"
    try:
        value_parsers.inherited_any(name)
    except value_parsers.BadValueError as error:
        return error.problem
    return ""


def _grants(launch: StdioTransport, context: EntryContext) -> dict[str, bool]:
    """Return the paths to give, each with whether it is writable: all that the entry names.

    `run` itself finds the program and its interpreter, but for the environments that uv runs.

    Raises:
        MigrationError: a path would give it a whole home, keys, logins or startup files.
    """
    program = context.program
    found = dict.fromkeys(program.folders if program else (), False)
    for named in path_grants.paths_in(launch, context):
        if place := context.places.get(named.path):
            if place.is_code and f"{context.home}/".startswith(f"{place.top}/"):
                found.setdefault(named.path, False)  # not the rest of the home
                continue
            path = path_grants.given(named, place, context)
            is_read = place.is_code or path_grants.is_key(named)
            found[path] = found.get(path, False) or not is_read
    path_grants.expect_harmless(found, context.home, _BY_HAND)
    for path, is_writable in found.items():
        if is_writable and any(_overlap(path, own) for own in context.own_code):
            raise MigrationError(
                f"it could write {path!a}, and so change the mcpwrap that confines it; name another"
                " folder, or install mcpwrap elsewhere",
                code="E-WRAP-RUN-OWN-CODE",
            )
    return path_grants.without_covered(found)


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _network_note(launch: StdioTransport, context: EntryContext, fetcher: str) -> str:
    if fetcher:
        return f"it has your network access, as {fetcher} downloads what it runs"
    hosts = ", ".join(stdio_server.hosts(launch, context.variables))
    needs = f"it names {hosts}, and has no network" if hosts else "it has no network"
    return f"{needs}; to allow that, write `--network` before `--` in its arguments"


def _notes(launch: StdioTransport, named: StdioTransport) -> Iterator[str]:
    """Yield what was not examined."""
    for number, (text, known) in enumerate(zip(launch.args, named.args, strict=True), start=1):
        if text and not known:
            yield (
                f"its argument {number} is not known here: if it is a path, write `--write`"
                " and the path before `--` in its arguments"
            )
    if stdio_server.is_shell_line(launch):
        yield "it is a line for a shell, and what that needs of your home was not examined"
