"""Conversion of a program that an agent starts into a server definition.

Notes warn why the program may not work under an account of its own, as far as its entry shows. Only
root may give a server the denied paths in a home: keys, logins, writable startup files.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration.draft import Draft, EntryContext, MigrationError, PathInfo
from mcpwrap.config.migration.secret_detection import is_secret_name, secret_arguments
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
    **dict.fromkeys(("npx", "pnpx", "bunx", "bun", "pnpm", "yarn"), "npm"),
    **dict.fromkeys(("uvx", "uv", "pipx"), "pypi"),
}
_PRIVILEGED = {"sudo", "pkexec", "flatpak", "snap"}
_DAEMONS = {"docker", "podman", "nerdctl"}
_RELATIVE = {".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".db", ".sqlite"}
_DATABASES = (".db", ".sqlite", ".sqlite3")
# Options, variables and files that name settings, certificates or logs: read, or written in place.
_NOT_REPLACED = re.compile(
    r"config|settings|(?<![a-z])(conf|cfg|options|preferences|env|log|spec|schema|openapi|swagger"
    r"|template|manifest|rules|policy|cert|certs|ca|credentials|creds)(?![a-z])"
    r"|\.(ya?ml|toml|ini|properties|pem|crt)$"
)
_SHELLS = {"sh", "bash", "dash", "zsh", "fish"}
_SHELL_LINE_OPTION = re.compile(r"-[a-z]*c")  # with it a shell runs its argument, not a file
_URL = re.compile(
    r"[a-z][a-z+]*://([^/@\s]*@)?(?P<host>[A-Za-z0-9.-]+(:[0-9]+)?)(?=[/?#]|$)(?!\S*@)"
)
_THIS_MACHINE = re.compile(r"localhost\b|127\.")
# Keys and logins.
_SECRET_PATHS = (
    *(".ssh", ".gnupg", ".pki", ".password-store", ".netrc", ".git-credentials", ".pgpass"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".local/state/mcpwrap"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium"),
    *(".config/BraveSoftware", ".config/1Password", ".config/Bitwarden"),
)
# Files and folders from which code runs as the person at a login, in a shell, or with an agent.
_STARTUP_PATHS = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".config/fish", ".config/zsh", ".inputrc"),
    *(".xsession", ".xsessionrc", ".xprofile", ".xinitrc", ".pam_environment"),
    *(".config/autostart", ".config/systemd", ".config/environment.d", ".local/share/systemd"),
    *(".local/share/applications", ".local/bin", "bin", ".gitconfig", ".config/git", ".vimrc"),
    *(".vim", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".npmrc", ".envrc"),
    *(".config/direnv", ".claude", ".claude.json", ".codex", ".copilot", ".cursor", ".gemini"),
    *(".qwen", ".kiro", ".continue", ".codeium", ".cline", ".config/Claude", ".config/Code"),
    *(".config/devin", ".config/zed", ".config/opencode", ".config/goose", ".config/amp"),
    *(".vscode", ".config/mcpwrap", ".aws", ".docker", ".kube"),
)


@dataclass(frozen=True, slots=True)
class _Named:
    """Path, and the variable or option that names it; both are "" for a positional argument."""

    path: str
    variable: str = ""
    option: str = ""


def expanded(launch: StdioTransport, context: EntryContext) -> StdioTransport:
    """Return an entry with the values that its agent fills into command, arguments and folder.

    Raises:
        MigrationError: a value is not known, or can be a secret.
    """
    args = [_known(arg, f"argument {n}", context) for n, arg in enumerate(launch.args, start=1)]
    command, cwd = _known(launch.command, "command", context), _known(launch.cwd, "folder", context)
    return replace(
        launch,
        command=_at_home(command, context),
        args=tuple(_at_home(arg, context) for arg in args),
        env={name: _at_home(text, context) for name, text in launch.env.items()},
        cwd=_absolute(cwd, context),
    )


def _at_home(text: str, context: EntryContext) -> str:
    """Return a text with the person's home in place of `~`: the server's home is another."""
    option, equals, value = text.partition("=") if text.startswith("-") else ("", "", text)
    if value != "~" and not value.startswith("~/"):
        return text
    return f"{option}{equals}{context.home}{value[1:]}"


def _known(text: str, what: str, context: EntryContext) -> str:
    if name := secret_variable(text, context.variables):
        raise MigrationError(
            f"its {what} has your variable {name}, which can be a secret that every account could "
            "read there; pass it as a variable, if the server takes one",
            code="E-MIGRATE-ARGUMENT-SECRET",
        )
    value = filled_in(text, context.variables)
    if value is None:
        raise MigrationError(
            f"its {what} has a reference that only the agent can resolve; write the value",
            code="E-MIGRATE-REFERENCE",
        )
    return value


def _absolute(path: str, context: EntryContext) -> str:
    if not path:
        return ""
    whole = posixpath.join(context.base or context.home, _at_home(path, context))
    return posixpath.normpath(whole)


def named_paths(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield the absolute paths that an entry names, whether they exist or not."""
    for named in _named(launch, context):
        yield named.path


