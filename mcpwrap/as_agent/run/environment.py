"""Environment variables, search path and visible system folders of a server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mcpwrap.config import value_parsers
from mcpwrap.core import environment
from mcpwrap.errors import UsageError

# Of the system's, and mostly everybody's to read on it.
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/snap",
    "/nix/store", "/gnu/store", "/var/lib/ca-certificates", "/proc", "/sys",
)  # fmt: skip
# Where a link in /etc may lead that names the resolvers.
RESOLVERS = "/etc/resolv.conf"
# Of the agent's, where it has them: in which words, and for which clock, to write.
_TAKEN_ALONG = ("LANG", "LC_ALL", "TZ", "TERM")
# Without a network they would try for minutes; with these they say at once what they lack.
_OFFLINE = {"npm_config_offline": "true", "UV_OFFLINE": "1"}


def system(home: Path) -> Iterator[str]:
    """Yield the system's folders, and of one that has the home in it all but that."""
    for path in SYSTEM:
        yield from _without(home, Path(path))


def _without(home: Path, folder: Path) -> Iterator[str]:
    if not home.is_relative_to(folder):
        yield str(folder)
    elif home != folder:
        with suppress(OSError):  # it cannot be listed, and so nothing in it is given
            for entry in folder.iterdir():
                yield from _without(home, entry)


def inherited(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's values of these variables, and of the few that every server has.

    Raises:
        UsageError: a name of them decides what code runs, or is none.
    """
    for name in names:
        try:
            value_parsers.inherited_any(name)
        except value_parsers.BadValueError as error:
            raise UsageError(
                error.problem,
                where=f"--inherit {name}",
                fix="let the command set it: `mcpwrap run -- env NAME=VALUE COMMAND`",
            ) from error
    return {name: environ[name] for name in (*_TAKEN_ALONG, *names) if name in environ}


def variables(
    *, account: str, home: str, tmp: str, path: str, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of a server."""
    own = {"PATH": path, "npm_config_update_notifier": "false"}
    return environment.build(account=account, home=home, tmp=tmp, inherited=inherited, declared=own)


def offline(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server without a network."""
    return {**env, **_OFFLINE}


def search_path(agents: str, program: Path | None = None) -> str:
    """Return where programs are looked for: as the agent does, but never in `.`.

    Toolchains are in people's homes, and only their own PATH says where. What it lacks is perhaps
    beside the program: an agent that no shell has started knows no way to the `node` of its `npx`.
    """
    own = [str(program.parent)] if program else []
    listed = [*agents.split(":"), *own, *environment.PATH.split(":")]
    return ":".join(dict.fromkeys(folder for folder in listed if folder.startswith("/")))
