"""The text of files that differ from server to server."""

from mcpwrap.config.model import Server
from mcpwrap.core.names import account_of

_HEAD = "# Written by `mcpwrap apply` from /etc/mcpwrap; changes here are undone by the next one.\n"


def sysusers(name: str, uid: int) -> str:
    """Return the account as sysusers.d(5) wants it: group first, so that both get the same id."""
    account = account_of(name)
    return (
        f"{_HEAD}g {account} {uid}\n"
        f'u {account} {uid}:{uid} "mcpwrap server {name}" /nonexistent /usr/sbin/nologin\n'
    )


def drop_in(server: Server) -> str:
    """Return what this wrapper's unit has beyond the template."""
    limits = server.limits
    lines = [
        "[Service]",
        "# No allowlist, no network: not even a loopback interface is shared.",
        "PrivateNetwork=yes",
        f"# {limits.sessions} sessions of this much, and the supervisor.",
        f"MemoryMax={limits.memory_bytes * limits.sessions}",
        f"TasksMax={limits.tasks * limits.sessions + 8}",
    ]
    if server.state:
        lines += ["# A home that lasts.", f"StateDirectory=mcpwrap/state/{server.name}"]
    return _HEAD + "\n".join(lines) + "\n"


def wrapped_set(uids: tuple[int, ...]) -> str:
    """Return the elements of the nft set of wrappers, exact UIDs and never a range."""
    if not uids:
        return _HEAD
    return f"{_HEAD}add element inet mcpwrap wrapped {{ {', '.join(map(str, uids))} }}\n"
