"""What the configuration takes off a boundary, for `plan` and `apply` to say each time."""

from collections.abc import Iterable

from mcpwrap.config.model import Config, Local, Server

_SAME_UID = (
    "WIDENED by [approvals] same_uid: who runs an agent approves its calls without any proof; "
    "so an agent that reaches a shell of its account approves its own"
)


def of(config: Config) -> list[str]:
    """Return a line for each."""
    return [
        *([_SAME_UID] if config.approvals.same_uid else []),
        *writable_commands(config.servers.values()),
    ]


def writable_commands(servers: Iterable[Server]) -> list[str]:
    """Return a line for each program that other accounts than root may change."""
    return [
        f"WIDENED by writable_command of {server.name}: an account that can write to "
        f"{server.runs.command}, or to what it loads, runs any code as this server{_reads(server)}"
        for server in servers
        if server.writable_command and isinstance(server.runs, Local)
    ]


def _reads(server: Server) -> str:
    secrets = ", ".join(sorted(server.secrets()))
    return f", and reads its secrets ({secrets})" if secrets else ""
