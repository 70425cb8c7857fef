"""Parser of `config.toml` and `conf.d` into one `Config`, with all errors found in one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import tomli

from mcpwrap.config import local_program, python_server, quantities, remote_server, value_parsers
from mcpwrap.config.model import (
    IDLE_EXIT_S,
    ApprovalSettings,
    Config,
    ConfigError,
    Destination,
    Direct,
    Group,
    Limits,
    Local,
    Problem,
    Python,
    RemoteServer,
    Server,
    WorkerListener,
)
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.core.names import MAX_NAME_CHARS, is_server_name

MAX_FILE_BYTES = 1024 * 1024
MAX_SERVERS = 1000

OUR_KEYS = (
    "agents", "egress", "direct", "transparent", "intercept", "requests", "workspace", "protect",
    "protect_instructions", "writable_command", "umask", "state", "cache", "secret_files",
    "relay", "expose", "oauth", "audit", "shared", "allow_degraded", "idle_exit", "limits",
)  # fmt: skip
LIMIT_KEYS = ("memory", "tasks", "cpu", "sessions", "state", "cache")
APPROVALS_KEYS = ("same_uid", "webhook")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Configuration file: its name in errors, and its bytes."""

    name: str
    content: bytes


def parse(files: Sequence[SourceFile]) -> Config:
    """Return the configuration of all files. Their order does not matter: a server is in one file.

    Raises:
        ConfigError: with every problem of every file.
    """
    problems: list[Problem] = []
    servers: dict[str, Server] = {}
    file_by_server: dict[str, str] = {}
    parents: list[Direct] = []
    approvals: list[ApprovalSettings] = []
    workers: list[WorkerListener] = []
    for file in files:
        top = TomlTableReader(_table(file, problems), file=file.name, name="", problems=problems)
        parents += _parent(top, parents)
        approvals += _approvals(top, approvals)
        workers += _worker(top, workers)
        for server in _servers(top):
            if other := file_by_server.get(server.name):
                table = f"[mcp_servers.{server.name}]"
                fix = "keep one of the two"
                problems.append(
                    Problem(
                        file.name,
                        table,
                        "",
                        f"is also defined in {other}",
                        fix,
                        code="E-CONFIG-DUPLICATE",
                    )
                )
            servers[server.name] = server
            file_by_server[server.name] = file.name
    if len(servers) > MAX_SERVERS:
        problems.append(
            Problem(
                "",
                "",
                "",
                f"{len(servers)} servers",
                f"define at most {MAX_SERVERS}",
                code="E-CONFIG-TOO-MANY",
            )
        )
    if problems:
        raise ConfigError(problems)
    parent, settings = next(iter(parents), None), next(iter(approvals), ApprovalSettings())
    worker = next(iter(workers), None)
    return Config(dict(sorted(servers.items())), file_by_server, parent, settings, worker)


def _parent(top: TomlTableReader, others: list[Direct]) -> list[Direct]:
    """Return the parent proxy in this file's `[egress]`, if any; only one file may have one."""
    egress = top.table("egress")
    parent = egress.one("parent", value_parsers.parent, None)
    egress.finish(("parent",))
    if parent and others:
        egress.note(
            "parent",
            "is also set in another file",
            "keep one of the two",
            code="E-CONFIG-DUPLICATE",
        )
    return [parent] if parent else []


def _approvals(top: TomlTableReader, others: list[ApprovalSettings]) -> list[ApprovalSettings]:
    """Return this file's `[approvals]`, if any; only one file may have one."""
    if not top.has("approvals"):
        return []
    ours = top.table("approvals")
    approvals = ApprovalSettings(
        same_uid=ours.flag("same_uid"), webhook=ours.one("webhook", value_parsers.url, "")
    )
    ours.finish(APPROVALS_KEYS)
    if others:
        ours.note(
            "", "is also defined in another file", "keep one of the two", code="E-CONFIG-DUPLICATE"
        )
    return [approvals]


def _worker(top: TomlTableReader, others: list[WorkerListener]) -> list[WorkerListener]:
    """Return this file's `[worker]`, if any; only one file may have one."""
    if top.has_text("worker"):
        top.refuse(
            "worker",
            "is a table here, for other machines",
            'write `worker = "https://…"` in [mcp_servers.NAME.mcpwrap] of a Python server',
            code="E-CONFIG-TYPE",
        )
    if not top.has_table("worker"):
        top.table("worker")  # notes what else it is
        return []
    table = top.table("worker")
    found = python_server.listener(table)
    if others:
        table.note(
            "", "is also defined in another file", "keep one of the two", code="E-CONFIG-DUPLICATE"
        )
    return [found] if found else []


