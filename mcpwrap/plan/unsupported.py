"""What can be written and not yet be carried out: refused, so that nobody relies on it."""

from mcpwrap.config.model import Config, ConfigError, Local, Problem, Remote, SecretRef, Server

_FIX = "take it out; `mcpwrap check` accepts it because a later version carries it out"


def refuse(config: Config) -> None:
    """Refuse a configuration that this version would carry out only in part.

    Raises:
        ConfigError: with every such setting.
    """
    problems = [
        Problem(
            "config", f"[mcp_servers.{server.name}]", key, "not carried out by this version", _FIX
        )
        for server in config.servers.values()
        for key in _unsupported(server)
    ]
    if problems:
        raise ConfigError(problems)


def _unsupported(server: Server) -> list[str]:
    keys = [
        key for key in ("egress", "direct", "workspace", "secret_files") if getattr(server, key)
    ]
    if server.relay != "gate":
        keys.append("relay")
    match server.runs:
        case Remote():
            keys.append("url")
        case Local(env=env):
            keys += [
                f"env.{k}" for k, parts in env.items() for p in parts if isinstance(p, SecretRef)
            ]
    return keys
