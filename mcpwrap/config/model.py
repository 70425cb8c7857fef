"""Model of the configuration, as parsed. Source: docs/mcpwrap.toml.5.rst."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from mcpwrap.core import names
from mcpwrap.core.wire.execution.execute_api import TOKEN
from mcpwrap.core.wire.execution.worker_file import LISTENER_POOL, RunLimits
from mcpwrap.core.wire.server_files import (
    CACHE_BYTES,
    STATE_BYTES,
    Keep,
    OAuth,
    Pins,
    PreviewRule,
    Relay,
)
from mcpwrap.errors import UsageError, problem_lines

GIB = 1024**3
IDLE_EXIT_S = 900  # an idle wrapper holds 10 MB, and starts again in 0.1 s


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Reference to a secret, `${KEY}` in a value: it is resolved when the server starts."""

    key: str


Template = tuple[str | SecretRef, ...]  # the parts of a value, in order
Expose = Literal["", "http"]
TRANSPORTS = ("stdio", "http")  # by which an agent reaches a server


@dataclass(frozen=True, slots=True)
class Destination:
    """Entry of an egress allowlist: a host, or all hosts under it, at one TCP port."""

    host: str  # lower case, punycode
    port: int
    with_subdomains: bool

    def covers(self, host: str) -> bool:
        """Return whether this entry admits the host."""
        if self.with_subdomains:
            return host.endswith(f".{self.host}")
        return host == self.host


@dataclass(frozen=True, slots=True)
class Group:
    """Package registry in an allowlist; its hosts are in this machine's own configuration."""

    name: str  # one of GROUPS


GROUPS = ("npm", "pypi")


@dataclass(frozen=True, slots=True)
class AllowedRequest:
    """Allowed HTTP requests of an intercepted server. `path` is a glob; `*` is any text."""

    methods: tuple[str, ...]  # capitals
    host: str
    path: str


