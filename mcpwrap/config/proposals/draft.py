"""A definition of ours that follows from an agent's entry, and what it could not follow from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpwrap.config.model import Server


class UnfitError(ValueError):
    """An entry of which no definition follows; the message says why, and holds no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One server, with what its file had of its secrets.

    `variables_by_key` has those that come from the person's own variables, which it asked for.
    """

    server: Server
    value_by_key: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # secrets of which the file has a name alone
    notes: tuple[str, ...] = ()  # in which NAME stands for the server's
    variables_by_key: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """What a command is on this machine."""

    path: str  # absolute
    folders: tuple[str, ...] = ()  # of somebody's own: its code, and its interpreter's
    search: tuple[str, ...] = ()  # where its interpreter is found by name, beside the usual


@dataclass(frozen=True, slots=True)
class Place:
    """What a path leads to, when a server is to see it although it is somebody's own."""

    is_folder: bool
    is_there: bool = True  # False: its folder is, and it may be made
    is_code: bool = False  # a file that a program reads its code from
    top: str = ""  # the folder of its code, or the one that it is in; "" if that is another's
    leads_to: str = ""  # where it really is, if a link is on the way


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What surrounds an entry: who has it, and what the machine says of what it names."""

    account: str
    home: str
    base: str = ""  # where the agent starts it: the project's folder, or its `cwd`
    variables: Mapping[str, str] = field(default_factory=dict)  # the person's own
    env_file: Mapping[str, str] | None = None  # what is in the one that the entry names
    program: Program | None = None
    places: Mapping[str, Place] = field(default_factory=dict)  # by absolute path
