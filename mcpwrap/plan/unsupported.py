"""What can be written and not yet be carried out: refused, so that nobody relies on it."""

from mcpwrap.config.model import Config, ConfigError, Problem, Remote, Server

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
    return [(table, "url")] if isinstance(server.runs, Remote) else []
