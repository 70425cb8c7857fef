"""Draft of a server definition from an agent's entry, its context, and the conversion error."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpwrap.config.model import Server


class MigrationError(ValueError):
    """Entry that cannot be converted. The message gives the reason and the fix, but no secret."""

    def __init__(self, problem: str, *, code: str = "") -> None:
        """`code` is the name in mcpwrap-errors(7), which ends the message."""
        super().__init__(f"{problem} [{code}]" if code else problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Draft of one server, with the secret values from the agent's file.

    `variables_by_key` names the person's own variables from which the file fills in secrets.
    """

    server: Server
    value_by_key: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # secrets of which the file has only a name
    notes: tuple[str, ...] = ()  # NAME in them stands for the server's name
    variables_by_key: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """Program to which a command resolves on this machine."""

    path: str  # absolute
    folders: tuple[str, ...] = ()  # folders of a person: with its code, or its interpreter's
    search: tuple[
        str, ...
    ] = ()  # folders in which its interpreter is found, besides the usual PATH


@dataclass(frozen=True, slots=True)
class PathInfo:
    """Target of a path in the person's own files that the server needs."""

    is_folder: bool
    is_there: bool = True  # False: it may be created, its folder exists
    is_code: bool = False  # a file from which a program reads its code
    top: str = ""  # the folder of its code, or its parent; "" if that is of another account
    leads_to: str = ""  # its real path, if the path has a symbolic link


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAccess:
    """Access of a server to the project that is open, and the folders with projects to list."""

    lists: tuple[str, ...] = ()  # for `projects`; empty: it is for root to choose them
    runs_code: bool = False  # it runs code of the project, such as its tools and settings


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryContext:
    """Context of an entry: its account, and the programs and paths that it names, as found here."""

    account: str
    home: str
    base: str = ""  # the folder in which the agent starts it: the project's, or its `cwd`
    project: str = ""  # the project for which the entry is; "" if it is for all folders
    access: ProjectAccess | None = None  # None: it gets a fixed folder, or none
    variables: Mapping[str, str] = field(default_factory=dict)  # the person's own
    env_file: Mapping[str, str] | None = None  # content of the file that the entry names
    program: ResolvedCommand | None = None
    places: Mapping[str, PathInfo] = field(default_factory=dict)  # by absolute path
    own_code: tuple[str, ...] = ()  # paths of the mcpwrap that confines it, without root
