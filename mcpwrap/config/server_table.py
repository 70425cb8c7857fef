"""Parser of one server's table, `[mcp_servers.NAME]`, with its sub-table `mcpwrap`."""

from collections.abc import Mapping
from typing import assert_never

from mcpwrap.config import (
    hub,
    local_program,
    python_server,
    quantities,
    remote_server,
    value_parsers,
)
from mcpwrap.config.file_types.config_file import (
    MAX_SESSIONS,
    MAX_TASKS,
    HubSettings,
    HubTable,
    PreviewTable,
    ProgramSettings,
    ProgramTable,
    PythonSettings,
    PythonTable,
    RemoteSettings,
    RemoteTable,
    SessionLimitsTable,
)
from mcpwrap.config.file_types.fields import FileTable, keys_of
from mcpwrap.config.model import (
    IDLE_EXIT_S,
    Destination,
    Direct,
    Group,
    Hub,
    Limits,
    Local,
    Python,
    RemoteServer,
    Runs,
    Server,
)
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.core.wire.server_files import Pins, PreviewRule, Relay

_TABLES: dict[type[Runs], type[FileTable]] = {
    Local: ProgramTable,
    RemoteServer: RemoteTable,
    Python: PythonTable,
    Hub: HubTable,
}
_SETTINGS: dict[type[Runs], type[FileTable]] = {
    Local: ProgramSettings,
    RemoteServer: RemoteSettings,
    Python: PythonSettings,
    Hub: HubSettings,
}


def read(name: str, reader: TomlTableReader) -> Server:
    """Return the server; what is wrong is noted at its table."""
    ours = reader.table("mcpwrap")
    runs = _runs(name, reader, ours)
    is_program = isinstance(runs, Local)
    if not isinstance(runs, RemoteServer):
        ours.refuse(
            "oauth", "is only valid for a server with `url`", "remove it", code="E-OAUTH-NOT-REMOTE"
        )
    persistent = {"state": ours.flag("state"), "cache": _cache(runs, ours)}
    relay: Relay = ours.one("relay", value_parsers.relay, "gate")
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
        projects=ours.many("projects", value_parsers.workspace),
        http=local_program.read_urls(ours.table("http")),
        protect=ours.flag("protect", usual=True),
        protect_instructions=ours.flag("protect_instructions", usual=True),
        writable_command=ours.flag("writable_command"),
        umask=ours.one("umask", value_parsers.umask, None),
        state=persistent["state"],
        cache=persistent["cache"],
        secret_files=ours.many("secret_files", value_parsers.secret_key),
        relay=relay,
        pins=_pins(ours, relay),
        expose=ours.one("expose", value_parsers.expose, ""),
        audit=ours.one("audit", value_parsers.audit, "hash"),
        shared=ours.flag("shared"),
        allow_degraded=ours.flag("allow_degraded"),
        idle_exit_s=ours.one("idle_exit", quantities.idle_s, IDLE_EXIT_S),
        previews=_previews(ours.table("previews")),
        limits=_limits(ours.table("limits"), persistent),
    )
    if server.previews and server.relay == "direct":
        ours.note(
            "previews",
            "the gate does not see the messages of this server",
            'write `relay = "gate"`, or remove it',
            code="E-CONFIG-PREVIEW",
        )
    ours.finish(keys_of(_SETTINGS[type(runs)]))
    _expect_sound_egress(server, ours)
    _expect_each_folder_once(server, ours)
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
            local_program.expect_sound_projects(server, runs, reader, ours)
            local_program.expect_sound_urls(server, ours)
        case Hub():
            pass  # its parser has refused what a hub cannot have
        case _:
            assert_never(runs)
    return server


def _previews(reader: TomlTableReader) -> dict[str, PreviewRule]:
    return {tool: _preview(tool, reader.table(tool)) for tool in reader.names()}