def _servers(top: TomlTableReader) -> list[Server]:
    found = top.table("mcp_servers")
    top.finish(("mcp_servers", "egress", "approvals", "worker"))
    servers = []
    for name in found.names():
        if is_server_name(name):
            servers.append(_server(name, found.table(name)))
        else:
            found.note(
                repr(name),
                "is not a valid server name: an account and a unit are named after it",
                f"begin with a-z, go on with a-z 0-9 _ -, use at most {MAX_NAME_CHARS} characters",
                code="E-CONFIG-SERVER-NAME",
            )
    return servers


def _table(file: SourceFile, problems: list[Problem]) -> dict[str, object]:
    """Return the parsed TOML of the file; empty if it cannot be parsed."""
    if len(file.content) > MAX_FILE_BYTES:
        problems.append(
            Problem(
                file.name,
                "",
                "",
                "over 1 MiB",
                "split it into conf.d/*.toml",
                code="E-CONFIG-TOO-LARGE",
            )
        )
        return {}
    try:
        return tomli.loads(file.content.decode())
    except UnicodeDecodeError as error:
        at = file.content.count(b"\n", 0, error.start) + 1
        problem = Problem(
            file.name,
            "",
            "",
            f"not UTF-8 (line {at})",
            "save it as UTF-8",
            code="E-CONFIG-NOT-UTF8",
        )
    except tomli.TOMLDecodeError as error:
        problem = Problem(
            file.name,
            "",
            "",
            f"not TOML: {error}",
            "correct the syntax at that position; toml.io describes it",
            code="E-CONFIG-TOML",
        )
    except ValueError as error:  # a number of thousands of digits
        problem = Problem(
            file.name, "", "", f"not TOML: {error}", "shorten the number", code="E-CONFIG-TOML"
        )
    except RecursionError:
        problem = Problem(
            file.name,
            "",
            "",
            "nested too deeply",
            "remove levels: `[mcp_servers.NAME.mcpwrap.limits]` is the deepest",
            code="E-CONFIG-TOML",
        )
    problems.append(problem)
    return {}


def _server(name: str, reader: TomlTableReader) -> Server:
    ours = reader.table("mcpwrap")
    runs = _runs(name, reader, ours)
    is_program = isinstance(runs, Local)
    if not isinstance(runs, RemoteServer):
        ours.refuse(
            "oauth", "is only valid for a server with `url`", "remove it", code="E-OAUTH-NOT-REMOTE"
        )
    persistent = {"state": ours.flag("state"), "cache": _cache(runs, ours)}
    server = Server(
        name=name,
        runs=runs,
        agents=ours.many("agents", value_parsers.agent, ("@mcpwrap",), may_be_empty=False),
        egress=_egress(runs, ours),
        direct=_direct(runs, ours),
        transparent=ours.flag("transparent", usual=is_program),
        intercept=ours.flag("intercept"),
        requests=ours.many("requests", value_parsers.request),
        workspace=ours.many("workspace", value_parsers.workspace),
        protect=ours.flag("protect", usual=True),
        protect_instructions=ours.flag("protect_instructions", usual=True),
        writable_command=ours.flag("writable_command"),
        umask=ours.one("umask", value_parsers.umask, None),
        state=persistent["state"],
        cache=persistent["cache"],
        secret_files=ours.many("secret_files", value_parsers.secret_key),
        relay=ours.one("relay", value_parsers.relay, "gate"),
        expose=ours.one("expose", value_parsers.expose, ""),
        audit=ours.one("audit", value_parsers.audit, "hash"),
        shared=ours.flag("shared"),
        allow_degraded=ours.flag("allow_degraded"),
        idle_exit_s=ours.one("idle_exit", quantities.idle_s, IDLE_EXIT_S),
        limits=_limits(ours.table("limits"), persistent),
    )
    ours.finish(_our_keys(runs))
    _expect_sound_egress(server, ours)
    _expect_each_workspace_once(server, ours)
    if server.relay == "direct" and server.speaks_http():
        ours.note(
            "relay",
            "an agent that connects by HTTP has no descriptors to pass on",
            'write `relay = "gate"`, or remove it',
            code="E-CONFIG-RELAY-HTTP",
        )
    match runs:
        case RemoteServer():
            remote_server.expect_no_program(server, ours)
        case Python():
            python_server.expect_no_program(server, ours)
        case Local():
            local_program.expect_each_file_to_be_a_secret(server, ours)
        case _:
            assert_never(runs)
    return server


