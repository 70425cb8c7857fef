"""Types of what `config.toml` and the files in `conf.d` may contain: one class for each table.

The sub-table `mcpwrap` has other keys for each kind of server, so each kind has its own classes.
"""

from typing import Annotated, Literal

from mcpwrap.config.file_types.fields import (
    OPTIONAL,
    AbsolutePath,
    FileTable,
    KeyConstraint,
    about,
    whole,
)
from mcpwrap.config.toml_table import MAX_ITEMS
from mcpwrap.core.names import MAX_NAME_CHARS
from mcpwrap.core.wire.server_files import Keep, Pins, Relay

MAX_TASKS = 32_768
MAX_SESSIONS = 1024
MAX_MEMBERS = 32  # of a hub
MAX_SECONDS = 3600
MAX_AT_ONCE = 32  # slots: a unit and an account each, and 75 MB of the worker's memory
_MANY = KeyConstraint(max_length=MAX_ITEMS)
_SOME = KeyConstraint(min_length=1, max_length=MAX_ITEMS)
_Texts = Annotated[list[str], _MANY]
_Size = Annotated[str, whole("[0-9]{1,6}[KMGT]")]
_Share = Annotated[str, whole("[1-9][0-9]{0,4}%")]
_Keys = Annotated[list[Annotated[str, whole("[A-Z_][A-Z0-9_]{0,63}")]], _MANY]
_Https = Annotated[str, KeyConstraint(pattern="^https://")]
_Relay = Annotated[Relay, about("Whether the gate judges messages.", default='"gate"')]
_Pins = Annotated[Pins, about("How definitions are accepted.", default='"first-use"')]
_Direct = Annotated[
    _Texts, about("Literal addresses with ports that it reaches directly.", ["10.0.0.5:5432"])
]
_Cache = Annotated[bool, about("It has a persistent folder for downloads.", default="false")]
_ServerName = Annotated[str, whole(rf"[a-z][a-z0-9_-]{{0,{MAX_NAME_CHARS - 1}}}")]


class SessionLimitsTable(FileTable):
    """Limits of one session, and of folders of the server."""

    memory: Annotated[_Size, about("Memory, 16M to 1T.", "512M", default="1G")] = OPTIONAL
    tasks: Annotated[
        int, KeyConstraint(ge=1, le=MAX_TASKS), about("Processes and threads.", default="256")
    ] = OPTIONAL
    cpu: Annotated[_Share, about("Share of a processor.", "150%", default="no limit")] = OPTIONAL
    sessions: Annotated[
        int, KeyConstraint(ge=1, le=MAX_SESSIONS), about("Sessions at the same time.", default="16")
    ] = OPTIONAL
    state: Annotated[_Size, about("Size of the folder of `state`.", default="1G")] = OPTIONAL
    cache: Annotated[_Size, about("Size of the folder of `cache`.", default="4G")] = OPTIONAL


class RunLimitsTable(FileTable):
    """Limits of one run of code."""

    memory: Annotated[_Size, about("Memory, 16M to 1T.", default="512M")] = OPTIONAL
    cpu: Annotated[_Share, about("Share of a processor.", default="100%")] = OPTIONAL
    tasks: Annotated[
        int, KeyConstraint(ge=1, le=MAX_TASKS), about("Processes and threads.", default="256")
    ] = OPTIONAL
    seconds: Annotated[
        int, KeyConstraint(ge=1, le=MAX_SECONDS), about("Time of a run.", default="60")
    ] = OPTIONAL
    at_once: Annotated[
        int, KeyConstraint(ge=1, le=MAX_AT_ONCE), about("Runs at the same time.", default="2")
    ] = OPTIONAL
    code: Annotated[_Size, about("Size of the source, 1K to 16M.", default="64K")] = OPTIONAL
    output: Annotated[_Size, about("Size of the output, 1K to 16M.", default="256K")] = OPTIONAL


class OAuthTable(FileTable):
    """Settings of the login to a remote server."""

    scopes: Annotated[_Texts, about("Scopes to request.")] = OPTIONAL
    client_id: Annotated[str, about("Client id, if it was registered manually.")] = OPTIONAL
    client_id_metadata: Annotated[_Https, about("URL of a document that describes a client.")] = (
        OPTIONAL
    )


