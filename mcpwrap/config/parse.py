"""From TOML text to `Config`, with every problem found in one pass."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from mcpwrap.config import values
from mcpwrap.config.model import Config, ConfigError, Limits, Local, Problem, Remote, Server
from mcpwrap.config.reader import Reader
from mcpwrap.core.names import MAX_NAME_CHARS, is_server_name

MAX_FILE_BYTES = 1024 * 1024
MAX_SERVERS = 1000

LOCAL_KEYS = ("command", "args", "cwd", "env", "inherits", "mcpwrap")
REMOTE_KEYS = ("url", "bearer_token_env_var", "mcpwrap")
OUR_KEYS = (
    "agents", "egress", "direct", "workspace", "state", "secret_files", "relay", "shared",
    "allow_degraded", "limits",
)  # fmt: skip
LIMIT_KEYS = ("memory", "tasks", "sessions")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A configuration file: what to call it in errors, and its bytes."""

    name: str
    content: bytes


def parse(files: Sequence[SourceFile]) -> Config:
    """Return what all files together say. Their order does not matter: no server stands twice.

    Raises:
        ConfigError: with every problem of every file.
    """
    problems: list[Problem] = []
    servers: dict[str, Server] = {}
    file_by_server: dict[str, str] = {}
    for file in files:
        for server in _servers(file, problems):
            if other := file_by_server.get(server.name):
                table = f"[mcp_servers.{server.name}]"
                fix = "keep one of the two"
                problems.append(Problem(file.name, table, "", f"also stands in {other}", fix))
            servers[server.name] = server
            file_by_server[server.name] = file.name
    if len(servers) > MAX_SERVERS:
        problems.append(Problem("", "", "", f"{len(servers)} servers", f"at most {MAX_SERVERS}"))
    if problems:
        raise ConfigError(problems)
    return Config(dict(sorted(servers.items())), file_by_server)


def _servers(file: SourceFile, problems: list[Problem]) -> list[Server]:
    top = Reader(_table(file, problems), file=file.name, name="", problems=problems)
    found = top.table("mcp_servers")
    top.finish(("mcp_servers",))
    servers = []
    for name in found.names():
        if is_server_name(name):
            servers.append(_server(name, found.table(name)))
        else:
            found.note(
                repr(name),
                "cannot be the name of a server: it becomes an account and a unit",
                f"a-z first, then a-z 0-9 _ -, at most {MAX_NAME_CHARS} characters",
            )
    return servers


def _table(file: SourceFile, problems: list[Problem]) -> dict[str, object]:
    """Return the file as TOML has it; empty if it cannot be read."""
    if len(file.content) > MAX_FILE_BYTES:
        problems.append(Problem(file.name, "", "", "over 1 MiB", "split it into conf.d/*.toml"))
        return {}
    try:
        return tomllib.loads(file.content.decode())
    except UnicodeDecodeError as error:
        at = file.content.count(b"\n", 0, error.start) + 1
        problem = Problem(file.name, "", "", f"not UTF-8 (line {at})", "save it as UTF-8")
    except tomllib.TOMLDecodeError as error:
        problem = Problem(file.name, "", "", f"not TOML: {error}", "see toml.io for the form")
    except ValueError as error:  # a number of thousands of digits
        problem = Problem(file.name, "", "", f"not TOML: {error}", "no value needs that")
    except RecursionError:
        problem = Problem(file.name, "", "", "nested too deeply", "no value needs over 3 levels")
    problems.append(problem)
    return {}


def _server(name: str, reader: Reader) -> Server:
    ours = reader.table("mcpwrap")
    is_remote = reader.has("url")
    if is_remote == reader.has("command"):
        reader.note("", "needs `command` or `url`, and one only", 'write `command = "/usr/bin/…"`')
    runs = _remote(reader) if is_remote else _local(reader)
    reader.finish(REMOTE_KEYS if is_remote else LOCAL_KEYS)
    server = Server(
        name=name,
        runs=runs,
        agents=ours.many("agents", values.agent, ("@mcpwrap",), may_be_empty=False),
        egress=ours.many("egress", values.destination),
        direct=ours.many("direct", values.direct),
        workspace=ours.many("workspace", values.workspace),
        state=ours.flag("state"),
        secret_files=ours.many("secret_files", values.secret_key),
        relay=ours.one("relay", _relay, "gate"),
        shared=ours.flag("shared"),
        allow_degraded=ours.flag("allow_degraded"),
        limits=_limits(ours.table("limits")),
    )
    ours.finish(OUR_KEYS)
    return server


def _local(reader: Reader) -> Local:
    env = reader.table("env")
    names = [name for name in env.names() if _is_variable(env, name)]
    return Local(
        command=reader.one("command", _command, ""),
        args=reader.many("args", values.argument),
        cwd=reader.one("cwd", values.absolute_path, ""),
        env={name: env.one(name, values.template, ()) for name in names},
        inherits=reader.many("inherits", values.inherited),
    )


def _remote(reader: Reader) -> Remote:
    return Remote(
        url=reader.one("url", values.url, ""),
        bearer_token_env_var=reader.one("bearer_token_env_var", values.secret_key, ""),
    )


def _limits(reader: Reader) -> Limits:
    usual = Limits()
    limits = Limits(
        memory_bytes=reader.one("memory", values.size_bytes, usual.memory_bytes),
        tasks=reader.count("tasks", usual.tasks, 32_768),
        sessions=reader.count("sessions", usual.sessions, 1024),
    )
    reader.finish(LIMIT_KEYS)
    return limits


def _is_variable(env: Reader, key: str) -> bool:
    try:
        values.variable(key)
    except values.BadValueError as problem:
        env.note(repr(key), problem.problem, problem.fix)
        return False
    return True


def _command(value: str) -> str:
    if not value.startswith("/"):
        raise values.BadValueError(
            f"{value!r} is not an absolute path, and no PATH is searched",
            "write where it is; `command -v` tells you",
        )
    return values.absolute_path(value)


def _relay(value: str) -> str:
    if value not in {"gate", "direct"}:
        raise values.BadValueError(f"{value!r} is no relay", 'write `"gate"` or `"direct"`')
    return value
