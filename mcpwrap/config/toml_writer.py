"""Serialiser of one server to TOML: readable, in plain ASCII, and deterministic."""

from collections.abc import Iterable, Mapping
from typing import assert_never

from mcpwrap.config import remote_server
from mcpwrap.config.model import (
    TRANSPORTS,
    AllowedRequest,
    Destination,
    Direct,
    Group,
    Hub,
    HubMember,
    Limits,
    Local,
    Python,
    RemoteServer,
    Runs,
    Server,
    Template,
    Workspace,
)
from mcpwrap.core import umask
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.core.wire.server_files import OAuth, PreviewRule

_Value = bool | int | str | tuple[str, ...] | Mapping[str, "_Value"]
_Lines = Iterable[tuple[str, _Value]]

_MAX_LINE_CHARS = 76
_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_HTTPS = 443
_SIZES = (("T", 1024**4), ("G", 1024**3), ("M", 1024**2), ("K", 1024))
_TIMES = (("h", 3600), ("m", 60), ("s", 1))


def toml_of(server: Server) -> str:
    r"""Return the tables of a server, from which `parse` makes the same server.

    Every character except space to `~` is escaped, as `\u202E`. `agents` is always written, for a
    program `egress` and `workspace` too; another setting only if it differs from its default.
    """
    table = f"mcp_servers.{server.name}"
    ours = [f"[{table}.mcpwrap]", *_written(_ours(server))]
    if isinstance(server.runs, Hub):
        return "\n".join([*_members(table, server.runs), *ours, ""])
    return "\n".join([f"[{table}]", *_written(_runs(server)), "", *ours, ""])


def toml_of_worker(listen: str, certificate: str, key: str) -> str:
    """Return the table `[worker]` with these settings, which `parse` judges."""
    settings = (("listen", listen), ("certificate", certificate), ("key", key))
    return "\n".join(["[worker]", *_written(settings), ""])


def _members(table: str, hub: Hub) -> Iterable[str]:
    for member in hub.members:
        yield f"[{table}.members.{member.name}]"
        yield from _written(_member(member))
        yield ""


def _member(member: HubMember) -> _Lines:
    yield "namespace", member.namespace
    yield from _unusual(("instructions", member.instructions))
    if member.transports != TRANSPORTS:
        yield "transports", member.transports


def _runs(server: Server) -> _Lines:
    match server.runs:
        case Local() as local:
            yield "command", local.command
            yield from _unusual(("args", local.args), ("cwd", local.cwd))
            yield from _templates("env", local.env)
            yield from _unusual(("inherits", local.inherits), ("inherits_any", local.inherits_any))
        case RemoteServer() as remote:
            yield "url", remote.url
            yield from _unusual(("bearer_token_env_var", remote.bearer_token_env_var))
            yield from _templates("headers", remote.headers)
        case Python(interpreter=interpreter):
            yield "python", interpreter
        case Hub():
            pass  # each member has a table of its own
        case _:
            assert_never(server.runs)


def _templates(table: str, templates: Mapping[str, Template]) -> _Lines:
    """Yield a line for each variable or header: a reader would overlook one in a long line."""
    for name, template in templates.items():
        parts = [part if isinstance(part, str) else f"${{{part.key}}}" for part in template]
        yield f"{table}.{_key(name)}", "".join(parts)


def _ours(server: Server) -> _Lines:
    is_local = isinstance(server.runs, Local)
    egress = tuple(map(_egress, _listed(server)))
    workspace = tuple(map(_workspace, server.workspace))
    yield "agents", server.agents
    if is_local or egress:
        yield "egress", egress
    if is_local or workspace:
        yield "workspace", workspace
    yield from _unusual(("projects", tuple(map(_workspace, server.projects))))
    yield from _unusual(("direct", tuple(map(_direct, _beyond(server)))))
    yield from _flag("transparent", server.transparent, usual=is_local)
    yield from _flag("intercept", server.intercept)
    yield from _unusual(("requests", tuple(map(_request, server.requests))))
    yield from _flag("protect", server.protect, usual=True)
    yield from _flag("protect_instructions", server.protect_instructions, usual=True)
    yield from _flag("writable_command", server.writable_command)
    if server.umask is not None:
        yield "umask", umask.text(server.umask)
    yield from _flag("state", server.state)
    yield from _flag("cache", server.cache, usual=isinstance(server.runs, Python))
    yield from _unusual(("secret_files", server.secret_files))
    yield from _other_than_in(_PLAIN, server)
    yield from _of_kind(server.runs)
    yield from _flag("shared", server.shared)
    yield from _flag("allow_degraded", server.allow_degraded)
    if server.idle_exit_s != _PLAIN.idle_exit_s:
        yield "idle_exit", _time(server.idle_exit_s)
    yield from _unusual(
        ("http", {name: {"project": path} for name, path in server.http.items()}),
        ("previews", {tool: dict(_preview(rule)) for tool, rule in server.previews.items()}),
        ("limits", dict(_limits(server.limits))),
    )


_PLAIN = Server(name="", runs=Local(command=""))  # with the default of each setting


def _other_than_in(plain: Server, server: Server) -> _Lines:
    for key in ("relay", "pins", "expose", "audit"):
        if getattr(server, key) != getattr(plain, key):
            yield key, getattr(server, key)


