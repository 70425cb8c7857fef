"""Environment variables, search path and visible system folders of a server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mcpwrap.config import value_parsers
from mcpwrap.core import environment
from mcpwrap.errors import UsageError

# Folders of the system, mostly readable by every account.
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/snap",
    "/nix/store", "/gnu/store", "/var/lib/ca-certificates", "/proc", "/sys",
)  # fmt: skip
# List of resolvers, which may be a link out of /etc.
RESOLVERS = "/etc/resolv.conf"
# Passed on if the agent has them: language, time zone, terminal type.
_ALWAYS_INHERITED = ("LANG", "LC_ALL", "TZ", "TERM")
# Without a network npm and uv would retry for minutes; with these they report the failure at once.
_OFFLINE = {"npm_config_offline": "true", "UV_OFFLINE": "1"}


def system(home: Path, folders: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the system's folders; of one that contains the home, its entries without the home."""
    for path in SYSTEM if folders is None else folders:
        yield from _without(home, Path(path))


def _without(home: Path, folder: Path) -> Iterator[str]:
    if not home.is_relative_to(folder):
        yield str(folder)
    elif home != folder:
        with suppress(OSError):  # it cannot be listed, so none of it is visible
            for entry in folder.iterdir():
                yield from _without(home, entry)


def inherited(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's values of these variables, and of the few that every server gets.

    Raises:
        UsageError: a name decides which code runs, or is not a valid name of a variable.
    """
    for name in names:
        try:
            value_parsers.inherited_any(name)
        except value_parsers.BadValueError as error:
            raise UsageError(
                error.problem,
                where=f"--inherit {name}",
                fix="let the command set it: `mcpwrap run -- env NAME=VALUE COMMAND`",
                code=error.code,
            ) from error
    return {name: environ[name] for name in (*_ALWAYS_INHERITED, *names) if name in environ}


def variables(
    *, account: str, home: str, tmp: str, path: str, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Build the complete environment of a server."""
    own = {"PATH": path, "npm_config_update_notifier": "false"}
    return environment.build(account=account, home=home, tmp=tmp, inherited=inherited, declared=own)


def offline(env: Mapping[str, str]) -> dict[str, str]:
    """Return this environment with the variables for a server without a network."""
    return {**env, **_OFFLINE}


def search_path(agents: str, program: Path | None = None) -> str:
    """Return the search path for programs: the agent's, but never `.`.

    Toolchains are in people's homes, and only their own PATH locates them. The program's folder is
    added: an agent that was not started by a shell may not find the `node` of its `npx`.
    """
    own = [str(program.parent)] if program else []
    listed = [*agents.split(":"), *own, *environment.PATH.split(":")]
    return ":".join(dict.fromkeys(folder for folder in listed if folder.startswith("/")))