def _named(launch: StdioTransport, context: EntryContext) -> Iterator[_Named]:
    if launch.cwd:
        yield _Named(launch.cwd)
    before = ""
    for arg in launch.args:
        is_option = arg.startswith("-")
        option, _, value = arg.partition("=") if is_option else (before, "", arg)
        if (
            value == "~"
            or value.startswith(("/", "~/"))
            or (context.base and _seems_relative(value))
        ):
            yield _Named(_absolute(value, context), option=option)
        before = arg if is_option else ""
    for name, text in {**launch.env, **{n: f"${{{n}}}" for n in launch.inherits}}.items():
        path = filled_in(text, context.variables)
        if path and path.startswith(("/", "~/")) and "\n" not in path:
            yield _Named(_absolute(path, context), variable=name)


def _seems_relative(value: str) -> bool:
    if value.startswith(("/", "-")):
        return False
    is_marked = value in {".", ".."} or value.startswith(("./", "../"))
    return is_marked or posixpath.splitext(value)[1] in _RELATIVE


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
    if posixpath.basename(launch.command) in _DAEMONS:
        raise MigrationError(
            "a daemon would start its container as root, not under the server's account; "
            "install the program without a container, if that exists",
            code="E-MIGRATE-CONTAINER",
        )
    _expect_known(launch)
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
        cache=group is not None,
    )
    return Draft(
        server=server, value_by_key=kept.value_by_key, missing=tuple(kept.missing),
        variables_by_key=kept.variables_by_key,
        notes=(
            *_migration_notes(launch, server.egress, context.variables),
            *_relative_path_notes(launch, context),
            *_folders_of_files(launch, context),
            *(f"your agent chooses the value of {name} at each start" for name in any_value),
        ),
    )  # fmt: skip


def _expect_known(launch: StdioTransport) -> None:
    """Refuse programs that start another program, which was not examined, or need privileges.

    Raises:
        MigrationError: it is such a program.
    """
    name = posixpath.basename(launch.command)
    if name == "env":
        raise MigrationError(
            f"{name} starts another program; write that as `command`", code="E-MIGRATE-ENV-COMMAND"
        )
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
    if launch.cwd:
        return launch.cwd
    is_needed = any(_seems_relative(arg) for arg in launch.args)
    return context.base if context.base and is_needed else ""


def _workspace(
    launch: StdioTransport, context: EntryContext, code: tuple[str, ...]
) -> tuple[Workspace, ...]:
    """Return its workspaces: its code read-only, and writable the paths that its entry names."""
    found = dict.fromkeys(code, False)
    base = _folder(launch, context)
    if base in context.places:
        found[base] = True
    for named in _named(launch, context):
        if place := context.places.get(named.path):
            folder = _given(named, place, context)
            found[folder] = found.get(folder, False) or not (place.is_code or _is_key(named))
    for path, is_writable in found.items():
        if why := _why_not_given(path, context.home, is_writable=is_writable):
            raise MigrationError(
                f"it would get {path!a}, and {why}; if it needs that, root has to write it: "
                "`man mcpwrap.toml`, workspace",
                code="E-MIGRATE-SENSITIVE-FOLDER",
            )
    return tuple(
        Workspace(path, is_writable=found[path])
        for path in sorted(found)
        if not any(_covers(other, path, found) for other in found if other != path)
    )