def _unusual(*found: tuple[str, str | tuple[str, ...] | Mapping[str, _Value]]) -> _Lines:
    """Yield the settings that are not empty."""
    return ((key, value) for key, value in found if value)


def _flag(key: str, value: bool, *, usual: bool = False) -> _Lines:  # noqa: FBT001 - it is one
    return [(key, value)] if value != usual else []


def _listed(server: Server) -> tuple[Destination | Group, ...]:
    """Return the entries for `egress`, without the host of its own URL, which `parse` adds."""
    own = remote_server.reached(server.runs) if isinstance(server.runs, RemoteServer) else ()
    return tuple(entry for entry in server.egress if entry not in own)


def _beyond(server: Server) -> tuple[Direct, ...]:
    """Return the entries for `direct`, without the worker, which `parse` adds."""
    own = server.runs.worker if isinstance(server.runs, Python) else None
    return tuple(entry for entry in server.direct if entry != own)


def _of_kind(runs: Runs) -> _Lines:
    """Yield the settings of one kind of server."""
    if isinstance(runs, RemoteServer) and runs.oauth is not None:
        yield "oauth", _oauth(runs.oauth)
    if isinstance(runs, Python):
        yield from _python(runs)


def _egress(entry: Destination | Group) -> str:
    if isinstance(entry, Group):
        return f"@{entry.name}"
    port = "" if entry.port == _HTTPS else f":{entry.port}"
    return f"{'*.' if entry.with_subdomains else ''}{entry.host}{port}"


def _direct(entry: Direct) -> str:
    host = f"[{entry.address}]" if ":" in entry.address else entry.address
    return f"{host}:{entry.port}"


def _request(entry: AllowedRequest) -> str:
    return f"{','.join(entry.methods)} {entry.host}{entry.path}"


def _workspace(entry: Workspace) -> str:
    return f"{entry.path}:{'rw' if entry.is_writable else 'ro'}"


def _oauth(oauth: OAuth) -> _Value:
    found: _Lines = _unusual(
        ("scopes", oauth.scopes),
        ("client_id", oauth.client_id),
        ("client_id_metadata", oauth.client_id_metadata),
    )
    return dict(found) or True


def _python(runs: Python) -> _Lines:
    yield from _unusual(("packages", runs.packages))
    if runs.worker:
        yield "worker", f"https://{_direct(runs.worker)}"
    yield from _unusual(("worker_ca", runs.worker_ca), ("runs", dict(_run_limits(runs.limits))))


def _preview(rule: PreviewRule) -> _Lines:
    yield "tool", rule.tool
    yield "arguments", rule.arguments
    yield from _unusual(("compare", rule.compare), ("count", rule.count))


def _run_limits(limits: RunLimits) -> _Lines:
    usual = RunLimits()
    if limits.memory_bytes != usual.memory_bytes:
        yield "memory", _counted(limits.memory_bytes, _SIZES)
    if limits.cpu_percent != usual.cpu_percent:
        yield "cpu", f"{limits.cpu_percent}%"
    for key in ("tasks", "seconds", "at_once"):
        if getattr(limits, key) != getattr(usual, key):
            yield key, getattr(limits, key)
    if limits.code_bytes != usual.code_bytes:
        yield "code", _counted(limits.code_bytes, _SIZES)
    if limits.output_bytes != usual.output_bytes:
        yield "output", _counted(limits.output_bytes, _SIZES)


def _limits(limits: Limits) -> _Lines:
    usual = Limits()
    if limits.memory_bytes != usual.memory_bytes:
        yield "memory", _counted(limits.memory_bytes, _SIZES)
    if limits.tasks != usual.tasks:
        yield "tasks", limits.tasks
    if limits.cpu_percent != usual.cpu_percent:
        yield "cpu", f"{limits.cpu_percent}%"
    if limits.sessions != usual.sessions:
        yield "sessions", limits.sessions
    if limits.state_bytes != usual.state_bytes:
        yield "state", _counted(limits.state_bytes, _SIZES)
    if limits.cache_bytes != usual.cache_bytes:
        yield "cache", _counted(limits.cache_bytes, _SIZES)


def _time(seconds: int) -> str:
    return _counted(seconds, _TIMES) if seconds else "never"


def _counted(amount: int, units: Iterable[tuple[str, int]]) -> str:
    """Return an amount in the largest unit in which it is a whole number."""
    unit, size = next((unit, size) for unit, size in units if amount % size == 0)
    return f"{amount // size}{unit}"


def _written(lines: _Lines) -> Iterable[str]:
    for key, value in lines:
        line = f"{key} = {_value(value)}"
        if isinstance(value, tuple) and len(line) > _MAX_LINE_CHARS:
            line = "\n".join([f"{key} = [", *(f"    {_value(item)}," for item in value), "]"])
        yield line


def _value(value: _Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return f'"{"".join(map(_character, value))}"'
        case tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"


def _key(name: str) -> str:
    return name if name and _BARE.issuperset(name) else _value(name)


def _character(char: str) -> str:
    """Return a character of a basic string. Source: TOML 1.0, String."""
    if char in '"\\':
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    return {"\n": "\\n", "\t": "\\t"}.get(char) or _escape(ord(char))


def _escape(code: int) -> str:
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