class HubSettings(FileTable):
    """Settings of a hub, which servers of all kinds have."""

    agents: Annotated[
        Annotated[list[str], _SOME],
        about("Accounts and @groups that may use the server.", default='["@mcpwrap"]'),
    ] = OPTIONAL
    expose: Annotated[Literal["http"], about("Each agent also gets a URL.")] = OPTIONAL
    audit: Annotated[Keep, about("How the audit stores params of requests.", default='"hash"')] = (
        OPTIONAL
    )
    allow_degraded: Annotated[
        bool, about("Start on a kernel without Landlock, too.", default="false")
    ] = OPTIONAL
    idle_exit: Annotated[
        str,
        whole("never|[1-9][0-9]{0,3}[smh]"),
        about("Time without a session after which the wrapper ends.", "90s", "8h", default='"15m"'),
    ] = OPTIONAL
    limits: Annotated[SessionLimitsTable, about("Limits of one session.")] = OPTIONAL


class ServerSettings(HubSettings):
    """Settings of a server of any kind but a hub."""

    egress: Annotated[
        _Texts, about("Hosts that it may reach by TLS.", ["api.example.com", "*.example.org"])
    ] = OPTIONAL
    intercept: Annotated[
        bool, about("Squid opens TLS, and judges each request.", default="false")
    ] = OPTIONAL
    requests: Annotated[
        _Texts, about("The requests that it may send, with `intercept`.", ["GET api.example/v1/*"])
    ] = OPTIONAL
    protect: Annotated[
        bool, about("Files from which tools run code are read-only.", default="true")
    ] = OPTIONAL
    protect_instructions: Annotated[
        bool, about("Files that agents read as instructions are read-only.", default="true")
    ] = OPTIONAL
    shared: Annotated[
        bool, about("More than one account may use its secrets and files.", default="false")
    ] = OPTIONAL


class PreviewTable(FileTable):
    """Read-only tool that shows an approver what a call would change."""

    tool: Annotated[str, about("Tool of the same server.", "read_text_file")]
    arguments: Annotated[
        dict[str, str], about("Its arguments, each with the call's argument that it takes.")
    ]
    compare: Annotated[str, about("The call's argument that is the new text.", "content")] = (
        OPTIONAL
    )
    count: Annotated[
        str, about("The call's argument that is SQL, whose rows are counted.", "query")
    ] = OPTIONAL


_Previews = Annotated[
    dict[str, PreviewTable], about("Previews of calls that wait for approval, by tool.")
]


class RemoteSettings(ServerSettings):
    """Settings of a remote server."""

    previews: _Previews = OPTIONAL

    relay: _Relay = OPTIONAL
    pins: _Pins = OPTIONAL
    oauth: Annotated[bool | OAuthTable, about("A person logs in to the URL.", default="false")] = (
        OPTIONAL
    )


class PythonSettings(ServerSettings):
    """Settings of a server that executes code."""

    direct: _Direct = OPTIONAL
    cache: _Cache = OPTIONAL
    packages: Annotated[
        _Texts, about("Requirements that every run has.", ["pandas>=2", "matplotlib"])
    ] = OPTIONAL
    worker: Annotated[
        _Https,
        about("Worker of another machine.", "https://10.0.0.5:9443", default="this machine's"),
    ] = OPTIONAL
    worker_ca: Annotated[
        AbsolutePath, about("PEM file of the authority of the worker's certificate.")
    ] = OPTIONAL
    runs: Annotated[RunLimitsTable, about("Limits of one run.")] = OPTIONAL


class UrlTable(FileTable):
    """Further URL of each agent, with a project."""

    project: Annotated[AbsolutePath, about("Project of its sessions.", "/home/alice/src/app")]


class ProgramSettings(ServerSettings):
    """Settings of a server that is a program of this machine."""

    previews: _Previews = OPTIONAL
    direct: _Direct = OPTIONAL
    transparent: Annotated[
        bool, about("Programs that ignore proxy variables are served too.", default="true")
    ] = OPTIONAL
    workspace: Annotated[
        list[Annotated[str, KeyConstraint(pattern="^/.*:r[ow]$")]],
        _MANY,
        about("Folders or files of agents that it sees.", ["/home/alice/project:rw"]),
    ] = OPTIONAL
    projects: Annotated[
        list[Annotated[str, KeyConstraint(pattern="^/.*:r[ow]$")]],
        _MANY,
        about(
            "Folders of which a session sees the agent's current project alone.",
            ["/home/alice/src:rw"],
        ),
    ] = OPTIONAL
    http: Annotated[
        dict[_ServerName, UrlTable], about("Further URLs of each agent, each with a project.")
    ] = OPTIONAL
    writable_command: Annotated[
        bool, about("An account other than root may change its program.", default="false")
    ] = OPTIONAL
    umask: Annotated[
        str, whole("0{1,2}[0-7]{2}"), about("Umask.", "0027", default="the agent's")
    ] = OPTIONAL
    state: Annotated[bool, about("It has a persistent home.", default="false")] = OPTIONAL
    cache: _Cache = OPTIONAL
    secret_files: Annotated[_Keys, about("Secrets that are passed as files.")] = OPTIONAL
    relay: _Relay = OPTIONAL
    pins: _Pins = OPTIONAL


