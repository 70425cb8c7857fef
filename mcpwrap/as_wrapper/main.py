"""Entry point of `mcpwrap@NAME.service`: limits, workspaces and secrets, then the supervisor."""

import os
import pwd
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from mcpwrap.as_wrapper.disk_usage import PersistentFolder
from mcpwrap.as_wrapper.session import WrapperContext
from mcpwrap.as_wrapper.supervisor import SecretSource, Supervisor, refuse
from mcpwrap.as_wrapper.workspace_mounts import WorkspaceMounts
from mcpwrap.core.mount_layout import NO_NAMESPACES
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import ServerSpec, decode_spec
from mcpwrap.linux.isolation import cgroup, landlock, namespaces, prctl
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.socket_activation import listening_socket
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing

GATE_ACCOUNT = "mcpwrap-gate"
# A tmpfs for each session that only this service sees; its drop-in mounts them.
RUNTIME = Path("/run/mcpwrap/rt")


def main() -> int:
    """Serve sessions until systemd stops the unit. A failure before READY=1 fails its start."""
    environ = dict(os.environ)  # noqa: TID251 - a main()
    prctl.forbid_dumps()
    prctl.adopt_orphans()
    # With workspaces the unit is up before `serve`, and `mcpwrap doctor` may send this signal.
    signal_fd.block_signal(signal.SIGUSR1)
    credentials = Path(environ["CREDENTIALS_DIRECTORY"])
    spec = decode_spec((credentials / "spec").read_bytes())
    me = pwd.getpwuid(os.geteuid())
    if me.pw_name != f"mcpw-{spec.name}":
        log_line(f"account {me.pw_name} cannot run server {spec.name} [E-WRAPPER-ACCOUNT]")
        return 1
    context = _context(spec, me.pw_name, environ)
    listener, notifier = listening_socket(environ), Notifier()
    try:
        mounts = None
        if context.view:
            notifier.ready("waits for its workspaces")  # root mounts them after this notification
            mounts = context.view.await_root()
        secrets = _secrets(spec, environ)
    except ValueError as error:
        log_line(str(error))
        notifier.status(f"cannot start: {error}")
        _refuse_waiting(listener, f"{spec.name} cannot start: {error}")
        return 1
    Supervisor(context, secrets, listener, notifier, mounts).serve()
    return 0


def _secrets(spec: ServerSpec, environ: Mapping[str, str]) -> SecretSource | None:
    """Return the opened secrets of the server; raise ValueError if they cannot be opened."""
    if not spec.secrets:
        return None
    from mcpwrap.as_wrapper import secrets  # noqa: PLC0415 - most wrappers never load libsodium

    credential = Path(environ["CREDENTIALS_DIRECTORY"], "capability")
    opened = secrets.Secrets(spec.name, spec.secrets, environ["INVOCATION_ID"], credential)
    opened.load()
    return opened


def _context(spec: ServerSpec, account: str, environ: Mapping[str, str]) -> WrapperContext:
    """Move into a cgroup leaf, which leaves the tree to the sessions; return the context."""
    tree, limits = cgroup.split_off_supervisor(
        cgroup.CgroupLimits(
            memory_bytes=spec.memory_bytes, tasks=spec.tasks, cpu_percent=spec.cpu_percent
        )
    )
    return WrapperContext(
        spec=spec,
        account=account,
        gate_uid=pwd.getpwnam(GATE_ACCOUNT).pw_uid,
        runtime=RUNTIME / spec.name,
        state=Path(environ["STATE_DIRECTORY"]) if spec.state else None,
        logins=Path(environ["STATE_DIRECTORY"]) if spec.has_oauth() else None,
        tree=tree,
        limits=limits,
        view=_workspaces(spec),
        lasting=tuple(_persistent(spec, environ)),
    )


def _workspaces(spec: ServerSpec) -> WorkspaceMounts | None:
    """Return what root mounts. Without mount namespaces of sessions it mounts no projects."""
    if spec.workspaces is None:
        return None
    if not spec.workspaces.projects:
        return WorkspaceMounts(spec.workspaces, "")
    why = "" if landlock.version() else "this kernel has no Landlock"
    if not why and (reason := namespaces.why_impossible()):
        why = f"this machine lets no ordinary account make user and mount namespaces: {reason}"
    if why:
        why = f"{why} [E-SESSION-NAMESPACES]"
        (RUNTIME / spec.name / "0" / NO_NAMESPACES).touch()
    return WorkspaceMounts(spec.workspaces, why)


def _persistent(spec: ServerSpec, environ: Mapping[str, str]) -> Iterator[PersistentFolder]:
    """Yield the folders that systemd has made (systemd.exec(5), StateDirectory=)."""
    if folder := environ.get("STATE_DIRECTORY"):
        yield PersistentFolder("state", Path(folder), spec.state_bytes)
    if folder := environ.get("CACHE_DIRECTORY"):
        yield PersistentFolder("cache", Path(folder), spec.cache_bytes)


def _refuse_waiting(listener: socket.socket, why: str) -> None:
    """Refuse all waiting connections, so that their agents get the reason too."""
    listener.settimeout(0)
    with suppress(OSError):  # no connection waits any more
        while True:
            connection, _ = listener.accept()
            connection.settimeout(session_socket.HANDSHAKE_S)
            # Data left unread at close would reset the connection before the answer is read.
            _, fds = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
            fd_passing.close_all(fds)
            refuse(connection, session_socket.Exit.UNAVAILABLE, why)
