"""Boundaries that the configuration widens, which `plan` and `apply` report each time."""

from collections.abc import Iterable, Iterator

from mcpwrap.config.model import Config, Local, Server
from mcpwrap.config.value_parsers import may_steer

_SAME_UID = (
    "WIDENED by [approvals] same_uid: an account that runs an agent approves its calls without any "
    "proof; so an agent that reaches a shell of its account approves its own calls"
)


_UNPROTECTED = (
    "WIDENED by [mcp_servers.{}.mcpwrap] protect: in its workspaces it can write the files from "
    "which git, shells, editors and agents run code, and so make them run its own"
)
_INSTRUCTING = (
    "WIDENED by [mcp_servers.{}.mcpwrap] protect_instructions: in its workspaces it can write "
    "AGENTS.md, CLAUDE.md and similar files, which agents obey"
)
_FOR_ALL = (
    "WIDENED by [mcp_servers.{}.mcpwrap] umask: every account of this machine that reaches the "
    "folder can write to the files that it makes in its workspaces"
)
_WRITING = 0o002  # of others


def widenings_of(config: Config) -> list[str]:
    """Return a line for each boundary that is widened."""
    own = [_SAME_UID] if config.approvals.same_uid else []
    return own + of_servers(config.servers.values())


def of_servers(servers: Iterable[Server]) -> list[str]:
    """Return a line for each boundary that the definition of a server widens."""
    return [line for server in servers for line in _of_server(server)]


def _of_server(server: Server) -> Iterator[str]:
    if isinstance(server.runs, Local):
        if server.writable_command:
            yield (
                f"WIDENED by [mcp_servers.{server.name}.mcpwrap] writable_command: an account that "
                f"can write to {server.runs.command}, or to what it loads, runs any code as this "
                f"server{_reads(server)}"
            )
        if server.runs.inherits_any:
            yield _inherited(server.name, server.runs.inherits_any)
    if any(folder.is_writable for folder in (*server.workspace, *server.projects)):
        if not server.protect:
            yield _UNPROTECTED.format(server.name)
        if not server.protect_instructions:
            yield _INSTRUCTING.format(server.name)
        if server.umask is not None and not server.umask & _WRITING:
            yield _FOR_ALL.format(server.name)


def _reads(server: Server) -> str:
    secrets = ", ".join(sorted(server.secrets()))
    return f", and reads its secrets ({secrets})" if secrets else ""


def _inherited(name: str, variables: tuple[str, ...]) -> str:
    line = (
        f"WIDENED by [mcp_servers.{name}] inherits_any: "
        f"its agents choose the value of {', '.join(variables)}"
    )
    steering = [variable for variable in variables if may_steer(variable)]
    if not steering:
        return line
    return f"{line}; of these {', '.join(steering)} can decide which code runs or where data goes"
