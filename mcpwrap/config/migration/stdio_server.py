"""Conversion of a program that an agent starts into a server definition.

Warnings say why the program may not work under its own account, as far as its entry shows it. A
denylist has the paths in a home (keys, logins, writable startup files) that root alone may give
away.
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

# Programs that download what they run, and from where.
_FETCHERS = {
    **dict.fromkeys(("npx", "pnpx", "bunx", "bun", "pnpm", "yarn"), "npm"),
    **dict.fromkeys(("uvx", "uv", "pipx"), "pypi"),
}
_PRIVILEGED = {"sudo", "pkexec", "flatpak", "snap"}
_DAEMONS = {"docker", "podman", "nerdctl"}
_RELATIVE = {".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".db", ".sqlite"}
_DATABASES = (".db", ".sqlite", ".sqlite3")
# Options, variables and files that name settings, certificates or a log: read, or written in place.
_NOT_REPLACED = re.compile(
    r"config|settings|(?<![a-z])(conf|cfg|options|preferences|env|log|spec|schema|openapi|swagger"
    r"|template|manifest|rules|policy|cert|certs|ca|credentials|creds)(?![a-z])"
    r"|\.(ya?ml|toml|ini|properties|pem|crt)$"
)
_SHELLS = {"sh", "bash", "dash", "zsh", "fish"}
_SHELL_LINE_OPTION = re.compile(r"-[a-z]*c")  # an option with which a shell gets a line, not a file
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
# What is run as them, the next time that they log in, open a shell, or start an agent.
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
    """Path, and the variable or option that names it; "" for both is an argument by itself."""

    path: str
    variable: str = ""
    option: str = ""


def expanded(launch: StdioTransport, context: EntryContext) -> StdioTransport:
    """Return an entry with all that its agent fills into the command, its arguments and folder.

    Raises:
        MigrationError: something of it is not known here.
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
    """Return a text with the home that its `~` means: for the server it is another."""
    option, equals, value = text.partition("=") if text.startswith("-") else ("", "", text)
    if value != "~" and not value.startswith("~/"):
        return text
    return f"{option}{equals}{context.home}{value[1:]}"


def _known(text: str, what: str, context: EntryContext) -> str:
    if name := secret_variable(text, context.variables):
        problem = f"its {what} has your variable {name}, which can be a secret"
        raise MigrationError(f"{problem}, and everybody can read it there")
    value = filled_in(text, context.variables)
    if value is None:
        raise MigrationError(f"its {what} has what only the agent knows; write what it stands for")
    return value


def _absolute(path: str, context: EntryContext) -> str:
    if not path:
        return ""
    whole = posixpath.join(context.base or context.home, _at_home(path, context))
    return posixpath.normpath(whole)


