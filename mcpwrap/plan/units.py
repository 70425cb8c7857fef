"""The text of files that differ from server to server."""

from mcpwrap.config.model import Server
from mcpwrap.core.names import account_of

RUNTIME_SIZE = "256M"
_HEAD = "# Written by `mcpwrap apply` from /etc/mcpwrap; changes here are undone by the next one.\n"


def sysusers(name: str, uid: int) -> str:
    """Return the account as sysusers.d(5) wants it: group first, so that both get the same id."""
    account = account_of(name)
    return (
        f"{_HEAD}g {account} {uid}\n"
        f'u {account} {uid}:{uid} "mcpwrap server {name}" /nonexistent /usr/sbin/nologin\n'
    )


def drop_in(server: Server, uid: int) -> str:
    """Return what this wrapper's unit has beyond the template."""
    limits = server.limits
    options = f"mode=0700,uid={uid},gid={uid},size={RUNTIME_SIZE},nr_inodes=16k"
    lines = [
        "[Service]",
        "# No allowlist, no network: not even a loopback interface is shared.",
        "PrivateNetwork=yes",
        f"# {limits.sessions} sessions of this much, and the supervisor.",
        f"MemoryMax={limits.memory_bytes * limits.sessions}",
        f"TasksMax={limits.tasks * limits.sessions + 8}",
        "# Homes and temporary files of sessions; full, it is this wrapper's affair alone.",
        f"TemporaryFileSystem=/run/mcpwrap/rt/{server.name}:{options}",
    ]
    if server.state:
        folder = f"mcpwrap/state/{server.name}"
        lines += ["# A home that lasts.", f"StateDirectory={folder}"]
        lines += [f"BindPaths=/var/lib/{folder}"]
    return _HEAD + "\n".join(lines) + "\n"


def wrapped_set(uids: tuple[int, ...]) -> str:
    """Return the elements of the nft set of wrappers, exact UIDs and never a range."""
    if not uids:
        return _HEAD
    return f"{_HEAD}add element inet mcpwrap wrapped {{ {', '.join(map(str, uids))} }}\n"
