"""Access list of the gate and descriptor of each server: JSON files, written by `apply`."""

from typing import Literal, TypeVar

import msgspec

Keep = Literal["hash", "sealed", "plain"]  # what becomes of the params of a request


T = TypeVar("T")
Relay = Literal["gate", "direct"]
STATE_BYTES = 1024**3
CACHE_BYTES = 4 * 1024**3  # a browser that npx downloads has half of one


class SecretPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Placeholder of a secret in the value of a variable."""

    secret: str  # its key


Template = tuple[str | SecretPart, ...]  # the parts of a value, in order


class Folder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Folder or file of an agent that a server sees at the same path."""

    path: str
    is_writable: bool


class Workspaces(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agents' files that a server can see. They must belong to one of these agents."""

    folders: tuple[Folder, ...]
    protect: bool  # see `core/mount_layout.py`
    protect_instructions: bool = True  # also where an earlier version wrote this
    uids: tuple[int, ...]
    gids: tuple[int, ...]  # whoever is in one of these groups is an agent too


class OAuth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OAuth login settings of a remote server. An empty one is as that server specifies."""

    scopes: tuple[str, ...] = ()
    client_id: str = ""  # registered by hand
    client_id_metadata: str = ""  # a URL that is one, where it is known


class RemoteSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remote server: its URL, and the headers that each request to it is given."""

    url: str
    headers: dict[str, Template]
    oauth: OAuth | None = None  # with which a token is added


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Server descriptor for its wrapper. `/var/lib/mcpwrap/servers/NAME.json`."""

    name: str
    command: str
    args: tuple[str, ...]
    cwd: str  # "" is the session's own home
    egress_env: dict[str, str]  # how to get out, and which certificates to trust
    env: dict[str, Template]
    inherits: tuple[str, ...]  # variables of the agent's, with values of their kind
    secrets: tuple[str, ...]  # the keys of all that `env` refers to
    secret_files: tuple[str, ...]  # those of them that are given as a path
    state: bool
    writable_command: bool = False  # what it runs, another account than root can change
    allow_degraded: bool
    idle_exit_s: int  # without a session for so long it ends; 0 is never
    sessions: int
    memory_bytes: int  # for one session, like the next two
    tasks: int
    cpu_percent: int  # of one processor; 0 is no bound
    inherits_any: tuple[str, ...] = ()  # with any value
    workspaces: Workspaces | None = None
    # What its lasting home, and what it downloaded, may take of the disk.
    state_bytes: int = STATE_BYTES
    cache_bytes: int = CACHE_BYTES
    remote: RemoteSpec | None = None  # for which `command` is a program of ours
    umask: int | None = None  # of the server; None is its agent's

    def has_oauth(self) -> bool:
        """Say whether it is a server elsewhere to which a person logs in."""
        return self.remote is not None and self.remote.oauth is not None


class AccessRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access rule of one server, and the variables that the gate requests from a stub."""

    uids: tuple[int, ...]
    gids: tuple[int, ...]
    inherits: tuple[str, ...]
    inherits_any: tuple[str, ...] = ()
    relay: Relay = "gate"
    audit: Keep = "hash"  # what becomes of the params of a request
    http_uids: tuple[int, ...] = ()  # agents that have a listener of their own for HTTP
    login: bool = False  # a person can log in to it
    members: tuple[int, ...] = ()  # those of `gids` whom root could list when this was written
    policy: tuple[str, ...] = ()  # files whose rules concern it, as the last `apply` saw them
    sessions: int = 0  # of the server at a time; 0, of an earlier version: only the wrapper counts

    def admits(self, uid: int, gids: frozenset[int]) -> bool:
        """Say whether a peer with these ids (unix(7), SO_PEERCRED and SO_PEERGROUPS) may enter."""
        return uid in self.uids or not gids.isdisjoint(self.gids)


class AccessList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access list of the gate. `/var/lib/mcpwrap/gate.json`; without the file it is empty."""

    by_server: dict[str, AccessRule] = {}
    same_uid_approves: bool = False  # who runs the agent may answer for it, without any proof


def encode(value: msgspec.Struct) -> str:
    """Return the JSON text of a file of root's; equal values give equal texts."""
    text = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(text, indent=1).decode() + "\n"


def decode_spec(text: bytes) -> ServerSpec:
    """Return the server in a file of root's.

    Raises:
        msgspec.MsgspecError: it is not one, or of another version.
    """
    return _decode(text, ServerSpec)


def decode_access_list(text: str | bytes) -> AccessList:
    """Return the access list in a file of root's.

    Raises:
        msgspec.MsgspecError: it is not one, or of another version.
    """
    return _decode(text, AccessList)


def _decode(text: str | bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