def named_paths(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield the absolute paths that an entry names, which may be there or not."""
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
        said = filled_in(text, context.variables)
        if said and said.startswith(("/", "~/")) and "\n" not in said:
            yield _Named(_absolute(said, context), variable=name)


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
    """Return the server that an entry, which was `expanded`, becomes.

    Raises:
        MigrationError: none follows.
    """
    program = context.program
    if posixpath.basename(launch.command) in _DAEMONS:
        raise MigrationError(
            "a daemon starts its container as root, outside of any account of ours; "
            "start by itself what is in the image, if it is to be had without"
        )
    _expect_known(launch)
    if program is None:
        raise MigrationError(f"{launch.command!a} is not found: is it in PATH?")
    if found := secret_arguments(launch.args):
        raise MigrationError(
            f"its argument {found[0]} holds a secret, and everybody can read arguments; "
            "give it as a variable, if the server takes one"
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
    """Refuse what starts something else, which nobody here has looked at.

    Raises:
        MigrationError: it is such a program.
    """
    name = posixpath.basename(launch.command)
    if name == "env":
        raise MigrationError(f"{name} starts another program; make that the `command`, with `args`")
    if name in _PRIVILEGED or launch.command.startswith("/snap/"):
        raise MigrationError(f"{name} needs rights that no server of ours gets; install it without")


def _is_of_no_kind(name: str, context: EntryContext) -> bool:
    """Say whether `inherits` takes no such variable, or not the value that it has now."""
    return environment.why_not(name, context.variables.get(name, "")) != ""


def _with_search(env: Mapping[str, Template], search: tuple[str, ...]) -> dict[str, Template]:
    """Return variables in which the interpreter is found that was found here."""
    if not search or "PATH" in env:
        return dict(env)
    return {**env, "PATH": (":".join([*search, PATH]),)}


def _folder(launch: StdioTransport, context: EntryContext) -> str:
    """Return where it is started: there where its relative paths lead to what they named."""
    if launch.cwd:
        return launch.cwd
    is_needed = any(_seems_relative(arg) for arg in launch.args)
    return context.base if context.base and is_needed else ""


def _workspace(
    launch: StdioTransport, context: EntryContext, code: tuple[str, ...]
) -> tuple[Workspace, ...]:
    """Return what it is to see of somebody's own: its code to read, what it is told of to write."""
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
            fix = "if it is to have it, root writes that: `man mcpwrap.toml`, workspace"
            raise MigrationError(f"it would be given {path!a}, and {why}; {fix}")
    return tuple(
        Workspace(path, is_writable=found[path])
        for path in sorted(found)
        if not any(_covers(other, path, found) for other in found if other != path)
    )


def _is_key(named: _Named) -> bool:
    """Say whether a variable names a file with a secret, which is to be read alone."""
    return bool(named.variable) and is_secret_name(named.variable)


def _given(named: _Named, place: PathInfo, context: EntryContext) -> str:
    """Return what is given for a path.

    Raises:
        MigrationError: that would be a whole home, or is behind a link, and none is followed.
    """
    path = named.path
    if place.leads_to:
        raise MigrationError(f"{path!a} is behind a link: write {place.leads_to!a} in its place")
    given = place.top if _needs_folder(named, place) else path
    if f"{context.home}/".startswith(f"{given}/"):
        fix = "name a folder in it"
        if given != path:
            fix = "a program saves a file by writing beside it; name one in a folder of its own"
        raise MigrationError(f"{path!a} would give it the whole of {context.home}; {fix}")
    return given


def _needs_folder(named: _Named, place: PathInfo) -> bool:
    """Say whether a file is no use without the folder that it is in.

    A file that is mounted by itself can be written in place, and not replaced (rename(2), EBUSY):
    most programs save data by a temporary file beside it, and a database has its journal there.
    """
    if place.is_folder:
        return False
    if place.is_code or not place.is_there:
        return True
    return bool(place.top) and (named.path.endswith(_DATABASES) or _is_data(named))


def _is_data(named: _Named) -> bool:
    """Say whether a file seems to be one that a program saves, and not one that it reads.

    An argument by itself is more often a file to work on, and its folder holds others.
    """
    name = named.variable or named.option.lstrip("-")
    if not name or is_secret_name(name):
        return False
    said = (name, posixpath.basename(named.path))
    return not any(_NOT_REPLACED.search(text.lower()) for text in said)


def _folders_of_files(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield a note for each folder that it may write for one file in it."""
    for named in _named(launch, context):
        place = context.places.get(named.path)
        if place and not place.is_code and _needs_folder(named, place):
            yield f"it may write all of {place.top}, which it needs to save {named.path}"


def _covers(other: str, path: str, is_writable: Mapping[str, bool]) -> bool:
    """Say whether a folder above gives this one already, and in the same way."""
    return path.startswith(f"{other}/") and is_writable[other] >= is_writable[path]


def _relative_path_notes(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield a note for each path that begins nowhere. To `uv` one may, and npx has names."""
    is_fetcher = posixpath.basename(launch.command) in _FETCHERS
    if not context.base and not launch.cwd and not is_fetcher:
        for arg in filter(_seems_relative, launch.args):
            yield f"it is started in an empty folder: write {arg!a} with its whole path"


def _migration_notes(
    launch: StdioTransport, egress: Sequence[Destination | Group], variables: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each; no value of a variable is in one, but for names of hosts."""
    listed = {entry.host for entry in egress if isinstance(entry, Destination)}
    if not egress:
        yield "it has no network; `--egress HOST` gives it one host"
    elif not listed:
        yield "it reaches where packages come from, and no other host; `--egress HOST` adds one"
    for host in _hosts(launch, variables):
        if _THIS_MACHINE.match(host):
            yield f"it names {host}, and reaches nothing on this machine but what `direct` says"
        elif host.partition(":")[0] not in listed:
            yield f"it names {host}, and does not reach it"
    if posixpath.basename(launch.command) in _SHELLS and any(
        map(_SHELL_LINE_OPTION.fullmatch, launch.args)
    ):
        yield "it starts what a shell is told, and what that needs of your home is not looked for"


def _hosts(launch: StdioTransport, variables: Mapping[str, str]) -> dict[str, None]:
    """Return the hosts of all URLs in an entry."""
    values = [filled_in(text, variables) or "" for text in launch.env.values()]
    texts = (*launch.args, *values)
    return dict.fromkeys(found["host"] for text in texts for found in _URL.finditer(text))


def _why_not_given(path: str, home: str, *, is_writable: bool) -> str:
    """Return why this is not to be given; "" is that it can be."""
    if _meets(path, home, _SECRET_PATHS):
        return "its person's keys or logins are there"
    if is_writable and _meets(path, home, _STARTUP_PATHS):
        return "what is written there is run as its person"
    return ""


def _meets(path: str, home: str, names: Iterable[str]) -> bool:
    """Say whether a path is one of these in a home, or is in one, or has one in it."""
    return any(
        f"{path}/".startswith(f"{home}/{name}/") or f"{home}/{name}".startswith(f"{path}/")
        for name in names
    )
