"""Conversion of one entry of agents' files, program or URL, into a server definition.

A bridge program (`mcp-remote`) is replaced by a remote server with the bridge's URL. A server with
packages of a registry that this machine's configuration does not name is rejected.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from mcpwrap.config import value_parsers
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.run_line import is_run_line, parse_run_line, variable_arguments
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, UnknownTransport
from mcpwrap.config.migration import remote_server, stdio_server
from mcpwrap.config.migration.draft import Draft, EntryContext, MigrationError
from mcpwrap.config.migration.secret_detection import (
    holds_secret_url,
    is_marked,
    is_secret,
    is_secret_name,
    secret_arguments,
)
from mcpwrap.config.migration.variable_expansion import filled_in, without_scheme, written
from mcpwrap.config.model import ConfigError, Destination, Group, Server
from mcpwrap.config.parse import SourceFile, parse_part
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.core.distribution import Distribution, Software
from mcpwrap.core.environment import kind_of

ENV_FILE = "envFile"
_KEYS_OF_SECRETS = "env_keys"  # of Goose, which stores their values
_SANDBOX_KEYS = {"sandboxEnabled", "sandbox", "dev"}  # a sandbox that mcpwrap's replaces
_PLACEHOLDER_NAME = "server"
_BRIDGE = "mcp-remote"
_BRIDGE_LAUNCHERS = {"npx", "pnpx", "bunx"}
# The bridge's own options, with and without a value. A number is the port of its login.
_BRIDGE_OPTIONS = {"--transport", "--host", "--auth-timeout"}
_BRIDGE_FLAGS = {"--debug", "--silent", "--enable-proxy"}
_HOW_TO_NAME_REGISTRY = {
    "npm": "write the line `registry=URL` to /etc/npmrc, with the URL that `npm config get "
    "registry` prints",
    "pypi": "write `index-url = URL` below `[global]` to /etc/pip.conf",
}
_CLIENT_BY_REGISTRY: dict[str, Software] = {"npm": "npm", "pypi": "pip"}


def launch_of(listed: ListedServer, context: EntryContext) -> StdioTransport | HttpTransport:
    """Return the program or URL of an entry, with the values that its agent fills in.

    Raises:
        MigrationError: a value is not known, or mcpwrap has no equivalent.
    """
    match listed.launch:
        case UnknownTransport(why):
            raise MigrationError(why, code="E-AGENT-ENTRY")
        case HttpTransport():
            return listed.launch
        case StdioTransport():
            started = without_run(listed.launch)
            if isinstance(started, HttpTransport):
                return started
            known = with_variables(started, listed, context)
            whole = replace(known, env=_references(known.inherits) | known.env)
            return remote_of_bridge(whole) or stdio_server.expanded(
                _inheriting(known, context), context
            )
        case _:
            assert_never(listed.launch)


def without_run(launch: StdioTransport) -> StdioTransport | HttpTransport:
    """Return what a line of `mcpwrap run` starts or reaches; any other program as it is.

    Raises:
        MigrationError: the line has no command.
    """
    if not is_run_line(launch):
        return launch
    line = parse_run_line(launch.args)
    if line.command:
        command, *args = line.command
        inherits = (*launch.inherits, *(name for name in line.inherits if name not in launch.env))
        return replace(
            launch, command=command, args=tuple(args), inherits=tuple(dict.fromkeys(inherits))
        )
    if not line.url:
        raise MigrationError(
            "its line of `mcpwrap run` has no command; `mcpwrap unwrap` restores the entry",
            code="E-MIGRATE-RUN-LINE",
        )
    values = _references(line.variables()) | launch.env
    headers = {name: values[variable] for name, variable in line.variable_by_header.items()}
    if line.bearer_variable:
        headers["Authorization"] = f"Bearer {values[line.bearer_variable]}"
    return HttpTransport(line.url, headers)


def literal_launch(launch: StdioTransport, context: EntryContext) -> StdioTransport | HttpTransport:
    """Return the program or URL of an entry whose agent fills in nothing and stores no variable.

    An agent may choose the value of each variable in its `inherits`: the person's own values are
    not sealed. A bridge that inherits variables stays a program.

    Raises:
        MigrationError: mcpwrap has no equivalent.
    """
    bridged = None if launch.inherits else remote_of_bridge(launch)
    return bridged or stdio_server.expanded(launch, context)


def with_variables(
    launch: StdioTransport, listed: ListedServer, context: EntryContext
) -> StdioTransport:
    """Return a program with the variables in its entry's `envFile`, and those its agent stores.

    Raises:
        MigrationError: its `envFile` is not known, or a key has no equivalent.
    """
    value = listed.entry.value
    for key in launch.further:
        if key == ENV_FILE and context.env_file is None:
            raise MigrationError(
                f"its `{ENV_FILE}` cannot be parsed, or is not in its project",
                code="E-MIGRATE-ENV-FILE",
            )
        if key not in {_KEYS_OF_SECRETS, *_SANDBOX_KEYS, ENV_FILE}:
            raise MigrationError(
                f"its key `{key}` changes how it is started, and mcpwrap has no equivalent",
                code="E-MIGRATE-KEY",
            )
    names = _items(value.get(_KEYS_OF_SECRETS) if isinstance(value, dict) else None)
    given = _references(map(str, names)) | dict(context.env_file or {})
    return replace(launch, env=given | launch.env)


def _references(names: Iterable[str]) -> dict[str, str]:
    return {name: f"${{{name}}}" for name in names}


def _inheriting(launch: StdioTransport, context: EntryContext) -> StdioTransport:
    """Return a program that inherits the variables which an agent may go on to choose.

    The others get the value that they have now: secrets, which are sealed, and variables that no
    agent may choose.
    """
    names = dict.fromkeys(name for name in launch.inherits if name not in launch.env)
    chosen = [name for name in names if _may_choose(name, context.variables.get(name, ""))]
    kept = _references(name for name in names if name not in chosen)
    return replace(launch, env=kept | launch.env, inherits=tuple(chosen))


def _may_choose(name: str, value: str) -> bool:
    try:
        value_parsers.inherited_any(name)
    except value_parsers.BadValueError:
        return False
    is_kept = is_secret_name(name) or is_secret(name, value)
    return kind_of(name) is not None or not is_kept


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def remote_of_bridge(launch: StdioTransport) -> HttpTransport | None:
    """Return the URL to which `npx mcp-remote URL` is a bridge; None if it is not only a bridge.

    The bridge itself fills its entry's own variables into a header. Other references are left in
    place: the caller checks which of them are the person's own secrets.
    """
    args = [_filled_by_bridge(launch, arg) for arg in launch.args]
    names = [arg.partition("@")[0] for arg in args]
    if _BRIDGE not in names or posixpath.basename(launch.command) not in _BRIDGE_LAUNCHERS:
        return None
    urls, headers = [], []
    rest = iter(args[names.index(_BRIDGE) + 1 :])
    for arg in rest:
        if arg == "--header":
            headers.append(next(rest, ""))
        elif arg in _BRIDGE_OPTIONS:
            next(rest, "")
        elif "://" in arg and not arg.startswith("-"):
            urls.append(arg)
        elif arg not in _BRIDGE_FLAGS and not arg.isdecimal():
            return None
    if len(urls) != 1:
        return None
    pairs = [header.partition(":") for header in headers]
    return HttpTransport(urls[0], {name.strip(): value.strip() for name, _, value in pairs})


def _filled_by_bridge(launch: StdioTransport, text: str) -> str:
    known = filled_in(text, launch.env)
    return text if known is None else known


def secrets_in(listed: ListedServer) -> list[str]:
    """Return the texts of an entry that must not appear on a screen."""
    found: list[str] = []
    match listed.launch:
        case StdioTransport(args=args, env=by_name):
            shown = _variables_of_run(listed.launch)
            found += (args[n - 1] for n in secret_arguments(args) if n not in shown)
        case HttpTransport(url=url, headers=by_name):
            found += [url] if holds_secret_url(url) else []
        case UnknownTransport():
            by_name = {}
        case _:
            assert_never(listed.launch)
    for name, text in by_name.items():
        value = without_scheme(text)
        found += [value] if any(is_secret(name, piece) for piece in written(value)) else []
    marked = [text for key, text in _texts(listed.entry.value) if is_marked(key, text)]
    found += (without_scheme(text) for text in marked if written(text))
    return list(dict.fromkeys(found))


def _variables_of_run(launch: StdioTransport) -> list[int]:
    """Return the numbers of arguments that are names of variables, in a line of `mcpwrap run`.

    A person may have written a value in place of a name.
    """
    numbers = variable_arguments(launch.args) if is_run_line(launch) else []
    return [
        number
        for number in numbers
        if not any(is_secret("", part) for part in launch.args[number - 1].split("="))
    ]


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text of an entry at any depth, with its key."""
    match value:
        case str():
            yield key, value
        case dict():
            for inner_key, inner in value.items():
                yield from _texts(inner, inner_key)
        case list():
            for inner in value:
                yield from _texts(inner)
        case _:
            return


