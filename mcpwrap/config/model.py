"""The configuration, once it has been understood. Source: docs/mcpwrap.toml.5.rst."""

from dataclasses import dataclass, field

from mcpwrap.errors import UsageError

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class SecretRef:
    """`${KEY}` in a declared variable: the value is put there when the server starts."""

    key: str


Template = tuple[str | SecretRef, ...]  # the parts of a value, in order


@dataclass(frozen=True, slots=True)
class Destination:
    """One entry of an allowlist: a host, or all hosts under it, at one TCP port."""

    host: str  # lower case, punycode
    port: int
    with_subdomains: bool


@dataclass(frozen=True, slots=True)
class Direct:
    """One literal address and TCP port that is reached as it is, without a proxy."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder of an agent's that the server sees at the same path."""

    path: str
    is_writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings for one session; the wrapper's own are these times `sessions`."""

    memory_bytes: int = GIB
    tasks: int = 256
    sessions: int = 16  # running at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """A server that is a program of this machine."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str = ""  # "" is the session's own home
    env: dict[str, Template] = field(default_factory=dict)
    inherits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A server that is a URL."""

    url: str
    bearer_token_env_var: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One `[mcp_servers.NAME]` with its `mcpwrap` sub-table."""

    name: str
    runs: Local | Remote
    agents: tuple[str, ...] = ("@mcpwrap",)
    egress: tuple[Destination, ...] = ()
    direct: tuple[Direct, ...] = ()
    workspace: tuple[Workspace, ...] = ()
    state: bool = False
    secret_files: tuple[str, ...] = ()
    relay: str = "gate"
    shared: bool = False
    allow_degraded: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Config:
    """All servers, by name, in the order of their names, and the file that each stands in."""

    servers: dict[str, Server]
    file_by_server: dict[str, str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a configuration file."""

    file: str
    table: str  # as in TOML, `[mcp_servers.git.mcpwrap]`; "" is the file itself
    key: str  # "" is the table itself
    problem: str
    fix: str

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.file, self.table, self.key) if part)
        return f"{where}: {self.problem}\n  fix: {self.fix}"


class ConfigError(UsageError):
    """Everything that is wrong with a configuration, found in one pass."""

    def __init__(self, problems: list[Problem]) -> None:
        first = problems[0]
        super().__init__(first.problem, where=first.file, fix=first.fix)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"{count} {'problem' if count == 1 else 'problems'}; nothing was changed"
        return "\n".join([*map(str, self.problems), head])
