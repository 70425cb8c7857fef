"""What can be written and not yet be carried out: refused, so that nobody relies on it."""

from typing import assert_never

from mcpwrap.config.model import (
    Config,
    ConfigError,
    Local,
    Problem,
    Remote,
    SecretRef,
    Server,
    Template,
)

_OURS = ("egress", "direct", "workspace", "secret_files")
_PROBLEM = "not carried out by this version"
_FIX = "take it out; `mcpwrap check` accepts it because a later version carries it out"


def refuse(config: Config) -> None:
    """Refuse a configuration that this version would carry out only in part.

    Raises:
        ConfigError: with every such setting.
    """
    problems = [
        Problem(config.file_by_server[server.name], table, key, _PROBLEM, _FIX)
        for server in config.servers.values()
        for table, key in _unsupported(server)
    ]
    if problems:
        raise ConfigError(problems)


def _unsupported(server: Server) -> list[tuple[str, str]]:
    """Return table and key of each such setting."""
    table = f"[mcp_servers.{server.name}]"
    ours = f"[mcp_servers.{server.name}.mcpwrap]"
    found = [(ours, key) for key in _OURS if getattr(server, key)]
    if server.relay != "gate":
        found.append((ours, "relay"))
    match server.runs:
        case Remote():
            found.append((table, "url"))
        case Local(env=env):
            found += [(table, f"env.{key}") for key, parts in env.items() if _has_secret(parts)]
        case _:
            assert_never(server.runs)
    return found


def _has_secret(parts: Template) -> bool:
    return any(isinstance(part, SecretRef) for part in parts)