def _preview(tool: str, reader: TomlTableReader) -> PreviewRule:
    named = reader.one("tool", str, "")
    arguments = reader.table("arguments")
    rule = PreviewRule(
        tool=named,
        arguments={name: arguments.one(name, str, "") for name in arguments.names()},
        compare=reader.one("compare", str, ""),
        count=reader.one("count", str, ""),
    )
    reader.finish(keys_of(PreviewTable))
    problem, fix = "", ""
    if not named or named == tool:
        problem = "a call cannot be its own preview" if named else "it names no tool"
        fix = 'write `tool = "…"`: a tool of the same server that only reads'
    elif rule.count and rule.count not in rule.arguments.values():
        problem = f"no argument of {named!a} takes {rule.count!a}"
        fix = f"write it in `arguments`, as the source of the argument of {named!a} that is SQL"
    elif rule.count and rule.compare:
        problem, fix = "`compare` and `count` exclude each other", "remove one of them"
    if problem:
        reader.note("tool", problem, fix, code="E-CONFIG-PREVIEW")
    return rule


def _runs(name: str, reader: TomlTableReader, ours: TomlTableReader) -> Runs:
    """Return what the server runs, by the one of four keys that its table has."""
    kinds = [key for key in ("command", "url", "python", "members") if reader.has(key)]
    if len(kinds) != 1:
        reader.note(
            "",
            "needs exactly one of `command`, `url`, `python` and `members`",
            'write `command = "/usr/bin/…"` for a program, `url = "https://…"` for a remote server,'
            " `python` for a server that runs code, or tables `members` for a hub",
            code="E-CONFIG-COMMAND-OR-URL",
        )
    runs: Runs
    if "url" in kinds:
        runs = remote_server.read(reader, ours)
    elif "python" in kinds:
        runs = python_server.read(name, reader, ours)
    elif "members" in kinds:
        runs = hub.read(name, reader, ours)
    else:
        runs = local_program.read(reader)
    reader.finish(keys_of(_TABLES[type(runs)]), keys_of(_SETTINGS[type(runs)]))
    return runs


def _cache(runs: Runs, ours: TomlTableReader) -> bool:
    """Return whether the server has a persistent folder; a Python server always has."""
    return ours.flag("cache") or isinstance(runs, Python)


def _pins(ours: TomlTableReader, relay: Relay) -> Pins:
    """Return how definitions are accepted; past the gate none can be held back."""
    is_written = ours.has("pins")
    pins: Pins = ours.one("pins", value_parsers.pins, "first-use")
    if is_written and pins != "off" and relay == "direct":
        ours.note(
            "pins",
            'with `relay = "direct"` the gate does not see what the server lists',
            'write `relay = "gate"`, or `pins = "off"`',
            code="E-CONFIG-RELAY-PINS",
        )
    return pins


def _direct(runs: Runs, ours: TomlTableReader) -> tuple[Direct, ...]:
    """Return the entries of `direct`, and before them the worker on another machine, if any."""
    listed = ours.many("direct", value_parsers.direct)
    own = runs.worker if isinstance(runs, Python) else None
    return tuple(dict.fromkeys([own, *listed])) if own else listed


def _egress(runs: Runs, ours: TomlTableReader) -> tuple[Destination | Group, ...]:
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


def _expect_each_folder_once(server: Server, ours: TomlTableReader) -> None:
    for key, listed in (("workspace", server.workspace), ("projects", server.projects)):
        folders = [folder.path for folder in listed]
        for path in sorted({path for path in folders if folders.count(path) > 1}):
            ours.note(
                key, f"{path} is listed twice", "keep one of the two", code="E-CONFIG-DUPLICATE"
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
        tasks=reader.count("tasks", usual.tasks, MAX_TASKS),
        sessions=reader.count("sessions", usual.sessions, MAX_SESSIONS),
        cpu_percent=reader.one("cpu", quantities.percent, usual.cpu_percent),
        state_bytes=reader.one("state", quantities.size_bytes, usual.state_bytes),
        cache_bytes=reader.one("cache", quantities.size_bytes, usual.cache_bytes),
    )
    reader.finish(keys_of(SessionLimitsTable))
    return limits
