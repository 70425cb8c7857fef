"""Draft of a server definition from an agent's entry, its context, and the error if none fits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpwrap.config.model import Server


class MigrationError(ValueError):
    """Entry without a possible definition; the message gives the reason, and holds no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Draft of one server, with the secret values that its file had.

    `variables_by_key` names the person's own variables from which the file fills in secrets.
    """

    server: Server
    value_by_key: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # secrets of which the file has a name alone
    notes: tuple[str, ...] = ()  # in which NAME stands for the server's
    variables_by_key: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """Program to which a command resolves on this machine."""

    path: str  # absolute
    folders: tuple[str, ...] = ()  # of somebody's own: its code, and its interpreter's
    search: tuple[str, ...] = ()  # where its interpreter is found by name, beside the usual


@dataclass(frozen=True, slots=True)
class PathInfo:
    """Target of a path in the person's own files that the server is to see."""

    is_folder: bool
    is_there: bool = True  # False: its folder is, and it may be made
    is_code: bool = False  # a file that a program reads its code from
    top: str = ""  # the folder of its code, or the one that it is in; "" if that is another's
    leads_to: str = ""  # where it really is, if a link is on the way


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryContext:
    """Context of an entry: its account, and what this machine has under the names in it."""

    account: str
    home: str
    base: str = ""  # where the agent starts it: the project's folder, or its `cwd`
    variables: Mapping[str, str] = field(default_factory=dict)  # the person's own
    env_file: Mapping[str, str] | None = None  # what is in the one that the entry names
    program: ResolvedCommand | None = None
    places: Mapping[str, PathInfo] = field(default_factory=dict)  # by absolute path