class ProgramTable(FileTable):
    """Server that is a program of this machine."""

    command: Annotated[AbsolutePath, about("Program to start.", "/usr/bin/npx")]
    args: Annotated[_Texts, about("Arguments of the program.")] = OPTIONAL
    cwd: Annotated[
        AbsolutePath, about("Folder in which it starts.", default="the session's own home")
    ] = OPTIONAL
    env: Annotated[
        dict[str, str], about("Environment variables; `${KEY}` in a value is a secret.")
    ] = OPTIONAL
    inherits: Annotated[
        _Texts, about("Variables of locale, time zone or display, of the agent.", ["LANG", "TZ"])
    ] = OPTIONAL
    inherits_any: Annotated[_Texts, about("Further variables of the agent, with any value.")] = (
        OPTIONAL
    )
    mcpwrap: Annotated[ProgramSettings, about("Settings of mcpwrap.")] = OPTIONAL


class RemoteTable(FileTable):
    """Server that is a URL."""

    url: Annotated[_Https, about("URL of the server.", "https://mcp.example.com/mcp")]
    bearer_token_env_var: Annotated[
        str, about("Key of the secret that is sent as bearer token.", "TOKEN")
    ] = OPTIONAL
    headers: Annotated[
        dict[str, str], about("Headers of each request; `${KEY}` in a value is a secret.")
    ] = OPTIONAL
    mcpwrap: Annotated[RemoteSettings, about("Settings of mcpwrap.")] = OPTIONAL


class PythonTable(FileTable):
    """Server whose tool executes code."""

    python: Annotated[
        str,
        KeyConstraint(pattern="^/(usr|opt)/"),
        about("Interpreter of the code.", "/usr/bin/python3"),
    ]
    mcpwrap: Annotated[PythonSettings, about("Settings of mcpwrap.")] = OPTIONAL


class MemberTable(FileTable):
    """Server that a hub offers."""

    namespace: Annotated[
        str, about("Prefix of its tools and prompts.", default="the server's name")
    ] = OPTIONAL
    instructions: Annotated[str, about("Text for the agent, after the server's own.")] = OPTIONAL
    transports: Annotated[
        list[Literal["stdio", "http"]], _SOME, about("Agents to which it is offered.")
    ] = OPTIONAL


class HubTable(FileTable):
    """Hub, which offers the tools of other servers."""

    members: Annotated[
        dict[_ServerName, MemberTable],
        KeyConstraint(min_length=1, max_length=MAX_MEMBERS),
        about("Servers of this configuration, by their names."),
    ]
    mcpwrap: Annotated[HubSettings, about("Settings of mcpwrap.")] = OPTIONAL


class EgressTable(FileTable):
    """Network access of the whole machine."""

    parent: Annotated[str, about("Proxy that this machine must use.", "10.0.0.1:3128")] = OPTIONAL


class ApprovalsTable(FileTable):
    """Approvals on this machine."""

    same_uid: Annotated[
        bool, about("The agent's account approves without a proof.", default="false")
    ] = OPTIONAL
    webhook: Annotated[
        _Https, about("URL to which requests that wait for approval are posted.")
    ] = OPTIONAL


class WorkerTable(FileTable):
    """Worker of this machine for Python servers of other machines."""

    listen: Annotated[str, about("Address and port of this machine.", "10.0.0.5:9443")]
    certificate: Annotated[AbsolutePath, about("PEM file of the certificate with its chain.")]
    key: Annotated[AbsolutePath, about("PEM file of the certificate's key.")]
    python: Annotated[
        AbsolutePath, about("Interpreter of the code.", default="/usr/bin/python3")
    ] = OPTIONAL
    runs: Annotated[RunLimitsTable, about("Limits of one run.")] = OPTIONAL


class ConfigFile(FileTable):
    """One file of the configuration."""

    mcp_servers: Annotated[
        dict[_ServerName, ProgramTable | RemoteTable | PythonTable | HubTable],
        about("Servers by their names."),
    ] = OPTIONAL
    egress: Annotated[EgressTable, about("Network access of the machine.")] = OPTIONAL
    approvals: Annotated[ApprovalsTable, about("Approvals on the machine.")] = OPTIONAL
    worker: Annotated[WorkerTable, about("Worker for other machines.")] = OPTIONAL
