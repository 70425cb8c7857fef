"""Paths that an entry names, and the files or folders that its server is given for them.

Only root may give a server the denied paths in a home: keys, logins, writable startup files.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration.draft import EntryContext, MigrationError, PathInfo
from mcpwrap.config.migration.secret_detection import is_secret_name
from mcpwrap.config.migration.variable_expansion import filled_in

_RELATIVE = {".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".db", ".sqlite"}
_DATABASES = (".db", ".sqlite", ".sqlite3")
# Options, variables and files that name settings, certificates or logs: read, or written in place.
_NOT_REPLACED = re.compile(
    r"config|settings|(?<![a-z])(conf|cfg|options|preferences|env|log|spec|schema|openapi|swagger"
    r"|template|manifest|rules|policy|cert|certs|ca|credentials|creds)(?![a-z])"
    r"|\.(ya?ml|toml|ini|properties|pem|crt)$"
)
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
class NamedPath:
    """Path, and the variable or option that names it; both are "" for a positional argument."""

    path: str
    variable: str = ""
    option: str = ""


def at_home(text: str, context: EntryContext) -> str:
    """Return a text with the person's home in place of `~`: the server's home is another."""
    option, equals, value = text.partition("=") if text.startswith("-") else ("", "", text)
    if value != "~" and not value.startswith("~/"):
        return text
    return f"{option}{equals}{context.home}{value[1:]}"


def absolute(path: str, context: EntryContext) -> str:
    """Return a path of an entry as an absolute one; "" if it is empty."""
    if not path:
        return ""
    whole = posixpath.join(context.base or context.home, at_home(path, context))
    return posixpath.normpath(whole)


def named_paths(launch: StdioTransport, context: EntryContext) -> Iterator[str]:
    """Yield the absolute paths that an entry names, whether they exist or not."""
    for named in paths_in(launch, context):
        yield named.path


def paths_in(launch: StdioTransport, context: EntryContext) -> Iterator[NamedPath]:
    """Yield the paths that folder, arguments and variables of an entry name, absolute."""
    if launch.cwd:
        yield NamedPath(launch.cwd)
    before = ""
    for arg in launch.args:
        is_option = arg.startswith("-")
        option, _, value = arg.partition("=") if is_option else (before, "", arg)
        if (
            value == "~"
            or value.startswith(("/", "~/"))
            or (context.base and seems_relative(value))
        ):
            yield NamedPath(absolute(value, context), option=option)
        before = arg if is_option else ""
    for name, text in {**launch.env, **{n: f"${{{n}}}" for n in launch.inherits}}.items():
        path = filled_in(text, context.variables)
        if path and path.startswith(("/", "~/")) and "\n" not in path:
            yield NamedPath(absolute(path, context), variable=name)


def seems_relative(value: str) -> bool:
    """Return whether a text has the form of a relative path."""
    if value.startswith(("/", "-")):
        return False
    is_marked = value in {".", ".."} or value.startswith(("./", "../"))
    return is_marked or posixpath.splitext(value)[1] in _RELATIVE


def is_key(named: NamedPath) -> bool:
    """Return whether a variable names a file with a secret, which is only to be read."""
    return bool(named.variable) and is_secret_name(named.variable)


def given(named: NamedPath, place: PathInfo, context: EntryContext) -> str:
    """Return the file or folder to give for a path.

    Raises:
        MigrationError: it would be a whole home, or has a symbolic link, which is not followed.
    """
    path = named.path
    if place.leads_to:
        raise MigrationError(
            f"{path!a} is behind a link: write {place.leads_to!a} instead", code="E-MIGRATE-LINK"
        )
    given = place.top if needs_folder(named, place) else path
    if f"{context.home}/".startswith(f"{given}/"):
        why = f"{path!a} includes that; name a folder in it"
        if given != path:
            reason = "saves a file by writing a new one beside it"
            if place.is_code:
                reason = "needs the files beside its code"
            why = (
                f"{path!a} is directly in it, and a program {reason}; keep it in a folder of its"
                f" own, such as {_of_its_own(path, context.home)!a}, and write that path into the"
                " entry"
            )
        raise MigrationError(
            f"it would get the whole of {context.home}: {why}", code="E-MIGRATE-HOME"
        )
    return given


def _of_its_own(path: str, home: str) -> str:
    """Return a path for a file in a folder that has its name, without what follows a period."""
    name = posixpath.basename(path)
    stem = posixpath.splitext(name)[0]
    return posixpath.join(home, stem if stem != name else f"{name}.d", name)


def needs_folder(named: NamedPath, place: PathInfo) -> bool:
    """Return whether a file can be used only with its folder.

    A file that is mounted by itself can be written in place, but not replaced (rename(2), EBUSY):
    most programs save data by a temporary file beside it, and a database has its journal there.
    """
    if place.is_folder:
        return False
    if place.is_code or not place.is_there:
        return True
    return bool(place.top) and (named.path.endswith(_DATABASES) or _is_data(named))


def _is_data(named: NamedPath) -> bool:
    """Return whether a file seems to be one that a program saves, not one that it reads.

    A positional argument is more often a file to work on, and its folder holds others.
    """
    name = named.variable or named.option.lstrip("-")
    if not name or is_secret_name(name):
        return False
    texts = (name, posixpath.basename(named.path))
    return not any(_NOT_REPLACED.search(text.lower()) for text in texts)


def expect_harmless(found: Mapping[str, bool], home: str, advice: str) -> None:
    """Refuse keys, logins, and writable files that run under the person's account.

    `found` has each path with whether it is writable. `advice` ends the message.

    Raises:
        MigrationError: one of the paths is such a path.
    """
    for path, is_writable in found.items():
        if why := _why_not_given(path, home, is_writable=is_writable):
            raise MigrationError(
                f"it would get {path!a}, and {why}; if it needs that, {advice}",
                code="E-MIGRATE-SENSITIVE-FOLDER",
            )


def is_harmless(path: str, home: str) -> bool:
    """Return whether a folder may be writable: it has no keys or logins, and no startup files."""
    return not _why_not_given(path, home, is_writable=True)


def without_covered(found: Mapping[str, bool]) -> dict[str, bool]:
    """Return the sorted paths without those that a folder above includes, as writable or more."""
    return {
        path: found[path]
        for path in sorted(found)
        if not any(_covers(other, path, found) for other in found if other != path)
    }


def _covers(other: str, path: str, is_writable: Mapping[str, bool]) -> bool:
    """Return whether a folder above already includes this one, and at least as writable."""
    return path.startswith(f"{other}/") and is_writable[other] >= is_writable[path]


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