@dataclass(frozen=True, slots=True)
class Direct:
    """Literal address and TCP port that is reached directly, without a proxy."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folder or file of an agent that the server sees at the same path."""

    path: str
    is_writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one session; the wrapper's own are these times `sessions`."""

    memory_bytes: int = GIB
    tasks: int = 256
    sessions: int = 16  # running at the same time
    cpu_percent: int = 0  # of one processor; 0 is no limit
    state_bytes: int = STATE_BYTES  # on disk, for all sessions together; so is the next
    cache_bytes: int = CACHE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Server that is a program of this machine."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str = ""  # "" is the session's own home
    env: dict[str, Template] = field(default_factory=dict)
    inherits: tuple[str, ...] = ()  # variables of the agent, of a kind in core/environment
    inherits_any: tuple[str, ...] = ()  # other variables of the agent, with any value


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteServer:
    """Server that is a URL."""

    url: str
    bearer_token_env_var: str = ""
    headers: dict[str, Template] = field(default_factory=dict)  # names as written
    oauth: OAuth | None = None  # a person logs in to it, and mcpwrap holds the tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """Server whose tool executes code, each run under an account of its own."""

    interpreter: str
    packages: tuple[str, ...] = ()  # requirements that every run has
    worker: Direct | None = None  # on another machine; None is this machine's
    worker_ca: str = ""  # authority of that worker's certificate; "": those of the machine
    limits: RunLimits = field(default_factory=RunLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubMember:
    """Server that a hub offers: `[mcp_servers.HUB.members.NAME]`."""

    name: str
    namespace: str  # "" where its tools keep their names
    instructions: str = ""  # for agents, after the member's own
    transports: tuple[str, ...] = TRANSPORTS  # by which the hub's agent may have come


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """Server that offers the tools of other servers, and has none itself."""

    members: tuple[HubMember, ...]  # in the order of their names


Runs = Local | RemoteServer | Python | Hub


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerListener:
    """Worker of this machine for Python servers of other machines: `[worker]`."""

    listen: Direct
    interpreter: str
    certificate: str
    key: str
    limits: RunLimits = field(default_factory=RunLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Server: one `[mcp_servers.NAME]` with its `mcpwrap` sub-table."""

    name: str
    runs: Runs
    agents: tuple[str, ...] = ("@mcpwrap",)
    egress: tuple[Destination | Group, ...] = ()  # of a URL, its own host is the first
    direct: tuple[Direct, ...] = ()
    transparent: bool = True  # programs that ignore proxy variables can connect, too
    intercept: bool = False  # TLS is opened, and each request judged
    requests: tuple[AllowedRequest, ...] = ()  # if any, only these; needs `intercept`
    workspace: tuple[Workspace, ...] = ()
    projects: tuple[Workspace, ...] = ()  # of these a session sees its agent's project alone
    writable_command: bool = False  # another account than root can change what it runs
    protect: bool = True  # held names in workspaces and projects are read-only
    protect_instructions: bool = True  # so are the files that agents read as instructions
    umask: int | None = None  # None is the agent's
    state: bool = False
    cache: bool = False  # a persistent folder, for what npx and uvx download
    secret_files: tuple[str, ...] = ()
    http: Mapping[str, str] = field(default_factory=dict)  # projects of further URLs, by name
    relay: Relay = "gate"
    pins: Pins = "first-use"
    expose: Expose = ""  # protocol for agents, besides stdio
    audit: Keep = "hash"
    idle_exit_s: int = IDLE_EXIT_S  # 0 is never
    shared: bool = False
    allow_degraded: bool = False
    previews: Mapping[str, PreviewRule] = field(default_factory=dict)  # by tool
    limits: Limits = field(default_factory=Limits)

    def has_network(self) -> bool:
        """Return whether the server has any network access; that to the worker counts too."""
        return bool(self.egress or self.direct) or isinstance(self.runs, Python)

    def speaks_http(self) -> bool:
        """Return whether each of its agents has its own HTTP listener."""
        return self.expose == "http" or isinstance(self.runs, RemoteServer)

    def has_oauth(self) -> bool:
        """Return whether a person logs in to the server and mcpwrap holds the tokens."""
        return isinstance(self.runs, RemoteServer) and self.runs.oauth is not None

    def uses_local_worker(self) -> bool:
        """Return whether the server's code is executed by this machine's worker."""
        return isinstance(self.runs, Python) and self.runs.worker is None

    def secrets(self) -> frozenset[str]:
        """Return the keys of all secrets: those it refers to, OAuth's, and the worker's token."""
        match self.runs:
            case Local(env=env):
                return _keys(env)
            case RemoteServer(bearer_token_env_var=key, headers=headers):
                own = {names.OAUTH_KEY} if self.has_oauth() else set()
                return _keys(headers) | own | ({key} if key else set())
            case Python():
                return frozenset({TOKEN})
            case Hub():
                return frozenset()
            case _:
                assert_never(self.runs)


def _keys(templates: Mapping[str, Template]) -> frozenset[str]:
    parts = (part for template in templates.values() for part in template)
    return frozenset(part.key for part in parts if isinstance(part, SecretRef))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSettings:
    """Settings for approvals: answers from the same account, and the webhook."""

    same_uid: bool = False  # the agent's own account may answer, without a proof
    webhook: str = ""  # URL to which pending approvals are posted; "": not posted


@dataclass(frozen=True, slots=True)
class Config:
    """Configuration: all servers, in the order of their names, and the file of each."""

    servers: dict[str, Server]
    file_by_server: dict[str, str]
    parent: Direct | None = None  # the company's proxy, through which all egress goes
    approvals: ApprovalSettings = field(default_factory=ApprovalSettings)
    worker: WorkerListener | None = None

    def pools(self) -> dict[str, RunLimits]:
        """Return the pools of run slots of this machine, with the limits of their runs."""
        found = {
            name: server.runs.limits
            for name, server in self.servers.items()
            if isinstance(server.runs, Python) and server.uses_local_worker()
        }
        if self.worker:
            found[LISTENER_POOL] = self.worker.limits
        return found


@dataclass(frozen=True, slots=True)
class Problem:
    """Single error in a configuration file."""

    file: str
    table: str  # as in TOML, `[mcp_servers.git.mcpwrap]`; "" is the file itself
    key: str  # "" is the table itself
    problem: str
    fix: str
    code: str  # the name in mcpwrap-errors(7)

    def lines(self) -> list[str]:
        """Return the lines that are printed."""
        where = ", ".join(part for part in (self.file, self.table, self.key) if part)
        return problem_lines(where, self.problem, self.fix, code=self.code)

    def __str__(self) -> str:
        return "\n".join(self.lines())


class ConfigError(UsageError):
    """All errors of a configuration, found in one pass."""

    def __init__(self, problems: list[Problem]) -> None:
        first = problems[0]
        super().__init__(first.problem, where=first.file, fix=first.fix, code=first.code)
        self.problems = tuple(problems)

    def lines(self) -> list[str]:
        """Return the lines of all errors, then their number."""
        count = len(self.problems)
        head = f"{count} {'problem' if count == 1 else 'problems'}; nothing was changed"
        return [*(line for problem in self.problems for line in problem.lines()), head]