def _runs(
    name: str, reader: TomlTableReader, ours: TomlTableReader
) -> Local | RemoteServer | Python:
    """Return what the server runs, by the one of three keys that its table has."""
    kinds = [key for key in ("command", "url", "python") if reader.has(key)]
    if len(kinds) != 1:
        reader.note(
            "",
            "needs exactly one of `command`, `url` and `python`",
            'write `command = "/usr/bin/…"`, `url = "https://…"` or `python = "/usr/bin/python3"`',
            code="E-CONFIG-COMMAND-OR-URL",
        )
    runs: Local | RemoteServer | Python
    known: tuple[str, ...]
    if "url" in kinds:
        runs, known = remote_server.read(reader, ours), remote_server.REMOTE_KEYS
    elif "python" in kinds:
        runs, known = python_server.read(name, reader, ours), python_server.PYTHON_KEYS
    else:
        runs, known = local_program.read(reader), local_program.LOCAL_KEYS
    reader.finish(known, _our_keys(runs))
    return runs


def _our_keys(runs: Local | RemoteServer | Python) -> tuple[str, ...]:
    """Return the keys of the sub-table `mcpwrap` that this kind of server does not refuse."""
    match runs:
        case RemoteServer():
            return _without(remote_server.NOT_OUR_KEYS)
        case Python():
            return (*_without((*python_server.NOT_OUR_KEYS, "oauth")), *python_server.OUR_KEYS)
        case Local():
            return _without(("oauth",))
        case _:
            assert_never(runs)


def _without(refused: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key for key in OUR_KEYS if key not in refused)


def _cache(runs: Local | RemoteServer | Python, ours: TomlTableReader) -> bool:
    """Return whether the server has a persistent folder; a Python server always has."""
    return ours.flag("cache") or isinstance(runs, Python)


def _direct(runs: Local | RemoteServer | Python, ours: TomlTableReader) -> tuple[Direct, ...]:
    """Return the entries of `direct`, and before them the worker on another machine, if any."""
    listed = ours.many("direct", value_parsers.direct)
    own = runs.worker if isinstance(runs, Python) else None
    return tuple(dict.fromkeys([own, *listed])) if own else listed


def _egress(
    runs: Local | RemoteServer | Python, ours: TomlTableReader
) -> tuple[Destination | Group, ...]:
    """Return the server's allowlist: the host of its own URL, if it has one, and `egress`."""
    listed = ours.many("egress", value_parsers.egress)
    own = remote_server.reached(runs) if isinstance(runs, RemoteServer) else ()
    return tuple(dict.fromkeys([*own, *listed])) if own else listed


def _expect_sound_egress(server: Server, ours: TomlTableReader) -> None:
    """Note egress settings that would have no effect: their author relies on them."""
    if (server.intercept or server.requests) and not server.egress:
        ours.note(
            "intercept",
            "there is no `egress` to inspect",
            "list the hosts in `egress`",
            code="E-EGRESS-INTERCEPT-NO-HOSTS",
        )
    if server.requests and not server.intercept:
        ours.note(
            "requests",
            "requests inside TLS are visible only with `intercept`",
            "write `intercept = true`",
            code="E-EGRESS-REQUESTS-NO-INTERCEPT",
        )
    hosts = [entry for entry in server.egress if isinstance(entry, Destination)]
    for request in server.requests:
        if not any(entry.covers(request.host) for entry in hosts):
            ours.note(
                "requests",
                f"{request.host} is not in `egress`",
                "list it there",
                code="E-EGRESS-REQUESTS-HOST",
            )


def _expect_each_workspace_once(server: Server, ours: TomlTableReader) -> None:
    folders = [workspace.path for workspace in server.workspace]
    for path in sorted({path for path in folders if folders.count(path) > 1}):
        ours.note(
            "workspace", f"{path} is listed twice", "keep one of the two", code="E-CONFIG-DUPLICATE"
        )


def _limits(reader: TomlTableReader, persistent: Mapping[str, bool]) -> Limits:
    usual = Limits()
    for key, is_there in persistent.items():
        if not is_there:
            reader.refuse(
                key,
                f"limits a folder that the server does not have: `{key}` is not set",
                f"write `{key} = true` in the table above, or remove this limit",
                code="E-CONFIG-LIMIT-UNUSED",
            )
    limits = Limits(
        memory_bytes=reader.one("memory", quantities.size_bytes, usual.memory_bytes),
        tasks=reader.count("tasks", usual.tasks, 32_768),
        sessions=reader.count("sessions", usual.sessions, 1024),
        cpu_percent=reader.one("cpu", quantities.percent, usual.cpu_percent),
        state_bytes=reader.one("state", quantities.size_bytes, usual.state_bytes),
        cache_bytes=reader.one("cache", quantities.size_bytes, usual.cache_bytes),
    )
    reader.finish(LIMIT_KEYS)
    return limits