def draft(
    listed: ListedServer,
    launch: StdioTransport | HttpTransport,
    context: EntryContext,
    egress: tuple[Destination | Group, ...] = (),
) -> Draft:
    """Return the server that an entry becomes, with a placeholder as its name.

    Raises:
        MigrationError: the entry cannot be converted.
    """
    match launch:
        case StdioTransport():
            found = stdio_server.draft(_PLACEHOLDER_NAME, launch, context, egress)
        case HttpTransport():
            value = listed.entry.value
            entry = value if isinstance(value, dict) else {}
            found = remote_server.draft(_PLACEHOLDER_NAME, launch, entry, context, egress)
        case _:
            assert_never(launch)
    _expect_sound(found)
    return found


def _expect_sound(found: Draft) -> None:
    """Refuse a draft that is not valid in mcpwrap's configuration."""
    try:
        "".join(found.value_by_key.values()).encode()
    except UnicodeEncodeError as error:
        raise MigrationError(
            "one of its secrets has half of a character (a lone surrogate)",
            code="E-MIGRATE-SECRET-ENCODING",
        ) from error
    try:
        parse_part([SourceFile("", toml_of(found.server).encode())])
    except ConfigError as error:
        first = error.problems[0]
        raise MigrationError(
            f"{first.key}: {first.problem}; {first.fix}", code=first.code
        ) from error


def expect_registries(server: Server, sources: Collection[str], distribution: Distribution) -> None:
    """Refuse a package registry that root would refuse, and the whole proposal with it.

    Raises:
        MigrationError: this machine does not configure the registry. The message says how to.
    """
    for group in server.egress:
        if isinstance(group, Group) and group.name not in sources:
            raise MigrationError(
                f"the registry @{group.name} is not configured on this machine: "
                f"{distribution.install(_CLIENT_BY_REGISTRY[group.name])}, or "
                f"{_HOW_TO_NAME_REGISTRY[group.name]}",
                code="E-MIGRATE-REGISTRY",
            )