def _is_key(named: _Named) -> bool:
    """Return whether a variable names a file with a secret, which is only to be read."""
    return bool(named.variable) and is_secret_name(named.variable)


def _given(named: _Named, place: PathInfo, context: EntryContext) -> str:
    """Return the file or folder to give for a path.

    Raises:
        MigrationError: it would be a whole home, or has a symbolic link, which is not followed.
    """
    path = named.path
    if place.leads_to:
        raise MigrationError(
            f"{path!a} is behind a link: write {place.leads_to!a} instead", code="E-MIGRATE-LINK"
        )
    given = place.top if _needs_folder(named, place) else path
    if f"{context.home}/".startswith(f"{given}/"):
        fix = "name a folder in it"
        if given != path:
            fix = "programs save a file by a new one beside it; name one in a folder of its own"
        raise MigrationError(
            f"{path!a} would give it the whole of {context.home}; {fix}", code="E-MIGRATE-HOME"
        )
    return given


def _needs_folder(named: _Named, place: PathInfo) -> bool:
    """Return whether a file can be used only with its folder.

    A file that is mounted by itself can be written in place, but not replaced (rename(2), EBUSY):
    most programs save data by a temporary file beside it, and a database has its journal there.
    """
    if place.is_folder:
        return False
    if place.is_code or not place.is_there:
        return True
    return bool(place.top) and (named.path.endswith(_DATABASES) or _is_data(named))


def _is_data(named: _Named) -> bool:
    """Return whether a file seems to be one that a program saves, not one that it reads.

    A positional argument is more often a file to work on, and its folder holds others.
    """
    name = named.variable or named.option.lstrip("-")
    if not name or is_secret_name(name):
        return False
    texts = (name, posixpath.basename(named.path))
    return not any(_NOT_REPLACED.search(text.lower()) for text in texts)


def _folders_of_files(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield a note for each folder that is writable because of one file in it."""
    for named in _named(launch, context):
        place = context.places.get(named.path)
        if place and not place.is_code and _needs_folder(named, place):
            yield f"it may write all of {place.top}, which it needs to save {named.path}"


def _covers(other: str, path: str, is_writable: Mapping[str, bool]) -> bool:
    """Return whether a folder above already includes this one, and at least as writable."""
    return path.startswith(f"{other}/") and is_writable[other] >= is_writable[path]


def _relative_path_notes(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield a note for each relative path without a base. `uv` takes such paths, and npx names."""
    is_fetcher = posixpath.basename(launch.command) in _FETCHERS
    if not context.base and not launch.cwd and not is_fetcher:
        for arg in filter(_seems_relative, launch.args):
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
    for host in _hosts(launch, variables):
        if _THIS_MACHINE.match(host):
            yield f"it names {host}, and on this machine it reaches only what `direct` lists"
        elif host.partition(":")[0] not in listed:
            yield f"it names {host}, and does not reach it"
    if posixpath.basename(launch.command) in _SHELLS and any(
        map(_SHELL_LINE_OPTION.fullmatch, launch.args)
    ):
        yield "it is a line for a shell, and what that needs of your home was not examined"


def _hosts(launch: StdioTransport, variables: Mapping[str, str]) -> dict[str, None]:
    """Return the hosts of all URLs in an entry."""
    values = [filled_in(text, variables) or "" for text in launch.env.values()]
    texts = (*launch.args, *values)
    return dict.fromkeys(found["host"] for text in texts for found in _URL.finditer(text))


def _why_not_given(path: str, home: str, *, is_writable: bool) -> str:
    """Return why a path must not be given; "" if it can be."""
    if _meets(path, home, _SECRET_PATHS):
        return "your keys or logins are there"
    if is_writable and _meets(path, home, _STARTUP_PATHS):
        return "files there are run under your account"
    return ""


def _meets(path: str, home: str, names: Iterable[str]) -> bool:
    """Return whether a path is one of these names in a home, or below one, or above one."""
    return any(
        f"{path}/".startswith(f"{home}/{name}/") or f"{home}/{name}".startswith(f"{path}/")
        for name in names
    )
