"""Text of the unit drop-ins and sysusers files, which differ from server to server."""

from collections.abc import Mapping

from mcpwrap.config.model import Hub, Server
from mcpwrap.core.names import account_of, is_slot_name
from mcpwrap.plan import paths, workspaces
from mcpwrap.plan.egress import server_egress

RUNTIME_SIZE = "256M"
RUNTIME = "/run/mcpwrap/rt"
PLACES_BEYOND = 4  # slots of ended sessions are cleaned up, which takes time
REDACTOR_TASKS = 2  # a session with secrets has a process with two threads beside the server


def sysusers(uid_by_name: Mapping[str, int]) -> str:
    """Return accounts of a server and its slots for sysusers.d(5): each group first.

    So account and group get the same id.
    """
    lines = []
    for name, uid in uid_by_name.items():
        account = account_of(name)
        kind = "run slot" if is_slot_name(name) else "server"
        lines += [
            f"g {account} {uid}",
            f'u {account} {uid}:{uid} "mcpwrap {kind} {name}" /nonexistent /usr/sbin/nologin',
        ]
    return paths.WRITTEN + "\n".join(lines) + "\n"


def drop_in(server: Server, uid: int, instance: str) -> str:
    """Return what this wrapper's drop-in adds to the template. `instance` is of Squid, or ""."""
    limits, slots = server.limits, range(server.limits.sessions + PLACES_BEYOND)
    options = f"mode=0700,uid={uid},gid={uid},size={RUNTIME_SIZE},nr_inodes=16k"
    lines = [
        "[Service]",
        *server_egress.unit_lines(server, uid),
        f"# The limits of {limits.sessions} sessions, and the supervisor.",
        f"MemoryMax={limits.memory_bytes * limits.sessions}",
        f"TasksMax={(limits.tasks + REDACTOR_TASKS) * limits.sessions + 8}",
        "# The same, counted by account, for machines that do not count tasks by control group.",
        f"LimitNPROC={(limits.tasks + REDACTOR_TASKS) * limits.sessions + 8}",
        "# Home and temporary files of each session: a full one affects that session alone.",
        *(f"TemporaryFileSystem={RUNTIME}/{server.name}/{n}:{options}" for n in slots),
    ]
    if limits.cpu_percent:
        lines.append(f"CPUQuota={limits.cpu_percent * limits.sessions}%")
    if server.state or server.has_oauth():
        folder = f"mcpwrap/state/{server.name}"
        what = "A persistent home." if server.state else "A persistent folder for the login."
        lines += [f"# {what}", f"StateDirectory={folder}"]
        lines += [f"BindPaths=/var/lib/{folder}"]
    if isinstance(server.runs, Hub):
        lines.append(
            "# The supervisor opens sessions of members at the gate, and sees no other socket."
        )
        lines.append(f"BindReadOnlyPaths={paths.DOOR}")
    lines += workspaces.drop_in(server)
    if server.secrets():
        lines += _secrets(server.name)
    if instance:
        lines += server_egress.unit_section(server, uid, instance)
    return paths.WRITTEN + "\n".join(lines) + "\n"


def _secrets(name: str) -> list[str]:
    """Return the lines that deliver a start's secrets. Source: systemd.exec(5), CREDENTIALS."""
    # Even with a `+` a command sees the file system of the service; nsenter shows that of PID 1.
    mint = f"+/usr/bin/nsenter --target=1 --mount -- {paths.MINT_PROGRAM}"
    return [
        "# Root seals the secrets for this start alone; their key is a credential.",
        f"ExecStartPre={mint} start {name}",
        f"LoadCredential=capability:{paths.capability(name)}",
        f"BindReadOnlyPaths={paths.bundle(name).rpartition('/')[0]}",
        "# `systemctl reload` hands over their current values; the next session has these.",
        f"ExecReload={mint} reload {name}",
        "ExecReload=/usr/bin/kill -HUP $MAINPID",
        "[Unit]",
        "# systemd looks for file and folder before the first command, so they must exist.",
        f"Requires=mcpwrap-mint@{name}.service",
        f"After=mcpwrap-mint@{name}.service",
    ]
