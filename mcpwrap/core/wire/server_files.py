"""Access list of the gate and descriptor of each server: JSON files, written by `apply`."""

from typing import Literal, TypeVar

import msgspec

from mcpwrap.core.wire.execution.worker_file import RunLimits

Keep = Literal["hash", "sealed", "plain"]  # how the audit stores the params of a request


T = TypeVar("T")
Relay = Literal["gate", "direct"]
Pins = Literal["first-use", "strict", "off"]  # how the definitions of a server are accepted
STATE_BYTES = 1024**3
CACHE_BYTES = 4 * 1024**3  # a browser that npx downloads has half a GiB


class SecretPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Placeholder of a secret in the value of a variable."""

    secret: str  # its key


Template = tuple[str | SecretPart, ...]  # the parts of a value, in order


class Folder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Folder or file of an agent that a server sees at the same path."""

    path: str
    is_writable: bool


class Workspaces(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agents' folders and files that a server sees. They must belong to one of these agents."""

    folders: tuple[Folder, ...]
    projects: tuple[Folder, ...] = ()  # a session sees one project in them, if any
    protect: bool  # see `core/mount_layout.py`
    protect_instructions: bool = True  # also for a file of an earlier version, without this key
    uids: tuple[int, ...]
    gids: tuple[int, ...]  # an account in one of these groups is an agent too


class OAuth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OAuth login settings of a remote server. For an empty one that server's own value is used."""

    scopes: tuple[str, ...] = ()
    client_id: str = ""  # registered by hand
    client_id_metadata: str = ""  # URL that serves as client id, where that is supported


class RemoteSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remote server: its URL, and the headers that are added to each request."""

    url: str
    headers: dict[str, Template]
    oauth: OAuth | None = None  # if set, an access token is added too


class PythonSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Server that executes code: its interpreter, its packages, and the worker that runs it."""

    python: str  # absolute path of the interpreter
    packages: tuple[str, ...] = ()  # requirements that each run has
    installs: bool = False  # runs may name further packages: the server has an egress to an index
    worker: str = ""  # `https://ADDRESS:PORT` of a worker on another machine; "" is this machine's
    ca: str = ""  # file with the authority of that worker's certificate; "" is the machine's
    limits: RunLimits
    cache_bytes: int = CACHE_BYTES  # of the server's folder `cache`, which packages share


class HubMemberSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Member of a hub: a server of its own, whose tools the hub offers under a namespace."""

    name: str
    namespace: str
    instructions: str = ""  # beside the member's own
    inherits: tuple[str, ...] = ()  # the agent's variables that are passed on to it, and no others
    has_projects: bool = False  # the agent's current folder is passed on to it


class HubSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Server that offers the tools of other servers."""

    members: tuple[HubMemberSpec, ...]

    def passes_folder(self) -> bool:
        """Return whether a member sees its agent's project."""
        return any(member.has_projects for member in self.members)


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Server descriptor for its wrapper. `/var/lib/mcpwrap/servers/NAME.json`."""

    name: str
    command: str
    args: tuple[str, ...]
    cwd: str  # "" is the session's own home
    egress_env: dict[str, str]  # proxy to use, and certificates to trust
    env: dict[str, Template]
    inherits: tuple[str, ...]  # the agent's variables, with values of their kind
    secrets: tuple[str, ...]  # the keys of all secrets that `env` refers to
    secret_files: tuple[str, ...]  # those of them that are passed as a path
    state: bool
    writable_command: bool = False  # an account other than root can change the command's files
    allow_degraded: bool
    idle_exit_s: int  # the wrapper exits after this time without a session; 0 is never
    sessions: int
    memory_bytes: int  # for one session, like the next two
    tasks: int
    cpu_percent: int  # of one processor; 0 is no bound
    inherits_any: tuple[str, ...] = ()  # with any value
    workspaces: Workspaces | None = None
    # Disk limits of the folders `state` and `cache`.
    state_bytes: int = STATE_BYTES
    cache_bytes: int = CACHE_BYTES
    remote: RemoteSpec | None = None  # if set, `command` is mcpwrap's remote program
    umask: int | None = None  # of the server; None is its agent's
    python: PythonSpec | None = None  # if set, `command` is mcpwrap's Python server
    hub: HubSpec | None = None  # if set, `command` is mcpwrap's hub

    def has_projects(self) -> bool:
        """Return whether its sessions see their agent's project, where the machine can show it."""
        return self.workspaces is not None and bool(self.workspaces.projects)

    def has_oauth(self) -> bool:
        """Return whether this is a remote server with an OAuth login."""
        return self.remote is not None and self.remote.oauth is not None


class HubMemberRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Member of a hub, as the gate admits it."""

    name: str
    namespace: str
    transports: tuple[str, ...] = ("stdio", "http")  # by which the hub's agent may have come


class PreviewRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read-only tool that shows an approver what a call of another tool would change."""

    tool: str
    arguments: dict[str, str]  # of that tool, each with the call's argument that it takes
    compare: str = ""  # the call's argument that is the new text
    count: str = ""  # the call's argument that is SQL, of which the rows are counted


class AccessRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access rule of one server, and the variables that the gate requests from a stub."""

    uids: tuple[int, ...]
    gids: tuple[int, ...]
    inherits: tuple[str, ...]
    inherits_any: tuple[str, ...] = ()
    relay: Relay = "gate"
    audit: Keep = "hash"  # how the audit stores the params of a request
    http_uids: tuple[int, ...] = ()  # agents that have an HTTP listener of their own
    login: bool = False  # a person can log in to it
    members: tuple[int, ...] = ()  # members of `gids` that root could list when this was written
    policy: tuple[str, ...] = ()  # files whose rules apply to it, at the time of the last `apply`
    sessions: int = 0  # of the server at a time; 0, of an earlier version: only the wrapper counts
    hub: tuple[HubMemberRule, ...] = ()  # its members, if it is a hub
    is_member: bool = False  # of a hub: the gate keeps what it lists
    pins: Pins = "first-use"
    executes: bool = False  # code of its agents: the audit has hash and length, and how runs ended
    workspaces: tuple[str, ...] = ()  # that it can write; () also in a file of an earlier version
    projects: tuple[str, ...] = ()  # folders; a session has the agent's project in one of them
    project_by_url: dict[str, str] = {}  # of agents' further URLs, by the name of the URL
    passes_folder: bool = False  # of a hub: the agent's current folder is for its members
    previews: dict[str, PreviewRule] = {}  # by the tool whose calls wait for approval

    def takes_folder(self) -> bool:
        """Return whether the agent's current folder is requested, and variables that name it."""
        return bool(self.projects) or self.passes_folder

    def admits(self, uid: int, gids: frozenset[int]) -> bool:
        """Return whether a peer with these ids (unix(7), SO_PEERCRED, SO_PEERGROUPS) is allowed."""
        return uid in self.uids or not gids.isdisjoint(self.gids)

    def may_have_agent(self, uid: int, gids: frozenset[int]) -> bool:
        """Return whether an account may be an agent of the server, also by a listener."""
        return self.admits(uid, gids) or uid in {*self.http_uids, *self.members}


class AccessList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access list of the gate. `/var/lib/mcpwrap/gate.json`; without the file it is empty."""

    by_server: dict[str, AccessRule] = {}
    same_uid_approves: bool = False  # the agent's own account may approve, without any proof


def encode(value: msgspec.Struct) -> str:
    """Return the JSON text of root's file; equal values give equal texts."""
    text = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(text, indent=1).decode() + "\n"


def decode_spec(text: bytes) -> ServerSpec:
    """Parse root's descriptor of a server.

    Raises:
        msgspec.MsgspecError: it is malformed, or of another version.
    """
    return _decode(text, ServerSpec)


def decode_access_list(text: str | bytes) -> AccessList:
    """Parse root's access list.

    Raises:
        msgspec.MsgspecError: it is malformed, or of another version.
    """
    return _decode(text, AccessList)


def _decode(text: str | bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
